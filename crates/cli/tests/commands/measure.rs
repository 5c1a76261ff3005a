//! `score` and `evaluate` for language models and classifiers, and the report of labelled
//! texts, as processes.

use std::sync::OnceLock;

use crate::support::{Workplace, text};
use heedful::metrics::Measure;
use heedful::train::log::read_metrics;
use serde_json::Value;

/// A workplace with language models of lines and of continuous text, a classifier and a translator, shared by
/// all tests.
fn place() -> &'static Workplace {
    static PLACE: OnceLock<Workplace> = OnceLock::new();
    PLACE.get_or_init(|| {
        let place = Workplace::new(300);
        place.good(&Workplace::training("run", "--steps 10 --compute f32"));
        let labelled = |name: &str| -> String {
            let lines = place.lines(name);
            let label = |line: &str| if line.starts_with("an ") { "an" } else { "a and others" };
            lines.iter().map(|line| format!("{}\t{line}\n", label(line))).collect()
        };
        let [train, valid] = ["train.en", "valid.en"].map(labelled);
        place.write("train.tsv", train.as_bytes());
        place.write("valid.tsv", valid.as_bytes());
        let small = "--preset tiny --vocabulary-size 400 --batch-tokens 512 --steps 20 --warmup 5 --validation-every 10 \
                     --compute f32 --checkpoint-average none";
        for (out, rest) in [
            ("writer", "--task lm --text train.en --valid-text valid.en --block none"),
            ("novel", "--task lm --text train.en --valid-text valid.en --block 24"),
            ("reader", "--task mlm --text train.en --valid-text valid.en"),
            ("news", "--task classify --label-text train.tsv --valid-label-text valid.tsv"),
        ] {
            place.good(&format!("train {rest} {small} --out {out}"));
        }
        place
    })
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

fn close(found: f64, wanted: f64, what: &str) {
    assert!((found - wanted).abs() <= 1e-4 * wanted.abs().max(1.0), "{what}: {found}, not {wanted}");
}

#[test]
fn perplexities_agree_with_validation_and_with_scored_lines() {
    let place = place();
    for model in ["writer", "novel"] {
        let line =
            format!("evaluate valid.en --model {model} --metric perplexity --json --width 8 --compute f32");
        let found: Value = serde_json::from_str(&place.good(&line)).expect("JSON");
        let found = &found["perplexity"];
        // The trainer validates with separate code, and keeps the model with the lowest loss.
        let records = read_metrics(&place.path(model).join("metrics.jsonl")).expect("records");
        for (key, measure) in [
            ("by_token", Measure::ValidPerplexity),
            ("by_word", Measure::ValidWordPerplexity),
            ("by_byte", Measure::ValidBytePerplexity),
        ] {
            let lowest =
                records.iter().filter_map(|record| record.value(measure)).fold(f64::INFINITY, f64::min);
            close(number(&found[key]), lowest, &format!("{model}: {key}"));
        }
        let scored = place.good(&format!("score {model} --text valid.en --json --compute f32"));
        let lines: Vec<Value> =
            scored.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(lines.len(), place.lines("valid.en").len());
        let (mut sum, mut tokens) = (0.0, 0);
        for line in &lines {
            let of_tokens: f64 = line["tokens"].as_array().expect("tokens").iter().map(number).sum();
            close(number(&line["log_probability"]), of_tokens, "a line is the sum of its tokens");
            sum += of_tokens;
            tokens += line["tokens"].as_array().map_or(0, Vec::len);
        }
        assert_eq!(found["tokens"], tokens);
        close(number(&found["by_token"]), (-sum / tokens as f64).exp(), model);
        let plain = place.run(&format!("score {model} --text valid.en --compute f32"));
        let logs: Vec<f64> =
            text(&plain.stdout).lines().map(|line| line.parse().expect("a number")).collect();
        close(logs.iter().sum(), sum, model);
        assert!(text(&plain.stderr).contains("by word"), "{}", text(&plain.stderr));
    }
    // A blank line does not count for a model of lines.
    place.write("gaps.txt", b"a new car\n\n  \nan old car\n");
    let scored = place.good("score writer --text gaps.txt");
    let lines: Vec<&str> = scored.lines().collect();
    assert_eq!((lines.len(), lines[1], lines[2]), (4, "0.000000", "0.000000"));
    // A line has the same score as in a file of its own.
    place.write("one.txt", b"an old car\n");
    assert_eq!(place.good("score writer --text one.txt").trim_end(), lines[3]);
    // A translator's perplexity follows from its scores.
    let found = place.good(
        "evaluate valid.en --src valid.zh --model run --metric perplexity --json --width 8 --compute f32",
    );
    let found: Value = serde_json::from_str(&found).expect("JSON");
    let scored = place.good("score run --src valid.zh --tgt valid.en --json --compute f32");
    let (mut sum, mut tokens) = (0.0, 0);
    for line in scored.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")) {
        sum += number(&line["log_probability"]);
        tokens += line["tokens"].as_array().map_or(0, Vec::len);
    }
    close(number(&found["perplexity"]["by_token"]), (-sum / tokens as f64).exp(), "translator");
}

