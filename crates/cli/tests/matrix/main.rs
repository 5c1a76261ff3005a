//! Every command, route and Python class with every kind of model.
//!
//! ```text
//! kinds    every pair of values of task, family, stored type and all keys of a recipe that change how a model computes (`kinds`)
//! uses     every command that takes a model, alone and with each of its options (`uses`); every route of a server (`routes`); every
//!          class and method of the Python package (`crates/python/tests/matrix.py`)
//! passed   no run hangs, panics or fails without a message; a stored type changes neither the success of a use
//!          nor, beyond a bound, its numbers (`numbers`); every use works with at least one kind
//! ```
//!
//! `cargo xtask matrix` runs `pairs` in release and prints the table; `cargo xtask matrix --all` runs every
//! option with every kind.

mod covering;
mod kinds;
mod numbers;
mod process;
mod routes;
mod table;
mod uses;

use std::collections::HashMap;
use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use kinds::Kind;
use numbers::Texts;
use process::{Ended, Workplace};
use table::{Outcome, Table};
use uses::{Extra, Use};

/// The options that each kind of model is used with.
#[derive(Clone, Copy, PartialEq)]
enum Options {
    /// None.
    None,
    /// Some for each command, so that the kinds of a task cover all of them together.
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
    assert!(table.never_passed().is_empty(), "no kind passed {:?}", table.never_passed());
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

/// Inputs that worked for a command and a task, which are tried first with the next kind.
type WorkingInputs = Mutex<HashMap<(String, String), Extra>>;

fn run(kinds: &[Kind], options: Options) -> Table {
    let (folder, uses) = (tempfile::tempdir().expect("a folder"), uses::all());
    let (table, inputs, next) = (Mutex::new(Table::default()), WorkingInputs::default(), AtomicUsize::new(0));
    let work = || {
        while let Some(kind) = kinds.get(next.fetch_add(1, Ordering::Relaxed)) {
            let place = Workplace::new(folder.path().join(&kind.name));
            let of_kind = TestedKind { kind, place: &place, options, inputs: &inputs };
            let outcomes = of_kind.outcomes(&uses);
            eprintln!("{}: {}", kind.name, kind.description());
            table.lock().unwrap_or_else(PoisonError::into_inner).add(kind, outcomes);
            // Tested models are no longer needed.
            let _ = fs::remove_dir_all(&place.folder);
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    table.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// A kind of model with its folder.
struct TestedKind<'a> {
    kind: &'a Kind,
    place: &'a Workplace,
    options: Options,
    inputs: &'a WorkingInputs,
}

impl TestedKind<'_> {
    /// The outcome of every use.
    fn outcomes(&self, uses: &[Use]) -> Vec<(String, Outcome)> {
        if let Err(error) = self.kind.make(self.place) {
            return vec![("make".to_owned(), Outcome::Fault(error))];
        }
        let mut outcomes = vec![("make".to_owned(), Outcome::Passed(None))];
        let is_tried = |one: &&Use| !one.trains() || self.kind.number().is_multiple_of(TRAINED);
        for one in uses.iter().filter(is_tried) {
            let inputs = match self.inputs(one) {
                Ok(inputs) => inputs,
                Err(why_not) => {
                    outcomes.push((one.path.clone(), why_not));
                    continue;
                }
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
        outcomes.push(("serve".to_owned(), routes::outcome(self.place, self.kind)));
        outcomes.extend(self.in_python().map(|outcome| ("python".to_owned(), outcome)));
        outcomes
    }

    /// Every class and method of the Python package, if `HEEDFUL_MATRIX_PYTHON` names an
    /// interpreter that can import it.
    fn in_python(&self) -> Option<Outcome> {
        let interpreter = std::env::var_os("HEEDFUL_MATRIX_PYTHON")?;
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../python/tests/matrix.py");
        let mut command = Command::new(interpreter);
        command.current_dir(&self.place.folder).args([script, "model", &self.kind.number().to_string()]);
        let ended = self.place.limited(command.env("HEEDFUL_THREADS", "1"));
        let about = || format!("[{}] python: {}", self.kind.description(), ended.stderr.trim());
        Some(if ended.is_good() { Outcome::Passed(None) } else { Outcome::Fault(about()) })
    }

    /// Inputs with which a command works with the f32 model, or the outcome of the first failed run. A fault
    /// ends the search, because wrong inputs must not cause one.
    fn inputs(&self, one: &Use) -> Result<Extra, Outcome> {
        let key = (one.path.clone(), self.kind.task.clone());
        let known = self.inputs.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        let mut refusal = None;
        for extra in known.into_iter().chain(one.inputs()) {
            let ended = self.used(one, "f32", &extra);
            if let Some(fault) = ended.fault() {
                return Err(Outcome::Fault(format!("{}: {fault}", self.about(one, "f32", &extra))));
            }
            if ended.is_good() {
                self.inputs.lock().unwrap_or_else(PoisonError::into_inner).insert(key, extra.clone());
                return Ok(extra);
            }
            refusal.get_or_insert(ended.stderr);
        }
        Err(Outcome::Refused(refusal.unwrap_or_default()))
    }

    fn about(&self, one: &Use, model: &str, extra: &Extra) -> String {
        format!("[{}] {}", self.kind.description(), one.arguments(model, extra).join(" "))
    }

    /// Compares a use of the stored model with the same use of the f32 model.
    fn compared(&self, one: &Use, extra: &Extra) -> Outcome {
        let mut exact_extra = extra.clone();
        if one.has_compute() && !extra.iter().any(|argument| argument == "--compute") {
            exact_extra.extend(["--compute".to_owned(), "f32".to_owned()]);
        }
        self.write_masks(one, &exact_extra);
        let [exact, other] = [self.used(one, "f32", &exact_extra), self.used(one, "model", extra)];
        let arguments = || self.about(one, "model", extra);
        if let Some(fault) = exact.fault().or_else(|| other.fault()) {
            return Outcome::Fault(format!("{}: {fault}", arguments()));
        }
        match (exact.is_good(), other.is_good()) {
            (false, false) => Outcome::Refused(other.stderr),
            (true, true) => self
                .near(one, extra, [&exact, &other])
                .map_or_else(|why| Outcome::Fault(format!("{}: {why}", arguments())), Outcome::Passed),
            // An int8 model cannot be quantized again.
            (true, false) if one.path == "quantize" && self.kind.stored == "int8" => {
                Outcome::Refused(other.stderr)
            }
            // It determines the model's languages by decoding, which may fail.
            _ if one.path == "explain example" => Outcome::Refused([other.stderr, exact.stderr].concat()),
            (true, false) => Outcome::Fault(format!("{}: {}", arguments(), other.stderr.trim())),
            (false, true) => Outcome::Fault(format!("{}: f32: {}", arguments(), exact.stderr.trim())),
        }
    }

    /// The distance between the results, if they are comparable.
    fn near(&self, one: &Use, extra: &Extra, [exact, other]: [&Ended; 2]) -> Result<Option<f64>, String> {
        let text = |which: &str, ended: &Ended| {
            let written = fs::read_to_string(self.place.folder.join(format!("{which}.out.json")));
            written.unwrap_or_else(|_| ended.stdout.clone())
        };
        let texts = [text("f32", exact), text("model", other)];
        let [a, b] = texts.each_ref().map(|text| numbers::parsed(text));
        let may_differ = one.texts(extra);
        // Not comparable: hard attention, random draws, file sizes, and search results.
        let others = ["export", "pack", "quantize", "generate", "explain example", "explain prune", "train"];
        if others.contains(&one.path.as_str()) || self.kind.has_hard_attention() {
            return Ok(None);
        }
        let is_json = one.arguments("model", extra).iter().any(|argument| argument == "--json");
        match numbers::distance(&a, &b, may_differ) {
            Some(far) if far > numbers::bound(&self.kind.stored) => Err(format!("{far:.3} away from f32")),
            None if may_differ != Texts::Found => {
                Err(format!("another result: {} of f32: {}", texts[1], texts[0]))
            }
            Some(_) if a.is_empty() && is_json && may_differ != Texts::Found => {
                Err(format!("no JSON: {}", texts[1]))
            }
            near => Ok(near.filter(|_| !a.is_empty())),
        }
    }

    /// Writes the masks of a use, with the shape of the f32 model's attention: the second key is masked for
    /// all but the second query.
    fn write_masks(&self, one: &Use, extra: &Extra) {
        let Some(place) = extra.iter().position(|argument| argument == "--mask") else { return };
        let unmasked = [&extra[..place], &extra[place + 2..]].concat();
        self.used(one, "f32", &unmasked);
        let written = fs::read_to_string(self.place.folder.join("f32.out.json")).unwrap_or_default();
        for explained in numbers::parsed(&written) {
            let layers = explained[0]["outputs"][0]["attention"].as_array().cloned().unwrap_or_default();
            for layer in layers {
                let [queries, keys] = ["queries", "keys"].map(|name| layer[name].as_u64().unwrap_or(0));
                let row =
                    |query: u64| (0..keys).map(move |key| if key == 1 && query != 1 { "0 " } else { "1 " });
                let rows: String = (0..queries).map(|query| row(query).collect::<String>() + "\n").collect();
                let kind = layer["kind"].as_str().unwrap_or_default();
                for name in [kind, "self"].iter().filter(|name| **name != "self" || kind.ends_with("coder")) {
                    fs::write(self.place.folder.join(format!("mask.{name}")), &rows)
                        .expect("room on the disk");
                }
            }
        }
    }

    fn used(&self, one: &Use, model: &str, extra: &Extra) -> Ended {
        let out = format!("{model}.out");
        let _ = fs::remove_dir_all(self.place.folder.join(&out));
        for end in ["json", "html", "safetensors", "zip"] {
            let _ = fs::remove_file(self.place.folder.join(format!("{out}.{end}")));
        }
        let arguments = one.arguments(model, extra);
        let arguments: Vec<String> =
            arguments.iter().map(|argument| argument.replace("{out}", &out)).collect();
        self.place.run(&arguments)
    }
}

/// Number of kinds of models among which the options of a command are divided.
const SHARING: usize = 12;
/// One of this many kinds is fine-tuned.
const TRAINED: usize = 5;

#[test]
#[cfg_attr(not(unix), ignore = "a script stands for the program")]
fn a_command_that_fails_with_every_model_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("broken");
    let text = format!(
        "#!/bin/sh\ncase \"$1\" in\nexplain) echo \"thread 'main' panicked at explain\" >&2; exit 101;;\n\
         score) echo nonsense;;\n*) exec {} \"$@\";;\nesac\n",
        env!("CARGO_BIN_EXE_heedful")
    );
    fs::write(&script, text).expect("room on the disk");
    assert!(Command::new("chmod").arg("+x").arg(&script).status().expect("chmod").success());
    let kind = &kinds::few()[0];
    let place = Workplace::of(folder.path().join("kind"), script);
    let of_kind =
        TestedKind { kind, place: &place, options: Options::None, inputs: &WorkingInputs::default() };
    let mut uses = uses::all();
    uses.retain(|one| ["explain", "score", "translate"].contains(&one.path.as_str()));
    let mut table = Table::default();
    table.add(kind, of_kind.outcomes(&uses));
    let [score, explain] = table.faults() else { panic!("{:?}", table.faults()) };
    assert!(explain.contains("explain f32") && explain.contains("panicked at"), "{explain}");
    assert!(score.contains("score model") && score.contains("no JSON: nonsense"), "{score}");
    assert_eq!(table.never_passed(), ["explain", "score"]);
}
