//! Training a classifier, `heedful classify`, and starting from a masked language model, as processes.

use std::sync::OnceLock;

use crate::support::{Workplace, names, same_run, text};
use heedful::metrics::Measure;
use heedful::train::log::read_metrics;
use serde_json::Value;

/// Texts whose label is decided by a single word.
fn labelled(texts: usize, first: usize) -> String {
    let things = ["the film", "this book", "our dinner", "a long journey", "that song", "the new house"];
    let moods = [
        ("good", ["wonderful", "lovely", "great"]),
        ("not so good", ["dull", "awful", "cold"]),
        ("中", ["fair", "plain", "usual"]),
    ];
    let line = |i: usize| {
        let (label, words) = moods[i % 3];
        format!("{label}\t{} was {} for us in year {}\n", things[i / 9 % 6], words[i / 3 % 3], i % 50)
    };
    (first..first + texts).map(line).collect()
}

fn training(out: &str, more: &str) -> String {
    format!(
        "train --task classify --label-text train.tsv --valid-label-text valid.tsv --preset tiny --dropout 0.1 \
         --vocabulary-size 400 --batch-tokens 256 --validation-every 20 --checkpoint-every 7 --log-every 5 --warmup 10 \
         --lr 3e-3 --out {out} {more}"
    )
}

fn written() -> Workplace {
    let place = Workplace::empty();
    place.write("train.tsv", labelled(300, 0).as_bytes());
    place.write("valid.tsv", labelled(60, 1000).as_bytes());
    place
}

/// A workplace with a classifier in `run`, which every test shares.
fn place() -> &'static Workplace {
    static PLACE: OnceLock<Workplace> = OnceLock::new();
    PLACE.get_or_init(|| {
        let place = written();
        place.good(&training("run", "--steps 80"));
        place
    })
}

#[test]
fn a_run_learns_labels_and_reports_how_well() {
    let place = place();
    let files = names(&place.path("run"));
    for name in ["config.json", "labels.json", "model.safetensors", "tokenizer.json", "report.html"] {
        assert!(files.iter().any(|file| file == name), "{name} is missing: {files:?}");
    }
    let records = read_metrics(&place.path("run/metrics.jsonl")).expect("records");
    let best =
        |measure: Measure| records.iter().filter_map(|record| record.value(measure)).fold(0.0, f64::max);
    assert!(best(Measure::ValidAccuracy) > 0.9, "accuracy {}", best(Measure::ValidAccuracy));
    assert!(best(Measure::ValidMacroF1) > 0.9, "macro F1 {}", best(Measure::ValidMacroF1));
    let report = text(&place.read("run/report.html"));
    assert!(
        report.contains("Confusion matrix") && report.contains("not so good") && report.contains("Macro F1")
    );
}

#[test]
fn every_family_can_be_a_classifier() {
    let place = written();
    for family in ["recurrent", "convolutional"] {
        place.good(&training(family, &format!("--steps 80 --family {family}")));
        let records = read_metrics(&place.path(family).join("metrics.jsonl")).expect("records");
        let best =
            records.iter().filter_map(|record| record.value(Measure::ValidAccuracy)).fold(0.0, f64::max);
        assert!(best > 0.9, "{family}: accuracy {best}");
        let found = place.good(&format!("classify {family} valid.tsv"));
        assert!(found.lines().all(|line| line.split('\t').count() == 3), "{found}");
    }
    let error = place.bad("train --task lm --text valid.tsv --family convolutional --out x");
    assert!(error.contains("model.family"), "{error}");
}

#[test]
fn every_line_gets_its_label_and_a_blank_one_stays_blank() {
    let place = place();
    place.write(
        "new.txt",
        "this book was great for us in year 9\n\nthat song was awful for us in year 7\n  \n".as_bytes(),
    );
    let lines: Vec<String> =
        place.good("classify run new.txt --compute f32").lines().map(str::to_owned).collect();
    let label = |line: &str| line.split('\t').next().unwrap_or_default().to_owned();
    assert_eq!(lines.iter().map(|line| label(line)).collect::<Vec<_>>(), ["good", "", "not so good", ""]);
    let fields: Vec<&str> = lines[0].split('\t').collect();
    assert!(fields[1].parse::<f64>().expect("a probability") > 0.5, "{}", lines[0]);
    assert_eq!(fields[2].split(' ').count(), 3);
    assert_eq!(place.good("classify run new.txt --compute f32 -o labels.txt"), "");
    assert_eq!(place.lines("labels.txt"), lines);
}

#[test]
fn json_has_the_probability_of_every_label_and_the_words_attended_to() {
    let place = place();
    place.write("two.txt", b"this book was great for us\nour dinner was cold\n");
    let lines = place.good("classify run two.txt --json --words 2");
    for (number, line) in lines.lines().enumerate() {
        let found: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(found["line"], number + 1);
        let probabilities = found["probabilities"].as_object().expect("probabilities");
        assert!(["good", "not so good", "中"].iter().all(|label| probabilities.contains_key(*label)));
        let sum: f64 = probabilities.values().map(|p| p.as_f64().expect("a number")).sum();
        assert!((sum - 1.0).abs() < 1e-4, "{sum}");
        assert_eq!(found["words"].as_array().expect("words").len(), 2);
    }
}