/// The perplexity per token of valid.en, to eight digits.
fn perplexity(model: &str, more: &str) -> f64 {
    let line = format!("evaluate valid.en --model {model} --metric perplexity --json --width 8 {more}");
    let found: Value = serde_json::from_str(&place().good(&line)).expect("JSON");
    number(&found["perplexity"]["by_token"])
}

/// A copy of a model without the other files of its run.
fn copy_of_model(model: &str, to: &str) {
    let place = place();
    std::fs::create_dir_all(place.path(to)).expect("room on the disk");
    for file in ["config.json", "tokenizer.json", "model.safetensors"] {
        place.write(&format!("{to}/{file}"), &place.read(&format!("{model}/{file}")));
    }
}

#[test]
fn the_perplexity_of_continuous_text_depends_only_on_the_sealed_model() {
    let place = place();
    let wanted = perplexity("novel", "");
    // It depends neither on the presence nor the content of the recipe.
    copy_of_model("novel", "alone");
    assert_eq!(perplexity("alone", ""), wanted);
    let recipe = text(&place.read("novel/recipe.toml"));
    assert!(recipe.contains("block = 24"), "{recipe}");
    place.write("alone/recipe.toml", recipe.replace("block = 24", "block = 7").as_bytes());
    assert_eq!(perplexity("alone", ""), wanted);
    // The block size is part of the model; a model without it uses the default of recipes.
    let config = text(&place.read("alone/config.json"));
    assert!(config.contains("\"block\": 24,"), "{config}");
    let with_block = |name: &str, line: &str| {
        copy_of_model("novel", name);
        place.write(&format!("{name}/config.json"), config.replace("\"block\": 24,", line).as_bytes());
        let unsealed = place.bad(&format!("evaluate valid.en --model {name} --metric perplexity"));
        assert!(unsealed.contains("config.json"), "{unsealed}");
        place.good(&format!("seal {name}"));
        perplexity(name, "")
    };
    let without = with_block("without-block", "");
    assert_ne!(without, wanted);
    assert_eq!(with_block("default-block", "\"block\": 256,"), without);
}

#[test]
fn score_and_evaluate_compute_in_the_same_type() {
    let place = place();
    let stderr = |line: &str| text(&place.run(line).stderr);
    for (more, compute) in [("", "bf16"), ("--compute bf16", "bf16"), ("--compute f32", "f32")] {
        let score = stderr(&format!("score novel --text valid.en {more}"));
        let evaluated = perplexity("novel", more);
        assert!(score.contains(&format!("perplexity {evaluated:.4} by token")), "{evaluated}: {score}");
        assert!(score.contains(&format!("computed in {compute}")), "{score}");
    }
    assert_ne!(perplexity("novel", ""), perplexity("novel", "--compute f32"));
    let line = "evaluate valid.en --src valid.zh --model run --metric perplexity --json";
    assert!(place.good(line).contains("\"compute\":\"bf16\""));
    assert!(place.good(&format!("{line} --compute f32")).contains("\"compute\":\"f32\""));
    let line = line.trim_end_matches(" --json");
    assert!(place.good(line).ends_with("\ncomputed in bf16\n"));
    assert!(place.good(&format!("{line} --compute f32")).ends_with("\ncomputed in f32\n"));
}

