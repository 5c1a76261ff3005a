//! Language models and masked language models, `heedful generate` and `heedful fill`, as processes.

use std::io::Read;
use std::sync::OnceLock;

use crate::support::{Bounded, Workplace, names, same_run, text};
use heedful::metrics::Measure;
use heedful::train::log::read_metrics;
use serde_json::Value;

/// A text of a few repeated sentences.
fn running(lines: usize) -> String {
    let line = |i: usize| match i % 4 {
        0 => "First Citizen:\n",
        1 => "Before we proceed any further, hear me speak.\n",
        2 => "\n",
        _ => "All: Speak, 我们 speak.\n",
    };
    (0..lines).map(line).collect()
}

fn training(task: &str, out: &str, more: &str) -> String {
    format!(
        "train --task {task} --text train.txt --valid-text valid.txt --preset tiny --vocabulary-size 330 \
         --batch-tokens 256 --validation-every 20 --checkpoint-every 7 --log-every 5 --warmup 10 --lr 3e-3 \
         --out {out} {more}"
    )
}

fn written() -> Workplace {
    let place = Workplace::empty();
    place.write("train.txt", running(400).as_bytes());
    place.write("valid.txt", running(40).as_bytes());
    place
}

#[test]
fn recurrent_language_models_are_trained_resumed_and_generate() {
    let place = written();
    let flags = "--family recurrent --cell gru --output-bias --block 32";
    place.good(&training("lm", "whole", &format!("{flags} --steps 40")));
    place.good(&training("lm", "stopped", &format!("{flags} --steps 20")));
    place.good("train --resume stopped --steps 40");
    same_run(&place, "whole", "stopped");
    let text = place.good("generate whole --prompt First --tokens 8 --seed 3");
    assert!(text.starts_with("First"), "{text}");
    assert_eq!(text, place.good("generate stopped --prompt First --tokens 8 --seed 3"));
    place.good("quantize whole --to int8 -o small");
    place.good("generate small --prompt First --tokens 8 --beam 2");
    let error = place.bad(&training("lm", "other", "--family convolutional"));
    assert!(error.contains("Transformers or recurrent"), "{error}");
    let error = place.bad(&training("mlm", "other", "--family recurrent"));
    assert!(error.contains("masked language models are Transformers"), "{error}");
    let error = place.bad(&training("lm", "other", "--family recurrent --window 3"));
    assert!(error.contains("window"), "{error}");
}

/// A workplace with a language model of continuous text in `run`, one of lines in `lines` and a masked one in
/// `masked`.
fn place() -> &'static Workplace {
    static PLACE: OnceLock<Workplace> = OnceLock::new();
    PLACE.get_or_init(|| {
        let place = written();
        place.good(&training("lm", "run", "--steps 80 --block 32"));
        place.good(&training(
            "lm",
            "lines",
            "--steps 60 --block none --positions learned --max-positions 40",
        ));
        place.good(&training("mlm", "masked", "--steps 100 --dropout 0.1"));
        place
    })
}