#[test]
fn a_text_has_the_same_bits_alone_and_in_a_batch() {
    let place = place();
    let texts: Vec<String> =
        labelled(20, 500).lines().map(|line| line.split('\t').nth(1).expect("a text").to_owned()).collect();
    place.write("many.txt", texts.join("\n").as_bytes());
    let together = place.good("classify run many.txt --json");
    for threads in ["1", "3"] {
        assert_eq!(place.good(&format!("classify run many.txt --json --threads {threads}")), together);
    }
    let last = together.lines().last().expect("an answer");
    place.write("last.txt", texts[19].as_bytes());
    assert_eq!(
        place.good("classify run last.txt --json").trim_end().replace("\"line\":1,", "\"line\":20,"),
        last
    );
}

#[test]
fn a_resumed_run_gives_the_same_weights() {
    let place = written();
    place.good(&training("whole", "--steps 40 --ema 0.9 --pooling first"));
    place.good(&training("parts", "--steps 20 --ema 0.9 --pooling first"));
    place.good("train --resume parts --steps 40");
    same_run(&place, "whole", "parts");
}

#[test]
fn a_classifier_starts_from_a_masked_language_model() {
    let place = written();
    let texts: String =
        labelled(300, 0).lines().map(|line| format!("{}\n", line.split('\t').nth(1).unwrap_or(""))).collect();
    place.write("texts.txt", texts.as_bytes());
    place.good(
        "train --task mlm --text texts.txt --valid-text texts.txt --preset tiny --d-model 32 --vocabulary-size 400 \
         --batch-tokens 256 --validation-every 20 --steps 40 --out masked",
    );
    // Sizes and vocabulary are inherited from the masked language model.
    let tuning = |out: &str, more: &str| {
        training(out, more).replace("--preset tiny ", "").replace("--vocabulary-size 400 ", "")
    };
    place.good(&tuning("tuned", "--steps 30 --init-from masked"));
    assert_eq!(place.read("tuned/tokenizer.json"), place.read("masked/tokenizer.json"));
    assert!(text(&place.read("tuned/config.json")).contains("\"d_model\": 32"));
    assert!(place.good("classify tuned valid.tsv").lines().count() == 60);
    place.good("train --resume tuned --steps 32");
    // Another classifier is fine-tuned from this one.
    place.good(&tuning("again", "--steps 5 --init-from tuned"));
    assert_eq!(place.read("again/labels.json"), place.read("tuned/labels.json"));
}

#[test]
fn training_and_classification_errors_give_a_reason() {
    let place = place();
    place.write("unknown.tsv", b"good\tfine words\nneutral\tother words\n");
    place.write("no-text.tsv", b"good\tfine words\ngood\t\n");
    place.write("no-tab.tsv", b"good\tfine words\n\ngood words\n");
    place.write("no-label.tsv", b"\tfine words\n");
    place.write("one.tsv", b"good\tfine words\ngood\tmore\n");
    let cases = [
        ("train --task classify --out x", "--label-text"),
        (
            "train --task classify --label-text train.tsv --valid-label-text unknown.tsv --preset tiny --vocabulary-size 400 --out x",
            "unknown.tsv, line 2: the label `neutral`",
        ),
        (
            "train --task classify --label-text no-text.tsv --out x",
            "no-text.tsv, line 2: the label `good` without a text",
        ),
        ("train --task classify --label-text no-tab.tsv --out x", "no-tab.tsv, line 3"),
        (
            "train --task classify --label-text no-label.tsv --out x",
            "no-label.tsv, line 1: a text without a label",
        ),
        ("train --task classify --label-text one.tsv --vocabulary-size 400 --out x", "1 label"),
        ("train --task classify --src train.tsv --tgt train.tsv --out x", "data.label_text"),
        ("train --task classify --label-text train.tsv --best-by bleu --out x", "--best-by"),
        ("train --task guess --out x", "classify"),
        ("classify nowhere new.txt", "nowhere"),
        ("classify run nowhere.txt", "nowhere.txt"),
        ("translate run train.tsv", "heedful classify"),
        ("generate run --prompt x", "heedful classify"),
        ("fill run x", "heedful classify"),
        ("score run --src train.tsv --tgt train.tsv", "give --label-text FILE"),
    ];
    for (line, named) in cases {
        let error = place.bad(line);
        assert!(error.contains(named), "{line}: {error}");
        assert!(!error.contains("panicked"), "{line}: {error}");
    }
    let error = place.bad(&training("x", "--validation-best-by bleu"));
    assert!(error.contains("has no BLEU"), "{error}");
}
