//! `cargo xtask bench page`: writes the tables and charts of `bench/README.md` from `bench/results/*.json`.
//!
//! In the page `<!-- table NAME -->` and `<!-- chart NAME -->` are followed by the contents of
//! `results/NAME.json`, up to `<!-- end -->`. A race leaves such a file in `target/bench`; to publish it,
//! copy it to `bench/results`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use heedful::plot::{Bar, BarChart, BarGroup, bar_chart_svg, thousands};
use serde_json::Value;

const END: &str = "<!-- end -->";

/// Text in a picture that is a file of its own follows the colours of the page around it.
const STYLE: &str = "<style>svg{color:#1f2328}@media(prefers-color-scheme:dark){svg{color:#e6edf3}}</style>";

fn main() -> Result<()> {
    let folder = folder();
    let page = folder.join("README.md");
    let before = fs::read_to_string(&page).with_context(|| format!("cannot read {}", page.display()))?;
    let (after, charts) = rendered(&before)?;
    for (name, svg) in charts {
        let file = folder.join("pictures").join(format!("{name}.svg"));
        fs::write(&file, svg).with_context(|| format!("cannot write {}", file.display()))?;
    }
    fs::write(&page, after).with_context(|| format!("cannot write {}", page.display()))
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The page with new tables, and the charts by name.
fn rendered(page: &str) -> Result<(String, BTreeMap<String, String>)> {
    let (mut out, mut charts) = (String::new(), BTreeMap::new());
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        out += line;
        out += "\n";
        let Some(comment) = line.strip_prefix("<!-- ").and_then(|line| line.strip_suffix(" -->")) else {
            continue;
        };
        let Some((kind, name)) = comment.split_once(' ') else { continue };
        let file = folder().join("results").join(format!("{name}.json"));
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let result: Value =
            serde_json::from_str(&text).with_context(|| format!("{} is not JSON", file.display()))?;
        match kind {
            "table" => out += &table(&result)?,
            "chart" => {
                let _ = writeln!(out, "\n![{}: ratios](pictures/{name}.svg)\n", text_of(&result, "title")?);
                charts.insert(name.to_owned(), chart(&result)?);
            }
            other => bail!("`<!-- {other} {name} -->`: the page has tables and charts"),
        }
        out += END;
        out += "\n";
        if !lines.any(|line| line == END) {
            bail!("`{line}` has no `{END}`");
        }
    }
    Ok((out, charts))
}

fn text_of<'v>(result: &'v Value, field: &str) -> Result<&'v str> {
    result[field].as_str().with_context(|| format!("a result has no `{field}`"))
}

fn rows(result: &Value) -> Result<&Vec<Value>> {
    result["rows"].as_array().context("a result has no `rows`")
}

fn table(result: &Value) -> Result<String> {
    let rows = rows(result)?;
    let has = |field: &str| rows.iter().any(|row| !row[field].is_null());
    let columns: Vec<(&str, &str)> = [
        ("ours", "heedful"),
        ("peer", "peer"),
        ("ratio", "ratio (p25 – p75)"),
        ("peer_settings", "the peer's settings"),
    ]
    .into_iter()
    .filter(|(field, _)| has(field))
    .collect();
    let units: Vec<&str> = rows.iter().filter_map(|row| row["unit"].as_str()).collect();
    let same_unit = units.windows(2).all(|pair| pair[0] == pair[1]);
    let mut out = String::from("\n|");
    let unit = if same_unit { units.first().copied().unwrap_or_default() } else { "" };
    let _ = write!(out, " {unit} |");
    for (_, title) in &columns {
        let _ = write!(out, " {title} |");
    }
    out += "\n|---|";
    out += &"---|".repeat(columns.len());
    out += "\n";
    let mut group = "";
    for row in rows {
        let this = text_of(row, "group")?;
        if this != group {
            let _ = writeln!(out, "| **{this}** |{}", " |".repeat(columns.len()));
            group = this;
        }
        let _ = write!(out, "| {} |", text_of(row, "cell")?);
        for (field, _) in &columns {
            let value = &row[*field];
            let cell = match (*field, value["median"].as_f64()) {
                ("peer_settings", _) => value.as_str().unwrap_or_default().to_owned(),
                (_, None) => String::new(),
                ("ratio", Some(median)) => match (value["p25"].as_f64(), value["p75"].as_f64()) {
                    (Some(low), Some(high)) => format!("{median:.2} ({low:.2} – {high:.2})"),
                    _ => format!("{median:.2}"),
                },
                (_, Some(median)) => {
                    let unit = if same_unit { "" } else { row["unit"].as_str().unwrap_or_default() };
                    format!("{} {unit}", number(median)).trim_end().to_owned()
                }
            };
            let _ = write!(out, " {cell} |");
        }
        out += "\n";
    }
    out += "\n| how | |\n|---|---|\n";
    for (name, field) in
        [("work", "work"), ("heedful", "ours"), ("peer", "peer"), ("machine", "machine"), ("date", "date")]
    {
        let _ = writeln!(out, "| {name} | {} |", text_of(result, field)?);
    }
    let _ = writeln!(out, "| command | `{}` |\n", text_of(result, "command")?);
    Ok(out)
}

/// `16,477`, `81.3`, `39.7`.
fn number(value: f64) -> String {
    if value >= 100.0 { thousands(value.round() as u64) } else { value.to_string() }
}

fn chart(result: &Value) -> Result<String> {
    let mut groups: Vec<BarGroup> = Vec::new();
    for row in rows(result)? {
        let (name, ratio) = (text_of(row, "group")?, &row["ratio"]);
        let Some(value) = ratio["median"].as_f64() else { continue };
        let range = ratio["p25"].as_f64().zip(ratio["p75"].as_f64());
        if groups.last().is_none_or(|group| group.name != name) {
            groups.push(BarGroup { name: name.to_owned(), bars: Vec::new() });
        }
        let bars = &mut groups.last_mut().expect("a group was pushed").bars;
        bars.push(Bar { name: text_of(row, "cell")?.to_owned(), value, range });
    }
    let title = format!("{}: speedup over the peer, median and quartiles", text_of(result, "title")?);
    let svg = bar_chart_svg(&BarChart { title, reference: Some(1.0), groups });
    // The style belongs inside the element.
    let (start, rest) = svg.split_once('>').context("a chart is an SVG")?;
    Ok(format!("{start}>{STYLE}{rest}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_and_its_charts_are_those_of_the_results() -> Result<()> {
        let page = fs::read_to_string(folder().join("README.md"))?;
        let (rendered, charts) = rendered(&page)?;
        assert!(rendered == page, "bench/README.md is out of date: cargo xtask bench page writes it");
        for (name, svg) in charts {
            let file = folder().join("pictures").join(format!("{name}.svg"));
            assert!(fs::read_to_string(&file)? == svg, "{name}.svg is out of date: cargo xtask bench page");
        }
        Ok(())
    }

    #[test]
    fn a_marker_without_an_end_is_an_error() {
        let error = rendered("<!-- table 2026-11-18-gpu -->\nx\n").expect_err("no end");
        assert!(error.to_string().contains("has no `<!-- end -->`"), "{error}");
    }
}
