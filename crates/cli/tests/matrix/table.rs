//! The outcomes of all uses as a table: a row per command, a column per task.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Instant;

use crate::kinds::Kind;

/// The outcome of one use.
pub(crate) enum Outcome {
    /// It works; the distance of its numbers from those of f32, if comparable.
    Passed(Option<f64>),
    /// It is refused with a message, for every stored type.
    Refused(String),
    /// A fault.
    Fault(String),
}

/// Counts of a cell.
#[derive(Clone, Default)]
struct Cell {
    passed: usize,
    refused: usize,
    faults: usize,
    /// Number of passed uses whose numbers were compared.
    compared: usize,
    farthest: f64,
}

/// All outcomes.
pub(crate) struct Table {
    begin: Instant,
    kinds: usize,
    cells: BTreeMap<(String, String), Cell>,
    faults: Vec<String>,
    /// Messages of refusals, without parts that differ between models, and their counts.
    refusals: BTreeMap<String, usize>,
}

/// The first line of a refusal, without numbers and file names.
fn shortened(sentence: &str) -> String {
    let line = sentence.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let is_name = |word: &&str| !word.contains(['/', '.']) && !word.chars().any(|c| c.is_ascii_digit());
    line.split(' ').filter(is_name).collect::<Vec<_>>().join(" ").replace("model", "f32")
}

impl Default for Table {
    fn default() -> Table {
        Table {
            begin: Instant::now(),
            kinds: 0,
            cells: BTreeMap::new(),
            faults: Vec::new(),
            refusals: BTreeMap::new(),
        }
    }
}

impl Table {
    pub(crate) fn add(&mut self, kind: &Kind, outcomes: Vec<(String, Outcome)>) {
        self.kinds += 1;
        let task = if kind.task.starts_with("import-") { "imported" } else { &kind.task };
        for (path, outcome) in outcomes {
            let cell = self.cells.entry((path, task.to_owned())).or_default();
            match outcome {
                Outcome::Passed(distance) => {
                    cell.passed += 1;
                    cell.compared += usize::from(distance.is_some());
                    cell.farthest = cell.farthest.max(distance.unwrap_or(0.0));
                }
                Outcome::Refused(sentence) => {
                    cell.refused += 1;
                    *self.refusals.entry(shortened(&sentence)).or_default() += 1;
                }
                Outcome::Fault(fault) => {
                    cell.faults += 1;
                    self.faults.push(fault);
                }
            }
        }
    }

    /// Messages of refusals, the most frequent first.
    pub(crate) fn refusals(&self) -> Vec<(usize, &str)> {
        let mut all: Vec<(usize, &str)> =
            self.refusals.iter().map(|(text, count)| (*count, text.as_str())).collect();
        all.sort_by_key(|&(count, _)| std::cmp::Reverse(count));
        all
    }

    /// Uses that passed with no kind, which are therefore untested.
    pub(crate) fn never_passed(&self) -> Vec<&str> {
        let mut passed: BTreeMap<&str, usize> = BTreeMap::new();
        self.cells.iter().for_each(|((path, _), cell)| *passed.entry(path).or_default() += cell.passed);
        passed.into_iter().filter(|&(_, passed)| passed == 0).map(|(path, _)| path).collect()
    }

    pub(crate) fn faults(&self) -> &[String] {
        &self.faults
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut tasks: Vec<&str> = self.cells.keys().map(|(_, task)| task.as_str()).collect();
        tasks.sort_unstable();
        tasks.dedup();
        let mut paths: Vec<&str> = self.cells.keys().map(|(path, _)| path.as_str()).collect();
        paths.dedup();
        write!(f, "{:<16}", "passed/refused")?;
        tasks.iter().try_for_each(|task| write!(f, "{task:>22}"))?;
        writeln!(f)?;
        let (mut uses, mut refused) = (0, 0);
        for path in paths {
            write!(f, "{path:<16}")?;
            for task in &tasks {
                let cell =
                    self.cells.get(&(path.to_owned(), (*task).to_owned())).cloned().unwrap_or_default();
                (uses, refused) = (uses + cell.passed + cell.refused + cell.faults, refused + cell.refused);
                let faults = if cell.faults > 0 { format!(" {} FAULTS", cell.faults) } else { String::new() };
                let far =
                    if cell.farthest > 0.0 { format!(" ±{:.3}", cell.farthest) } else { String::new() };
                write!(f, "{:>22}", format!("{}/{}{far}{faults}", cell.passed, cell.refused))?;
            }
            writeln!(f)?;
        }
        let (faults, seconds) = (self.faults.len(), self.begin.elapsed().as_secs());
        let compared: usize = self.cells.values().map(|cell| cell.compared).sum();
        write!(
            f,
            "{} kinds, {uses} uses: {} passed, {compared} of them compared with f32, {refused} refused with a message, \
             {faults} faults; {seconds} s",
            self.kinds,
            uses - refused - faults
        )
    }
}