#[test]
fn the_tokens_of_scores_have_their_pieces() {
    let place = place();
    place.write("two.txt", b"an old car\n\na new car\n");
    place.write("two.zh", "一辆旧车\n\n一辆新车\n".as_bytes());
    for line in [
        "score writer --text two.txt --json",
        "score novel --text two.txt --json",
        "score run --src two.zh --tgt two.txt --json",
    ] {
        let scored = place.good(line);
        let lines: Vec<Value> =
            scored.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        for (found, known) in lines.iter().zip(["an old car", "", "a new car"]) {
            let pieces: Vec<&str> =
                found["pieces"].as_array().expect("pieces").iter().filter_map(Value::as_str).collect();
            assert_eq!(pieces.len(), found["tokens"].as_array().map_or(0, Vec::len), "{line}: {found}");
            let (words, ends): (Vec<&str>, Vec<&str>) =
                pieces.iter().partition(|piece| !["<eos>", "<0x0A>", "\n"].contains(piece));
            assert_eq!(words.concat().replace('▁', " ").trim(), known, "{line}: {found}");
            assert_eq!(
                ends.len(),
                usize::from(!known.is_empty() || line.contains("novel")),
                "{line}: {found}"
            );
        }
    }
}

#[test]
fn labels_are_scored_and_reported_alike_everywhere() {
    let place = place();
    place.good("classify news --label-text valid.tsv -o labels.txt --report report.html --compute f32");
    let report = place.good("classify news --label-text valid.tsv --json --compute f32");
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let evaluated = place.good("evaluate labels.txt --ref valid.tsv --metric accuracy,f1 --json");
    let evaluated: Value = serde_json::from_str(&evaluated).expect("JSON");
    for key in ["texts", "accuracy"] {
        assert_eq!(report[key], evaluated[key], "{key}");
    }
    for average in ["macro", "micro", "weighted"] {
        assert!(report["f1"][average].is_number(), "{average}: {report}");
        assert_eq!(report["f1"][average], evaluated["f1"][average], "{average}");
    }
    let lines = place.lines("valid.tsv");
    let label = |line: &String| line.split('\t').next().unwrap_or_default().to_owned();
    let found = place.lines("labels.txt");
    let right = lines.iter().zip(&found).filter(|(a, b)| label(a) == label(b)).count();
    close(number(&report["accuracy"]["score"]), 100.0 * right as f64 / lines.len() as f64, "accuracy");
    let page = text(&place.read("report.html"));
    assert!(page.contains("Confusion matrix") && page.contains("a and others"), "a page");
    let plain = place.good("classify news --label-text valid.tsv --compute f32");
    assert!(plain.contains("macro F1") && plain.contains("Confusion matrix"), "{plain}");

    // The probability of the given label equals the output of classify.
    let texts: String =
        lines.iter().map(|line| format!("{}\n", line.split('\t').nth(1).unwrap_or(""))).collect();
    place.write("valid.txt", texts.as_bytes());
    let classified = place.good("classify news valid.txt --json --compute f32");
    let scored = place.good("score news --label-text valid.tsv --json --compute f32");
    for ((classified, scored), line) in classified.lines().zip(scored.lines()).zip(&lines) {
        let [classified, scored] =
            [classified, scored].map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let probability = number(&classified["probabilities"][label(line)]);
        close(number(&scored["log_probability"]).exp(), probability, line);
        assert_eq!(scored["label"], label(line));
    }
    let accuracy = place.good("evaluate labels.txt --ref valid.tsv --metric accuracy");
    assert!(accuracy.starts_with("accuracy = ") && accuracy.lines().count() == 1, "{accuracy}");
}

