//! `heedful demo --quick` as a process.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use heedful::data::tokenizer::Tokenizers;
use heedful::models::EncoderDecoderConfig;
use heedful::system::Signal;
use heedful::tasks::ModelConfig;
use heedful::tasks::folder::ModelFolder;

use crate::support::{Bounded, program, send};

const EXAMPLE: &str = "一套自动驾驶解决方案";

fn command(out: &Path, arguments: &[&str]) -> Command {
    let mut command = program();
    command.arg("demo").arg("--out").arg(out).args(arguments);
    command
}

fn demo(out: &Path, arguments: &[&str]) -> Output {
    command(out, arguments).finish()
}

fn place() -> (tempfile::TempDir, PathBuf) {
    let place = tempfile::tempdir().expect("a folder");
    let out = place.path().join("demo");
    (place, out)
}

fn text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).expect("the program writes UTF-8")
}

/// The first percentage after the words.
fn exact_match(stdout: &str) -> f64 {
    let line = stdout.lines().find_map(|line| line.trim().strip_prefix("exact match")).expect("the result");
    line.split_whitespace().next().and_then(|number| number.parse().ok()).expect("a number")
}

#[test]
fn it_learns_to_translate_and_writes_a_model_and_a_report() {
    let (_place, out) = place();
    let first = demo(&out, &["--quick", "--text", "一辆红色的新车"]);
    let (stdout, stderr) = (text(&first.stdout), text(&first.stderr));
    assert!(first.status.success(), "{stderr}");
    assert!(exact_match(stdout) > 60.0, "{stdout}");
    for part in ["BLEU", "up to 5 words", EXAMPLE, "mean of all heads", "一辆红色的新车", "heedful translate"]
    {
        assert!(stdout.contains(part), "{part} is missing in:\n{stdout}");
    }

    let report = fs::read_to_string(out.join("report.html")).expect("a report");
    for part in ["Chinese → English", "exact match", "Exact match by length", "head 3", "驾"] {
        assert!(report.contains(part), "{part} is missing in the report");
    }
    for name in ["train.zh", "train.en", "valid.zh", "test.en"] {
        let lines = fs::read_to_string(out.join("data").join(name)).expect("phrases");
        assert!(lines.lines().count() > 20, "{name}");
    }
    let trained = fs::read_to_string(out.join("data/train.zh")).expect("phrases");
    assert!(!trained.lines().any(|line| line.contains(EXAMPLE)));
    let folder = ModelFolder::open(&out).expect("a model's folder");
    folder.load().expect("weights");
    let tokenizers = Tokenizers::load(&out).expect("a vocabulary");
    let ModelConfig::Translate(EncoderDecoderConfig::Transformer(config)) = folder.config else {
        panic!("the demo trains a Transformer")
    };
    assert_eq!(config.source_vocabulary, tokenizers.source.size());

    // A second run in the same folder with a different number of threads gives the same.
    let weights = fs::read(out.join("model.safetensors")).expect("weights");
    let second = demo(&out, &["--quick", "--text", "一辆红色的新车", "--threads", "1"]);
    assert_eq!(text(&second.stdout), stdout);
    assert!(fs::read(out.join("model.safetensors")).expect("weights") == weights, "other weights");
}

#[test]
fn both_directions_are_two_models() {
    let (_place, out) = place();
    let output = demo(&out, &["--quick", "--direction", "both", "--text", "a new red car"]);
    let stdout = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(stdout.contains("Chinese → English") && stdout.contains("English → Chinese"), "{stdout}");
    assert!(stdout.contains("  a new red car\n  → "), "{stdout}");
    for folder in [out.clone(), out.join("en-zh")] {
        ModelFolder::open(&folder).expect("a model's folder").load().expect("weights");
        assert!(folder.join("report.html").is_file());
    }
}

#[test]
fn folders_of_other_programs_are_refused() {
    let (_place, out) = place();
    fs::create_dir(&out).expect("a new folder");
    fs::write(out.join("thesis.tex"), "years of work").expect("enough space");
    let output = demo(&out, &["--quick"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    assert!(text(&output.stderr).contains("name another folder with --out"), "{}", text(&output.stderr));
    assert_eq!(fs::read_dir(&out).expect("still there").count(), 1);
}

#[test]
fn invalid_arguments_are_refused_before_the_training() {
    for (arguments, complaint) in [
        (&["--text", "a red car"][..], "--direction en-zh"),
        (&["--direction", "en-zh", "--text", "一辆车"], "--direction zh-en"),
        (&["--text", " "], "--text is empty"),
        (&["--threads", "0"], "--threads"),
    ] {
        let (_place, out) = place();
        let output = demo(&out, arguments);
        assert!(!output.status.success(), "{arguments:?}");
        assert!(text(&output.stderr).contains(complaint), "{}", text(&output.stderr));
        assert!(!out.exists(), "{arguments:?} left something behind");
    }
}

#[test]
#[cfg_attr(not(unix), ignore = "it sends a signal")]
fn an_interrupted_demo_is_reported_and_replaced_by_the_next_one() {
    let (_place, out) = place();
    let mut child = command(&out, &[]).stderr(Stdio::piped()).stdout(Stdio::null()).running();
    let mut lines =
        BufReader::new(child.stderr.take().expect("a pipe")).lines().map(|line| line.expect("text"));
    lines.find(|line| line.starts_with("training")).expect("it begins to train");
    send(&child, Signal::Interrupt.number());
    let rest: Vec<String> = lines.collect();
    assert_eq!(child.ended().code(), Some(130));
    assert!(rest.iter().any(|line| line.contains("interrupted after step")), "{rest:?}");

    let again = demo(&out, &["--quick"]);
    assert!(again.status.success(), "{}", text(&again.stderr));
}

#[test]
fn several_models_learn_and_are_compared_in_one_table() {
    let (_place, out) = place();
    let output = demo(&out, &["--quick", "--model", "rnn-attention,rnn,conv"]);
    let stdout = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let table = stdout.split("exact match by length\n").nth(1).expect("a table");
    let header: Vec<&str> = table.lines().nth(1).expect("a header").split_whitespace().collect();
    assert_eq!(header, ["rnn-attention", "rnn", "conv"]);
    assert!(table.lines().any(|line| line.trim_start().starts_with("all ")), "{table}");
    for (folder, family) in
        [(out.clone(), "recurrent"), (out.join("rnn"), "recurrent"), (out.join("conv"), "convolutional")]
    {
        let folder = ModelFolder::open(&folder).expect("a model's folder");
        folder.load().expect("weights");
        assert_eq!(folder.config.family().to_string(), family);
    }
    // Without attention there are no weights to show.
    assert_eq!(stdout.matches("Cross attention: ").count(), 2, "{stdout}");

    let twice = demo(&out, &["--quick", "--model", "rnn,rnn"]);
    assert!(!twice.status.success() && text(&twice.stderr).contains("names rnn twice"));
}
