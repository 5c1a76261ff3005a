//! `heedful compare` as a process: its tables and files, resuming, and errors.

use std::collections::HashMap;
use std::fs;
use std::thread::sleep;
use std::time::{Duration, SystemTime};

use crate::support::{Workplace, names, text};

/// Arguments of a comparison with very short runs.
fn variations(more: &str) -> String {
    format!(
        "compare variations --src train.zh --tgt train.en --valid-src valid.zh --valid-tgt valid.en --preset tiny \
         --vocabulary-kind character --vocabulary-size 700 --batch-tokens 512 --checkpoint-every 7 --warmup 20 \
         --validation-bleu-pairs 4 --out table {more}"
    )
}

/// The cells of a line of CSV; quoted ones may have commas.
fn cells(line: &str) -> Vec<String> {
    let mut is_quoted = false;
    let is_end = |letter: char| {
        is_quoted ^= letter == '"';
        letter == ',' && !is_quoted
    };
    line.split(is_end).map(|cell| cell.trim_matches('"').to_owned()).collect()
}

/// The lines of a CSV file, by the headings.
fn csv(text: &str) -> Vec<HashMap<String, String>> {
    let mut lines = text.lines().map(cells);
    let headings = lines.next().expect("a heading");
    lines
        .map(|cells| {
            assert_eq!(cells.len(), headings.len(), "{cells:?}");
            headings.iter().cloned().zip(cells).collect()
        })
        .collect()
}

#[test]
fn layers_are_measured_at_every_size() {
    let place = Workplace::empty();
    let table = place.good(
        "compare layers --lengths 8,4,8 --widths 8 --window 2 --seconds 0.001 --out layers --threads 1",
    );
    for layer in [
        "self attention",
        "restricted self attention",
        "recurrence (LSTM)",
        "convolution",
        "dilated convolution",
    ] {
        let rows = table.lines().filter(|line| line.starts_with(&format!("| {layer} ")));
        assert_eq!(rows.count(), 1 + 2, "{layer}: {table}");
    }
    assert_eq!(names(&place.path("layers")), ["compare.csv", "compare.md", "report.html"]);
    assert_eq!(text(&place.read("layers/compare.md")), table);
    let rows = csv(&text(&place.read("layers/compare.csv")));
    assert_eq!(rows.len(), 10);
    for row in &rows {
        assert!(row["forward_seconds"].parse::<f64>().is_ok_and(|time| time > 0.0), "{row:?}");
        assert!(row["forward_and_backward_seconds"].parse::<f64>().is_ok_and(|time| time > 0.0), "{row:?}");
        assert!(row["peak_bytes"].parse::<u64>().is_ok_and(|bytes| bytes > 0), "{row:?}");
        let n: u64 = row["n"].parse().expect("a length");
        let path = match row["layer"].as_str() {
            "self attention" => 1,
            "restricted self attention" => (n - 1).div_ceil(2),
            "recurrence (LSTM)" => n,
            // 3 and 7 have two digits in base 3.
            "dilated convolution" => 2,
            _ => (n - 1).div_ceil(2),
        };
        assert_eq!(row["longest_path"], path.to_string(), "{row:?}");
    }
    let report = text(&place.read("layers/report.html"));
    assert_eq!(report.matches("<svg").count(), 4);
}

#[test]
fn memory_grows_with_the_sequence() {
    let place = Workplace::empty();
    place.good("compare layers --lengths 64,512 --widths 64 --seconds 0.001 --compute f32 --out layers");
    let rows = csv(&text(&place.read("layers/compare.csv")));
    let kept = |row: &HashMap<String, String>| row["kept_bytes"].parse::<f64>().expect("bytes");
    for short in rows.iter().filter(|row| row["n"] == "64") {
        let is_long = |row: &&HashMap<String, String>| row["n"] == "512" && row["layer"] == short["layer"];
        let long = rows.iter().find(is_long).expect("the same layer");
        let growth = kept(long) / kept(short);
        assert!((6.0..10.0).contains(&growth), "{}: {growth}", short["layer"]);
    }
}

