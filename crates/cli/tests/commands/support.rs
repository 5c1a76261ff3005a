//! Shared by the tests: a folder with a small corpus, and the program as a process.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use heedful::train::checkpoint::{self, Checkpoints};
use heedful_grammar::Grammar;
use tempfile::TempDir;

pub(crate) use crate::process::{Bounded, Running, program, send, with_default_signals};

/// A folder with `train.zh`, `train.en`, `valid.zh` and `valid.en`, removed at the end.
pub(crate) struct Workplace {
    folder: TempDir,
}

impl Workplace {
    /// A folder without a corpus.
    pub(crate) fn empty() -> Workplace {
        Workplace { folder: tempfile::tempdir().expect("a folder") }
    }

    /// A folder with this number of training pairs.
    pub(crate) fn new(pairs: usize) -> Workplace {
        let place = Workplace::empty();
        let split = Grammar::new().split(1, pairs, 40);
        for (name, phrases) in [("train", &split.train), ("valid", &split.test)] {
            let text = |side: fn(&heedful_grammar::Phrase) -> &str| {
                phrases.iter().map(|phrase| format!("{}\n", side(phrase))).collect::<String>()
            };
            place.write(&format!("{name}.zh"), text(|phrase| &phrase.chinese).as_bytes());
            place.write(&format!("{name}.en"), text(|phrase| &phrase.english).as_bytes());
        }
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path(name), bytes).expect("room on the disk");
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        let path = self.path(name);
        fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    pub(crate) fn lines(&self, name: &str) -> Vec<String> {
        text(&self.read(name)).lines().map(str::to_owned).collect()
    }

    /// The program with these arguments, in this folder.
    pub(crate) fn command(&self, arguments: &str) -> Command {
        let mut command = program();
        command.current_dir(self.folder.path()).args(arguments.split_whitespace());
        command
    }

    pub(crate) fn run(&self, arguments: &str) -> Output {
        self.command(arguments).finish()
    }

    /// Runs the program, which must succeed; returns its standard output.
    pub(crate) fn good(&self, arguments: &str) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// Runs the program, which must fail; returns its standard error.
    pub(crate) fn bad(&self, arguments: &str) -> String {
        let output = self.run(arguments);
        assert!(!output.status.success(), "{arguments} succeeded: {}", text(&output.stderr));
        text(&output.stderr)
    }

    pub(crate) fn start(&self, arguments: &str) -> Running {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stderr(Stdio::null()).running()
    }

    /// Arguments of a training run of a second or two, in folder `out`.
    pub(crate) fn training(out: &str, more: &str) -> String {
        format!(
            "train --src train.zh --tgt train.en --valid-src valid.zh --valid-tgt valid.en --preset tiny \
             --vocabulary-kind character --vocabulary-size 700 --batch-tokens 512 --dropout 0.1 \
             --validation-every 20 --checkpoint-every 7 --log-every 5 --warmup 20 --out {out} {more}"
        )
    }
}

/// Checks that two runs have the same weights, moments and average, and wrote the same model.
pub(crate) fn same_run(place: &Workplace, one: &str, other: &str) {
    let last = |run: &str| {
        let checkpoints = Checkpoints::read_only(&place.path(run).join("checkpoints"));
        let step = checkpoints.last(1).expect("a checkpoint")[0];
        checkpoint::read(&checkpoints.path(step)).expect("a whole checkpoint")
    };
    assert_eq!(last(one).trainer, last(other).trainer, "weights, moments or average differ");
    let model = |run: &str| place.read(&format!("{run}/model.safetensors"));
    assert!(model(one) == model(other), "final models differ");
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
