//! Every command, route and Python class with every kind of model.
//!
//! ```text
//! kinds    every pair of values of task, family, stored type and all keys of a recipe that change how a model computes (`kinds`)
//! uses     every command that takes a model, alone and with each of its options (`uses`); every route of a server (`routes`); every
//!          class and method of the Python package (`crates/python/tests/matrix.py`)
//! passed   no run waits for itself, panics or ends without a reason; a stored type changes neither whether a use works
//!          nor, beyond a bound, its numbers (`numbers`)
//! ```
//!
//! `cargo xtask matrix` runs `pairs` in release and prints the table; `cargo xtask matrix --all` runs every option with every kind.

mod covering;
mod kinds;
mod numbers;
mod process;
mod routes;
mod table;
mod uses;

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use kinds::Kind;
use process::Ended;
use table::{Outcome, Table};
use uses::{Extra, Use};

/// Which options each kind of model is used with.
#[derive(Clone, Copy, PartialEq)]
enum Options {
    /// None.
    None,
    /// For each command some, so that the kinds of a task have all of them together.
    Shared,
    /// All.
    All,
}

#[test]
fn some_kinds_work_with_every_command() {
    finish(&run(&kinds::few(), Options::None));
}

#[test]
#[ignore = "takes minutes: cargo xtask matrix"]
fn pairs() {
    let (kinds, pairs) = kinds::all();
    let table = run(&kinds, Options::Shared);
    println!("{} kinds of models have {pairs} pairs of values.", kinds.len());
    finish(&table);
}

#[test]
#[ignore = "takes an hour: cargo xtask matrix --all"]
fn everything() {
    finish(&run(&kinds::all().0, Options::All));
}

fn finish(table: &Table) {
    table.refusals().iter().for_each(|(count, sentence)| println!("{count:>5} × {sentence}"));
    println!("{table}");
    assert!(table.faults().is_empty(), "{} faults:\n{}", table.faults().len(), table.faults().join("\n"));
}

/// What worked for a command and a task before: tried first with the next kind.
type Known = Mutex<HashMap<(String, String), Extra>>;