#[test]
fn no_layer_needs_memory_quadratic_in_the_length() {
    let place = Workplace::empty();
    place.good("compare layers --lengths 512,2048 --widths 16 --seconds 0.001 --compute f32 --out layers");
    let rows = csv(&text(&place.read("layers/compare.csv")));
    let peak = |row: &HashMap<String, String>| row["peak_bytes"].parse::<f64>().expect("bytes");
    for short in rows.iter().filter(|row| row["n"] == "512") {
        let is_long = |row: &&HashMap<String, String>| row["n"] == "2048" && row["layer"] == short["layer"];
        let long = rows.iter().find(is_long).expect("the same layer");
        let growth = peak(long) / peak(short);
        assert!(growth < 8.0, "{}: 4 times the length takes {growth} times the memory", short["layer"]);
    }
}

#[test]
fn variations_are_trained_once_and_compared() {
    let place = Workplace::new(200);
    let command =
        variations("--steps 4 --validation-every 2 --dropout 0.1 --d-model 24 --only dropout,heads");
    let output = place.run(&command);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let stderr = text(&output.stderr);
    assert!(stderr.contains("heads-16 is skipped: 16 heads do not divide d_model 24"), "{stderr}");
    let rows = csv(&text(&place.read("table/compare.csv")));
    let trained: Vec<&str> = rows.iter().map(|row| row["variation"].as_str()).collect();
    assert_eq!(trained, ["base", "heads-1", "heads-4", "heads-8", "dropout-0.0", "dropout-0.2"]);
    for row in &rows {
        assert_eq!((row["steps"].as_str(), row["ending"].as_str()), ("4", "all steps are done"));
        assert!(row["valid_perplexity"].parse::<f64>().is_ok_and(|value| value > 1.0), "{row:?}");
        assert!(row["valid_bleu"].parse::<f64>().is_ok(), "{row:?}");
        assert!(place.path(&format!("table/{}/model.safetensors", row["variation"])).is_file());
    }
    let table = text(&output.stdout);
    assert!(table.contains("| heads = 1 ") && table.contains("Left out"), "{table}");
    assert_eq!(text(&place.read("table/compare.md")), table);
    let report = text(&place.read("table/report.html"));
    assert!(report.contains("Validation perplexity: all variations") && report.contains("6 of 6"));

    let written = || -> Vec<SystemTime> {
        let time = |run: &&str| {
            let file = place.path(&format!("table/{run}/metrics.jsonl"));
            fs::metadata(file).and_then(|data| data.modified()).expect("a time")
        };
        trained.iter().map(time).collect()
    };
    let before = written();
    let again = place.run(&command);
    assert!(
        text(&again.stderr).contains("heads-8                is already trained"),
        "{}",
        text(&again.stderr)
    );
    assert_eq!(text(&again.stdout), table);
    assert_eq!(written(), before, "a finished run was trained again");

    // With one run missing, the intermediate table still shows the others.
    fs::remove_dir_all(place.path("table/heads-1")).expect("a folder to remove");
    place.write("train.zh.backup", &place.read("train.zh"));
    fs::remove_file(place.path("train.zh")).expect("a file to remove");
    assert!(place.bad(&command).contains("heads-1: "));
    assert_eq!(csv(&text(&place.read("table/compare.csv"))).len(), 5);
    place.write("train.zh", &place.read("train.zh.backup"));
    assert_eq!(place.good(&command).lines().count(), table.lines().count());

    // With more steps, all runs are resumed.
    place.good(&command.replace("--steps 4", "--steps 6 --quiet"));
    let rows = csv(&text(&place.read("table/compare.csv")));
    assert!(rows.iter().all(|row| row["steps"] == "6"), "{rows:?}");
    let error = place.bad(&command.replace("--warmup 20", "--warmup 21"));
    assert!(error.contains("table/base was trained with other settings (warmup = 20)"), "{error}");
}