fn generated(run: &str, prompt: &str, more: &str) -> String {
    let output = place().command(&format!("generate {run} {more} --prompt")).arg(prompt).finish();
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn a_run_learns_a_language_and_reports_its_perplexity() {
    let records = read_metrics(&place().path("run/metrics.jsonl")).expect("records");
    let last = records
        .iter()
        .rfind(|record| record.value(Measure::ValidPerplexity).is_some())
        .expect("a validation");
    let value = |measure: Measure| last.value(measure).expect("a perplexity");
    let (token, word, byte) = (
        value(Measure::ValidPerplexity),
        value(Measure::ValidWordPerplexity),
        value(Measure::ValidBytePerplexity),
    );
    assert!(1.0 < byte && byte < token && token < word && token < 4.0, "{token}, {word}, {byte}");
    assert!(names(&place().path("run")).iter().any(|name| name == "report.html"));
    let report = text(&place().read("run/report.html"));
    assert!(
        report.contains("lowest perplexity of a word") && report.contains("Before we proceed"),
        "{report}"
    );
}

#[test]
fn generated_text_keeps_line_ends() {
    let printed = generated("run", "First Citizen:", "--temperature 0 --tokens 30");
    assert!(
        printed.starts_with("First Citizen:\nBefore we proceed any further, hear me speak.\n\n"),
        "{printed:?}"
    );
    let printed = generated("lines", "Before we", "--temperature 0 --tokens 30");
    assert_eq!(printed, "Before we proceed any further, hear me speak.\n");
}

#[test]
fn the_seed_determines_texts_which_differ() {
    let draw = |seed| generated("run", "All", &format!("--tokens 40 --temperature 2 --seed {seed}"));
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
    let lines = generated("run", "All", "--tokens 40 --n 3 --json --top-k 50 --top-p 0.95 --temperature 3");
    let texts: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(texts.len(), 3);
    assert!(texts.iter().all(|found| found["text"].as_str().is_some_and(|text| text.starts_with("All"))));
    assert_ne!(texts[0]["text"], texts[1]["text"]);
    assert!(generated("run", "", "--tokens 5 --beam 3").ends_with('\n'));
}

#[test]
fn tokens_are_printed_as_they_are_generated() {
    let mut child = place().command("generate run --prompt First --tokens 5000 --seed 3").running();
    let mut start = [0; 12];
    child.stdout.take().expect("a pipe").read_exact(&mut start).expect("the beginning");
    // It is far from its end, and its output is not read further.
    child.kill();
    child.ended();
    assert!(start.starts_with(b"First"), "{:?}", text(&start));
}

#[test]
fn gaps_are_filled() {
    let fill = |gap: &str, more: &str| {
        let output = place().command("fill masked").arg(gap).args(more.split(' ')).finish();
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let found = fill("Before we proceed any <mask>, hear me speak.", "--top 2 --compute f32");
    let lines: Vec<&str> = found.lines().collect();
    assert_eq!(lines.len(), 3, "{found}");
    assert!(lines[1].starts_with("gap 1   0."), "{found}");
    let found: Value =
        serde_json::from_str(&fill("First <mask>: <mask> me", "--json --top 3")).expect("JSON");
    let gaps = found["gaps"].as_array().expect("gaps");
    assert!(gaps.len() == 2 && gaps.iter().all(|guesses| guesses.as_array().is_some_and(|g| g.len() == 3)));
    let first = found["gaps"][0][0]["probability"].as_f64().expect("a number");
    assert!(first >= found["gaps"][0][1]["probability"].as_f64().expect("a number"));
    assert!(!found["filled"].as_str().expect("text").contains("<mask>"));
}

#[test]
fn resumed_runs_give_the_same_weights() {
    let place = written();
    for (task, more) in [("lm", "--block 16 --dropout 0.1"), ("mlm", "--dropout 0.1")] {
        let (whole, parts) = (format!("{task}-whole"), format!("{task}-parts"));
        place.good(&training(task, &whole, &format!("--steps 30 {more}")));
        place.good(&training(task, &parts, &format!("--steps 20 {more}")));
        place.good(&format!("train --resume {parts} --steps 30"));
        same_run(&place, &whole, &parts);
    }
}

#[test]
fn text_may_come_from_standard_input() {
    let place = written();
    let line = training("lm", "piped", "--steps 5 --block 16").replace("--text train.txt", "--text -");
    let mut child = place.start(&line);
    let mut input = child.stdin.take().expect("a pipe");
    std::io::Write::write_all(&mut input, running(100).as_bytes()).expect("it reads");
    drop(input);
    assert!(child.ended().success());
    place.good("train --resume piped --steps 7");
}

#[test]
fn training_and_generation_errors_give_a_reason() {
    let place = place();
    place.write("empty.txt", b"");
    let long = "speak ".repeat(60);
    let cases = [
        ("train --task lm --out x", "--text"),
        ("train --task lm --text nowhere.txt --out x", "nowhere.txt"),
        ("train --task lm --text empty.txt --out x", ""),
        ("train --task lm --text train.txt --block 1 --out x", "block"),
        ("train --task lm --text train.txt --positions learned --max-positions 100 --out x", "max_positions"),
        ("train --task mlm --label-text train.txt --out x", "data.text"),
        ("train --task lm --text train.txt --init-from masked --out x", "init_from"),
        ("generate nowhere", "nowhere"),
        ("generate run --temperature -1", "temperature"),
        ("generate run --top-p 2", "top-p"),
        ("generate run --n 2 --temperature 0", "at least 2"),
        ("generate masked", "heedful fill"),
        ("translate run valid.txt", "heedful generate"),
        ("classify run valid.txt", "heedful generate"),
        ("fill masked nothing", "<mask>"),
        ("fill masked <mask> --top 0", "at least 1"),
    ];
    for (line, named) in cases {
        let error = place.bad(line);
        assert!(error.contains(named), "{line}: {error}");
        assert!(!error.contains("panicked"), "{line}: {error}");
    }
    let output = place.command("generate lines --prompt").arg(&long).finish();
    assert!(
        text(&output.stderr).contains("for the 38 tokens that the model reads at a time"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn help_states_the_maximum_number_of_texts_and_the_context_of_a_line() {
    let help = |command: &str| {
        let printed = Workplace::empty().good(&format!("{command} --help"));
        printed.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert!(help("generate").contains("Number of texts to generate, at most 1000"));
    assert!(help("score").contains("a line is predicted from the preceding lines in the same block"));
}
