//! The results of a bench: a table for people, one line of JSON for each cell for programs, and a document with
//! machine, date, command and quartiles, from which `cargo xtask bench page` makes tables.

use std::fs;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use heedful_tensor::cpu::{isa, threads};
use serde_json::{Value, json};

use crate::pair::{Paired, Quartiles};

/// One row of a bench.
#[derive(Clone, Debug)]
pub struct Cell {
    bench: String,
    name: String,
    unit: &'static str,
    better: Better,
    ours: Quartiles,
    peer: Quartiles,
    ratio: Quartiles,
    peer_settings: Option<String>,
}

/// Whether higher or lower measurements are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Better {
    Higher,
    Lower,
}

impl Cell {
    /// A rate, such as `tokens/s`, from paired turns of `work` units each. Its ratio is our speed over the
    /// peer's.
    pub fn rate(bench: &str, name: &str, unit: &'static str, work: f64, paired: &Paired) -> Self {
        Self::rates(bench, name, unit, [work; 2], paired)
    }

    /// As [`Cell::rate`] if the sides do different amounts of work: our units, and the peer's.
    pub fn rates(bench: &str, name: &str, unit: &'static str, work: [f64; 2], paired: &Paired) -> Self {
        let rates = |seconds: &[f64], work: f64| -> Vec<f64> { seconds.iter().map(|s| work / s).collect() };
        let [ours, peer] = [rates(&paired.ours, work[0]), rates(&paired.peer, work[1])];
        let ratios: Vec<f64> = ours.iter().zip(&peer).map(|(ours, peer)| ours / peer).collect();
        Self {
            bench: bench.to_owned(),
            name: name.to_owned(),
            unit,
            better: Better::Higher,
            ours: Quartiles::of(&ours),
            peer: Quartiles::of(&peer),
            ratio: Quartiles::of(&ratios),
            peer_settings: None,
        }
    }

    /// A cost, such as seconds or bytes, where lower is better. Its ratio is the peer's cost over ours, so
    /// that a higher ratio is better here too.
    pub fn cost(bench: &str, name: &str, unit: &'static str, paired: &Paired) -> Self {
        Self {
            bench: bench.to_owned(),
            name: name.to_owned(),
            unit,
            better: Better::Lower,
            ours: Quartiles::of(&paired.ours),
            peer: Quartiles::of(&paired.peer),
            ratio: Quartiles::of(&paired.ratios()),
            peer_settings: None,
        }
    }

    /// The same cell with the settings that the peer was fastest with.
    pub fn with_peer_settings(self, settings: String) -> Self {
        Self { peer_settings: Some(settings), ..self }
    }

    /// One measurement of memory of each side, in bytes.
    pub fn memory(bench: &str, name: &str, ours: f64, peer: f64) -> Self {
        let [ours, peer] = [ours, peer].map(|bytes| vec![bytes / f64::from(1 << 20)]);
        Self::cost(bench, name, "MiB", &Paired { ours, peer })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its unit.
    pub fn unit(&self) -> &'static str {
        self.unit
    }

    /// Our median.
    pub fn ours(&self) -> f64 {
        self.ours.median
    }

    /// The median of the paired ratios.
    pub fn ratio(&self) -> f64 {
        self.ratio.median
    }

    fn json(&self) -> String {
        let (ours, peer, ratio) = (self.ours.median, self.peer.median, self.ratio.median);
        json!({"bench": self.bench, "cell": self.name, "ours": ours, "peer": peer, "unit": self.unit, "ratio": ratio})
            .to_string()
    }

    /// The cell as a row of the document.
    fn document_row(&self) -> Value {
        let three = |q: Quartiles| json!({"p25": q.p25, "median": q.median, "p75": q.p75});
        json!({
            "group": self.bench, "cell": self.name, "unit": self.unit, "ours": three(self.ours), "peer": three(self.peer),
            "ratio": three(self.ratio), "peer_settings": self.peer_settings,
        })
    }

    fn row(&self, width: usize) -> String {
        let four = |q: Quartiles| {
            let best = if self.better == Better::Higher { q.max } else { q.min };
            format!("{:>9} {:>9} {:>9} {:>9}", short(best), short(q.median), short(q.p25), short(q.p75))
        };
        let ratio = self.ratio;
        format!(
            "{:<width$}  {:<8} | {} | {} | {:>6.2} {:>6.2} {:>6.2}",
            self.name,
            self.unit,
            four(self.ours),
            four(self.peer),
            ratio.median,
            ratio.p25,
            ratio.p75
        )
    }
}

/// Prints the table, then the JSON lines, and records these.
pub fn report(bench: &str, cells: &[Cell]) -> Result<()> {
    print(cells);
    record(bench, cells)
}