#[test]
fn measurement_errors_give_a_reason() {
    let place = place();
    place.write("a.txt", b"x\ny\n");
    place.write("b.txt", b"x\ny\nz\n");
    place.write("gap.txt", b"x\n\n");
    place.write("blank.txt", b"\n \n");
    place.write("empty.txt", b"\n\n");
    place.write("unknown.tsv", b"an\tan old car\nneutral\ta car\n");
    for (line, wanted) in [
        ("evaluate a.txt --ref b.txt --metric f1", "line 3 has no counterpart"),
        ("evaluate a.txt --ref gap.txt --metric accuracy", "gap.txt, line 2: there is no label"),
        ("evaluate a.txt --ref a.txt --metric accuracy", "the same file"),
        ("evaluate a.txt --ref b.txt --ref b.txt --metric accuracy", "--ref once"),
        ("evaluate a.txt --metric accuracy", "add --ref"),
        ("evaluate a.txt", "add --ref"),
        ("evaluate a.txt --ref b.txt --metric accuracy,bleu", "different things"),
        (
            "evaluate a.txt --ref b.txt --metric f1 --confidence",
            "--confidence applies only to metrics of translations",
        ),
        ("evaluate a.txt --ref b.txt --metric f1 --sentence-level", "--sentence-level applies only to"),
        ("evaluate a.txt --ref b.txt --model writer", "--model has no effect"),
        ("evaluate a.txt --ref b.txt --compute f32", "--compute has no effect"),
        ("evaluate a.txt --metric perplexity", "add --model FOLDER"),
        ("evaluate a.txt --metric perplexity --model writer --ref b.txt", "leave out --ref"),
        ("evaluate a.txt --metric perplexity --model run", "--src FILE"),
        ("evaluate a.txt --metric perplexity --model writer --src b.txt", "--src is for translators"),
        ("evaluate a.txt --metric perplexity --model news", "does not compute text probabilities"),
        ("evaluate a.txt --metric perplexity --model reader", "does not compute text probabilities"),
        ("evaluate blank.txt --metric perplexity --model writer", "blank"),
        ("evaluate a.txt --metric perplexity --model nowhere", "nowhere"),
        ("score writer --src a.txt --tgt a.txt", "give --text FILE"),
        ("score news --text a.txt", "give --label-text FILE"),
        ("score run --text a.txt", "--src FILE --tgt FILE"),
        ("score writer", "--text FILE"),
        ("score run --src a.txt", "--tgt"),
        ("score reader --text a.txt", "heedful fill"),
        ("score writer --text a.txt --without-head encoder.0.self.0", "--without-head"),
        ("score writer --text nowhere.txt", "nowhere.txt"),
        ("score news --label-text unknown.tsv", "unknown.tsv, line 2: the label `neutral`"),
        ("score news --label-text a.txt", "a.txt, line 1"),
        ("classify news --label-text unknown.tsv", "unknown.tsv, line 2: the label `neutral`"),
        ("classify news --label-text valid.tsv a.txt", "cannot be used with"),
        ("classify news a.txt --report x.html", "--label-text"),
        ("classify news --label-text valid.tsv --report x.pdf", ".html, .json or .md"),
        ("classify news --label-text blank.txt", "blank.txt, line 2: a text without a label"),
        ("classify news --label-text empty.txt", "nothing to report"),
    ] {
        let error = place.bad(line);
        assert!(error.contains(wanted), "{line}: {error}");
        assert!(!error.contains("panicked"), "{line}: {error}");
    }
}

#[test]
fn a_run_reports_its_flops_and_a_resumed_one_the_total() {
    let place = place();
    let flops = |line: &str| -> f64 {
        let outcome: Value = serde_json::from_str(&place.good(line)).expect("JSON");
        number(&outcome["flops"])
    };
    let training = |out: &str, steps: usize| {
        format!(
            "train --task lm --text train.en --valid-text valid.en --preset tiny --vocabulary-size 400 --batch-tokens 512 \
             --warmup 5 --validation-every 10 --steps {steps} --out {out} --json"
        )
    };
    let whole = flops(&training("whole", 12));
    let half = flops(&training("half", 6));
    assert!(half > 0.0 && half < whole, "{half} {whole}");
    assert_eq!(flops("train --resume half --steps 12 --json"), whole);
    let records = read_metrics(&place.path("half/metrics.jsonl")).expect("records");
    let last = records.iter().filter_map(|record| record.value(Measure::Flops)).next_back();
    assert_eq!(last, Some(whole));
    assert!(text(&place.read("half/report.html")).contains("training FLOPs"));
}