fn run(kinds: &[Kind], options: Options) -> Table {
    let (place, uses) = (tempfile::tempdir().expect("a folder"), uses::all());
    let (table, known, next) = (Mutex::new(Table::default()), Known::default(), AtomicUsize::new(0));
    let work = || {
        while let Some(kind) = kinds.get(next.fetch_add(1, Ordering::Relaxed)) {
            let folder = place.path().join(&kind.name);
            let of_kind = Tried { kind, folder: &folder, options, known: &known };
            let outcomes = of_kind.outcomes(&uses);
            eprintln!("{}: {}", kind.name, kind.description());
            table.lock().unwrap_or_else(PoisonError::into_inner).add(kind, outcomes);
            // Models that were used are not needed again.
            let _ = fs::remove_dir_all(&folder);
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    table.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// A kind of model in its folder.
struct Tried<'a> {
    kind: &'a Kind,
    folder: &'a Path,
    options: Options,
    known: &'a Known,
}

impl Tried<'_> {
    /// What every use came to.
    fn outcomes(&self, uses: &[Use]) -> Vec<(String, Outcome)> {
        if let Err(error) = self.kind.make(self.folder) {
            return vec![("make".to_owned(), Outcome::Fault(error))];
        }
        let mut outcomes = vec![("make".to_owned(), Outcome::Passed(None))];
        for one in uses {
            let Some(inputs) = self.inputs(one) else {
                let why = self.used(one, "f32", &Extra::new()).stderr;
                outcomes.push((one.path.clone(), Outcome::Refused(why)));
                continue;
            };
            outcomes.push((one.path.clone(), self.compared(one, &inputs)));
            let values = one.options();
            let is_of_this_kind = |number: &usize| match self.options {
                Options::None => false,
                Options::Shared => number % SHARING == self.kind.number() % SHARING,
                Options::All => true,
            };
            for number in (0..values.len()).filter(is_of_this_kind) {
                let extra = [&inputs[..], &values[number].extra].concat();
                outcomes.push((one.path.clone(), self.compared(one, &extra)));
            }
        }
        outcomes.push(("serve".to_owned(), routes::outcome(self.folder, self.kind.number())));
        outcomes.extend(self.in_python().map(|outcome| ("python".to_owned(), outcome)));
        outcomes
    }

    /// Every class and method of the Python package, if `HEEDFUL_MATRIX_PYTHON` names an interpreter that can import it.
    fn in_python(&self) -> Option<Outcome> {
        let interpreter = std::env::var_os("HEEDFUL_MATRIX_PYTHON")?;
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../python/tests/matrix.py");
        let mut command = Command::new(interpreter);
        command.current_dir(self.folder).args([script, "model", &self.kind.number().to_string()]);
        let ended = process::limited(command.env("HEEDFUL_THREADS", "1"), self.folder);
        let about = || format!("[{}] python: {}", self.kind.description(), ended.stderr.trim());
        Some(if ended.is_good() { Outcome::Passed(None) } else { Outcome::Fault(about()) })
    }

    /// The inputs with which a command works with the f32 model.
    fn inputs(&self, one: &Use) -> Option<Extra> {
        let key = (one.path.clone(), self.kind.task.clone());
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        let is_good = |extra: &Extra| self.used(one, "f32", extra).is_good();
        let found = known.filter(is_good).or_else(|| one.inputs().into_iter().find(is_good))?;
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(key, found.clone());
        Some(found)
    }

    /// A use of the stored model against the same use of the f32 model.
    fn compared(&self, one: &Use, extra: &Extra) -> Outcome {
        let mut exact_extra = extra.clone();
        if one.has_compute() && !extra.iter().any(|argument| argument == "--compute") {
            exact_extra.extend(["--compute".to_owned(), "f32".to_owned()]);
        }
        let [exact, other] = [self.used(one, "f32", &exact_extra), self.used(one, "model", extra)];
        let arguments =
            || format!("[{}] {}", self.kind.description(), one.arguments("model", extra).join(" "));
        if let Some(fault) = exact.fault().or_else(|| other.fault()) {
            return Outcome::Fault(format!("{}: {fault}", arguments()));
        }
        match (exact.is_good(), other.is_good()) {
            (false, false) => Outcome::Refused(other.stderr),
            (true, true) => self
                .near(one, [&exact, &other])
                .unwrap_or_else(|far| Outcome::Fault(format!("{}: {far:.3} away from f32", arguments()))),
            // A model of integers is not quantized again.
            (true, false) if one.path == "quantize" && self.kind.stored == "int8" => {
                Outcome::Refused(other.stderr)
            }
            (true, false) => Outcome::Fault(format!("{}: {}", arguments(), other.stderr.trim())),
            (false, true) => Outcome::Fault(format!("{}: f32: {}", arguments(), exact.stderr.trim())),
        }
    }

    fn near(&self, one: &Use, [exact, other]: [&Ended; 2]) -> Result<Outcome, f64> {
        let text = |which: &str, ended: &Ended| {
            let written = fs::read_to_string(self.folder.join(format!("{which}.out.json")));
            written.unwrap_or_else(|_| ended.stdout.clone())
        };
        let [a, b] = [text("f32", exact), text("model", other)].map(|text| numbers::parsed(&text));
        let distance = numbers::distance(&a, &b).filter(|_| !a.is_empty());
        // Hard attention looks at one word, which may be another. So are random draws, sizes of files, and what searches find.
        let others = ["export", "pack", "quantize", "generate", "explain example", "explain prune"];
        let is_compared = !others.contains(&one.path.as_str()) && !self.kind.looks_at_one_word();
        match distance.filter(|_| is_compared) {
            Some(far) if far > numbers::bound(&self.kind.stored) => Err(far),
            near => Ok(Outcome::Passed(near)),
        }
    }

    fn used(&self, one: &Use, model: &str, extra: &Extra) -> Ended {
        let out = format!("{model}.out");
        let _ = fs::remove_dir_all(self.folder.join(&out));
        for end in ["json", "html", "safetensors", "zip"] {
            let _ = fs::remove_file(self.folder.join(format!("{out}.{end}")));
        }
        let arguments = one.arguments(model, extra);
        let arguments: Vec<String> =
            arguments.iter().map(|argument| argument.replace("{out}", &out)).collect();
        process::run(self.folder, &arguments)
    }
}

/// Among how many kinds of models the options of a command are divided.
const SHARING: usize = 12;