#[test]
fn groups_without_text_are_trained_on_built_in_text() {
    let place = Workplace::empty();
    let few = "--steps 4 --validation-every 2 --warmup 2 --quiet";
    let table = place.good(&format!("compare variations norm --seeds 2 {few}"));
    assert!(table.contains("mean ± standard deviation of 2 seeds. Batch norm"), "{table}");
    assert_eq!(table.lines().filter(|line| line.matches(" ± ").count() == 2).count(), 4, "{table}");
    for name in ["base", "norm-pre-layer", "norm-post-batch", "norm-pre-batch"] {
        assert!(table.contains(&format!("| {name} ")), "{table}");
    }
    let rows = csv(&text(&place.read("heedful-compare-norm/compare.csv")));
    assert!(rows.iter().all(|row| row["valid_perplexity"].parse::<f64>().is_ok()), "{rows:?}");
    let seeds: Vec<&str> = rows.iter().map(|row| row["seed"].as_str()).collect();
    assert_eq!(seeds, ["1", "2"].repeat(4));
    assert!(place.path("heedful-compare-norm/norm-pre-batch-seed-2/model.safetensors").is_file());
    assert!(place.path("heedful-compare-norm/text/train.zh").is_file());

    let table = place.good(&format!("compare variations pooling --out pooled --seeds 1 {few}"));
    for name in ["base", "pooling-first", "pooling-last", "pooling-mean", "pooling-max"] {
        assert_eq!(table.matches(&format!("| {name} ")).count(), 2, "{table}");
    }
    assert!(table.contains("Accuracy by the length of the text") && table.contains(" tokens |"), "{table}");
    assert_eq!(place.good(&format!("compare variations pooling --out pooled --seeds 1 {few}")), table);

    for (command, expected) in [
        ("compare variations norm pooling", "by itself"),
        ("compare variations norm --preset small", "--preset"),
        ("compare variations norms", "norms"),
        ("compare variations one.toml two.toml", "neither one recipe nor groups"),
    ] {
        let error = place.bad(command);
        assert!(error.contains(expected), "{command}: {error}");
    }
}

#[test]
fn a_killed_comparison_is_resumed() {
    let place = Workplace::new(200);
    let command = variations("--steps 30 --validation-every 10 --only label-smoothing");
    place.good(&command.replace("--out table", "--out whole"));
    let mut child = place.start(&command);
    while !place.path("table/base/outcome.json").is_file() {
        assert!(child.status().is_none(), "it ended by itself");
        sleep(Duration::from_millis(10));
    }
    child.kill();
    child.ended();
    place.good(&command);
    for run in ["base", "label-smoothing-0.1", "label-smoothing-0.2"] {
        crate::support::same_run(&place, &format!("whole/{run}"), &format!("table/{run}"));
    }
}

#[test]
fn comparison_errors_give_a_reason() {
    let place = Workplace::new(50);
    let data = "--src train.zh --tgt train.en";
    let cases = [
        ("compare layers --lengths 0,4".to_owned(), "a length must be at least 1"),
        ("compare layers --lengths few".to_owned(), "--lengths"),
        ("compare layers --kernel-size 4".to_owned(), "kernel size 4"),
        ("compare layers --window 0".to_owned(), "window"),
        ("compare layers --seconds 0".to_owned(), "0 is not above 0"),
        ("compare layers --compute f16".to_owned(), "bf16, f32"),
        (format!("compare variations {data} --out table"), "--valid-src and --valid-tgt"),
        (format!("compare variations {data} --valid-src valid.zh --valid-tgt valid.en"), "--out"),
        (variations("--only head"), "heads"),
        (variations("--dropout 2"), "--dropout"),
        (variations("--tying none --vocabulary-sharing apart"), "sharing"),
        (variations("--src nowhere.zh --tgt train.en"), "nowhere.zh"),
    ];
    for (command, expected) in cases {
        let error = place.bad(&command);
        assert!(error.contains(expected), "{command}: {error}");
        assert!(!error.contains("panicked"), "{error}");
    }
    assert!(place.bad("compare").contains("variations"));
}