/// Writes the JSON lines to `target/bench/NAME.jsonl` and the document to `NAME.json`, or to the folder
/// `HEEDFUL_BENCH_OUTPUT`. A long bench calls it after each group of cells, so that an interrupted run keeps
/// its results.
pub fn record(bench: &str, cells: &[Cell]) -> Result<()> {
    let path = jsonl(bench);
    let folder = path.parent().context("the report has no folder")?;
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    fs::write(&path, lines(cells)).with_context(|| format!("cannot write {}", path.display()))?;
    let document = path.with_extension("json");
    let text = serde_json::to_string_pretty(&document_of(bench, cells))?;
    fs::write(&document, text + "\n").with_context(|| format!("cannot write {}", document.display()))
}

/// The fields of a file of `bench/results`; who publishes it adds what the program cannot see.
fn document_of(bench: &str, cells: &[Cell]) -> Value {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let rows: Vec<Value> = cells.iter().map(Cell::document_row).collect();
    json!({
        "title": bench,
        "date": date(seconds / 86_400),
        "machine": format!("{} cores, {}", threads::available_cores(), isa::current()),
        "command": format!("cargo xtask bench {bench} {}", arguments.join(" ")).trim_end(),
        "work": "", "ours": concat!("heedful ", env!("CARGO_PKG_VERSION")), "peer": "",
        "rows": rows,
    })
}

/// The date of a day, counted from 1970-01-01 (Hinnant's algorithm).
fn date(days: u64) -> String {
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let (day, month) = (day_of_year - (153 * month + 2) / 5 + 1, (month + 2) % 12 + 1);
    format!("{:04}-{month:02}-{day:02}", year + era * 400 + u64::from(month <= 2))
}

/// Prints the table, then the JSON lines.
pub fn print(cells: &[Cell]) {
    let width = cells.iter().map(|cell| cell.name.len()).max().unwrap_or(0).max(4);
    let four = format!("{:>9} {:>9} {:>9} {:>9}", "best", "median", "p25", "p75");
    println!("{:<width$}  {:<8} | {:<39} | {:<39} | ours to peer", "", "", "ours", "peer");
    println!("{:<width$}  {:<8} | {four} | {four} | median    p25    p75", "cell", "unit");
    for cell in cells {
        println!("{}", cell.row(width));
    }
    println!();
    print!("{}", lines(cells));
}

fn lines(cells: &[Cell]) -> String {
    cells.iter().map(|cell| cell.json() + "\n").collect()
}

fn jsonl(bench: &str) -> PathBuf {
    let name = format!("{bench}.jsonl");
    if let Some(folder) = std::env::var_os("HEEDFUL_BENCH_OUTPUT") {
        return PathBuf::from(folder).join(name);
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    root.join(target).join("bench").join(name)
}

/// Formats a number with three or four digits.
fn short(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paired() -> Paired {
        Paired { ours: vec![1.0, 2.0, 4.0], peer: vec![2.0, 6.0, 4.0] }
    }

    #[test]
    fn a_cell_holds_medians_and_the_median_of_ratios() {
        let cell = Cell::rate("step", "small bf16 equal", "tokens/s", 12.0, &paired());
        let line: Value = serde_json::from_str(&cell.json()).unwrap();
        let expected = json!({"bench": "step", "cell": "small bf16 equal", "ours": 6.0, "peer": 3.0, "unit": "tokens/s",
                              "ratio": 2.0});
        assert_eq!(line, expected);
    }

    #[test]
    fn sides_with_different_amounts_of_work_are_compared_by_rate() {
        let cell = Cell::rates("translate", "trained", "tokens/s", [6.0, 12.0], &paired());
        // 6, 3 and 1.5 against 6, 2 and 3 a second.
        assert_eq!((cell.ours(), cell.ratio()), (3.0, 1.0));
    }

    #[test]
    fn the_best_cost_is_the_lowest() {
        let cell = Cell::cost("translate", "load", "ms", &paired());
        assert_eq!((cell.ours(), cell.ratio()), (2.0, 2.0));
        let best = cell.row(4).split('|').nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
        assert_eq!(best, "1.00");
    }

    #[test]
    fn less_memory_is_a_higher_ratio() {
        let cell = Cell::memory("step", "small bf16 memory", 1048576.0, 3145728.0);
        assert_eq!(cell.ratio(), 3.0);
        assert!(cell.row(20).contains("MiB"));
    }

    #[test]
    fn the_document_has_quartiles_and_the_settings_of_the_peer() {
        let cell =
            Cell::cost("translate", "load", "ms", &paired()).with_peer_settings("int8 1 × 2".to_owned());
        let document = document_of("translate", &[cell]);
        let row = &document["rows"][0];
        assert_eq!((row["ours"]["p25"].as_f64(), row["ours"]["median"].as_f64()), (Some(1.5), Some(2.0)));
        assert_eq!(row["peer_settings"], "int8 1 × 2");
        assert!(
            document["command"]
                .as_str()
                .is_some_and(|command| command.starts_with("cargo xtask bench translate"))
        );
        assert_eq!([date(0), date(11_016), date(20_776)], ["1970-01-01", "2000-02-29", "2026-11-19"]);
    }

    #[test]
    fn numbers_stay_short() {
        assert_eq!([short(0.123), short(12.34), short(1234.5)], ["0.12", "12.3", "1234"]);
    }
}
