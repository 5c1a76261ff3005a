//! Attention of every kind of model: `explain`, `--attention`, raw scores and masks, as processes.

use std::sync::OnceLock;

use crate::support::{Bounded, Workplace};
use serde_json::Value;

/// A workplace with a translator, a classifier, a language model and a masked language model,
/// which every test shares.
fn place() -> &'static Workplace {
    static PLACE: OnceLock<Workplace> = OnceLock::new();
    PLACE.get_or_init(|| {
        let place = Workplace::new(300);
        place.good(&Workplace::training("run", "--steps 10 --heads 2"));
        let labelled: String = place
            .lines("train.en")
            .iter()
            .enumerate()
            .map(|(i, line)| format!("{}\t{line}\n", if i % 2 == 0 { "even" } else { "odd" }))
            .collect();
        place.write("train.tsv", labelled.as_bytes());
        let small = "--preset tiny --vocabulary-size 400 --batch-tokens 512 --steps 5 --warmup 2 \
                     --validation-every 5";
        for (out, rest) in [
            ("news", "--task classify --label-text train.tsv --valid-label-text train.tsv --heads 2"),
            ("first", "--task classify --label-text train.tsv --valid-label-text train.tsv --pooling first"),
            ("rnn", "--task classify --label-text train.tsv --valid-label-text train.tsv --family recurrent"),
            ("writer", "--task lm --text train.en --valid-text valid.en --heads 2 --block none"),
            ("novel", "--task lm --text train.en --valid-text valid.en --block 32"),
            ("reader", "--task mlm --text train.en --valid-text valid.en --heads 2"),
        ] {
            place.good(&format!("train {rest} {small} --out {out}"));
        }
        place
    })
}

fn json(name: &str) -> Value {
    serde_json::from_slice(&place().read(name)).expect("JSON")
}

/// Runs a command whose last argument may have spaces.
fn with_text(line: &str, text: &str) -> Result<String, String> {
    let output = place().command(line).arg(text).finish();
    let decoded = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() { Ok(decoded(&output.stdout)) } else { Err(decoded(&output.stderr)) }
}

fn numbers(value: &Value) -> Vec<f64> {
    value
        .as_array()
        .expect("a row")
        .iter()
        .map(|number| number.as_f64().unwrap_or(f64::NEG_INFINITY))
        .collect()
}

/// All values of nested lists, as f32.
fn f32_values(value: &Value) -> Vec<f32> {
    match value.as_array() {
        Some(values) => values.iter().flat_map(f32_values).collect(),
        None => vec![value.as_f64().expect("a number") as f32],
    }
}

/// In every row of every head, the softmax of the scores equals the weights, and masked keys have weight 0.
fn check_scores(heads: &Value, scores: &Value) {
    for (head, scores) in heads.as_array().expect("heads").iter().zip(scores.as_array().expect("scores")) {
        for (row, scores) in head.as_array().expect("rows").iter().zip(scores.as_array().expect("rows")) {
            let (row, scores) = (numbers(row), numbers(scores));
            let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let total: f64 = scores.iter().map(|score| (score - top).exp()).sum();
            for (weight, score) in row.iter().zip(&scores) {
                assert!(((score - top).exp() / total - weight).abs() < 1e-5, "{row:?} {scores:?}");
                assert_eq!(score.is_infinite(), *weight == 0.0, "{row:?} {scores:?}");
            }
        }
    }
}

#[test]
fn models_of_every_task_are_explained_with_weights_and_scores() {
    for (model, text, layers) in [
        ("run", "一辆新车", &["encoder", "decoder", "cross"][..]),
        ("news", "a new car", &["encoder", "pooling"]),
        ("first", "a new car", &["encoder"]),
        ("rnn", "a new car", &["pooling"]),
        ("writer", "a new car", &["decoder"]),
        ("novel", "a new car", &["decoder"]),
        ("reader", "a <mask> car", &["encoder"]),
    ] {
        let file = format!("{model}-all.json");
        with_text(&format!("explain {model} --compute f32 -o {file} --raw-scores"), text).expect(model);
        let found = json(&file);
        let (source, output) = (&found[0]["source"], &found[0]["outputs"][0]);
        let tokens = |side: &Value| side["tokens"].as_array().map_or(0, Vec::len);
        let mut kinds: Vec<&str> = Vec::new();
        for layer in output["attention"].as_array().expect("layers") {
            let kind = layer["kind"].as_str().expect("a kind");
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
            let [queries, keys] = match kind {
                "encoder" => [tokens(source), tokens(source)],
                "decoder" => [tokens(output), tokens(output)],
                _ => [tokens(output), tokens(source)],
            };
            assert_eq!([&layer["queries"], &layer["keys"]], [queries, keys], "{model}: {kind}");
            check_scores(&layer["heads"], &layer["scores"]);
        }
        assert_eq!(kinds, layers, "{model}");
        assert!(output["log_probability"].as_f64().expect("a number") < 0.0, "{model}");
        // It is also shown on the terminal, on a page and as a picture.
        assert!(
            with_text(&format!("explain {model}"), text).expect(model).contains("log-probability"),
            "{model}"
        );
        with_text(&format!("explain {model} -o {model}.html"), text).expect(model);
        with_text(&format!("explain {model} -o {model}.svg --view grid"), text).expect(model);
    }
    let first = json("first-all.json");
    assert_eq!(first[0]["source"]["tokens"][0]["piece"], "<bos>");
    let writer = json("writer-all.json");
    let tokens = writer[0]["outputs"][0]["tokens"].as_array().expect("tokens");
    assert_eq!(tokens.last().expect("an end")["piece"], "<eos>");
    let novel = json("novel-all.json");
    let tokens = novel[0]["outputs"][0]["tokens"].as_array().expect("tokens");
    assert_ne!(tokens.last().expect("a token")["piece"], "<eos>");
    let reader = json("reader-all.json");
    assert!(reader[0]["source"]["tokens"].to_string().contains("<mask>"), "{reader}");
}

#[test]
fn every_command_writes_the_attention_that_explain_shows() {
    let place = place();
    place.write("two.txt", b"a new car\n\nan old car\n");
    place.good("classify news two.txt --compute f32 --attention classify.json --raw-scores");
    let found = json("classify.json");
    let lines: Vec<&Value> = found.as_array().expect("lines").iter().map(|line| &line["line"]).collect();
    assert_eq!(lines, [1, 3], "the blank line has no attention");
    with_text("explain news --compute f32 -o explained.json", "a new car").expect("explained");
    let explained = json("explained.json");
    let layer = |number: usize| &explained[0]["outputs"][0]["attention"][number];
    assert_eq!(f32_values(&found[0]["attention"][0]["heads"]), f32_values(&layer(0)["heads"]));
    check_scores(&found[0]["attention"][0]["heads"], &found[0]["attention"][0]["scores"]);

    with_text("generate writer --tokens 4 --n 2 --attention generate.json --prompt", "a new")
        .expect("generated");
    let found = json("generate.json");
    assert_eq!(found.as_array().map(Vec::len), Some(2));
    let target = found[0]["target"].as_array().expect("tokens");
    assert_eq!(found[0]["attention"][0]["heads"][0].as_array().map(Vec::len), Some(target.len()));

    with_text("fill reader --attention fill.json --raw-scores", "a <mask> car").expect("filled");
    let found = json("fill.json");
    assert!(found[0]["source"].to_string().contains("<mask>"), "{found}");
    assert_eq!(found[0]["target"].as_array().map(Vec::len), Some(1));

    place.good("translate run valid.zh --attention all.safetensors --raw-scores -o out.en");
    let bytes = place.read("all.safetensors");
    let header = String::from_utf8_lossy(&bytes[..bytes.len().min(200_000)]).into_owned();
    assert!(header.contains("1.decoder.0.cross.scores"), "scores are named");
}

#[test]
fn a_mask_hides_keys_and_changes_probabilities() {
    let place = place();
    with_text("explain news --compute f32 -o open.json", "a new car").expect("explained");
    let open = json("open.json");
    let n = open[0]["source"]["tokens"].as_array().map_or(0, Vec::len);
    // Every token sees itself alone.
    let rows: Vec<String> = (0..n)
        .map(|i| (0..n).map(|j| if i == j { "1" } else { "0" }).collect::<Vec<_>>().join(" "))
        .collect();
    place.write("own.txt", rows.join("\n").as_bytes());
    let run = "explain news --compute f32 -o masked.json --raw-scores --mask own.txt";
    with_text(run, "a new car").expect("explained");
    let masked = json("masked.json");
    let layer = &masked[0]["outputs"][0]["attention"][0];
    for (i, row) in layer["heads"][0].as_array().expect("rows").iter().enumerate() {
        assert_eq!(numbers(row)[i], 1.0);
    }
    check_scores(&layer["heads"], &layer["scores"]);
    let probability = |of: &Value| of[0]["outputs"][0]["log_probability"].clone();
    assert_ne!(probability(&open), probability(&masked));
    // A mask that hides nothing keeps every bit.
    place.write("all.json", format!("{:?}", vec![vec![1; n]; n]).as_bytes());
    with_text("explain news --compute f32 -o same.json --mask encoder=all.json", "a new car")
        .expect("explained");
    assert_eq!(json("same.json"), open);

    // A translator's cross attention: the first source token is masked for all queries.
    with_text("explain run --compute f32 -o cross.json", "一辆新车").expect("explained");
    let cross = json("cross.json");
    let output = &cross[0]["outputs"][0];
    let [rows, columns] = [&output["tokens"], &cross[0]["source"]["tokens"]]
        .map(|tokens| tokens.as_array().map_or(0, Vec::len));
    let row = "0".to_owned() + &"1".repeat(columns - 1);
    place.write("cross.txt", vec![row; rows].join("\n").as_bytes());
    with_text("explain run --compute f32 -o hidden.json --mask cross=cross.txt", "一辆新车")
        .expect("explained");
    let hidden = json("hidden.json");
    assert_eq!(hidden[0]["outputs"][0]["text"], output["text"]);
    assert_ne!(hidden[0]["outputs"][0]["log_probability"], output["log_probability"]);
    let layers = hidden[0]["outputs"][0]["attention"].as_array().expect("layers");
    let layer = layers.iter().find(|layer| layer["kind"] == "cross").expect("cross attention");
    assert!(layer["heads"][0].as_array().expect("rows").iter().all(|row| numbers(row)[0] == 0.0));
}

#[test]
fn unsupported_explanations_are_refused_with_a_reason() {
    let place = place();
    place.write("empty-row.txt", b"1 1\n0 0\n");
    place.write("small.txt", b"1\n");
    place.write("ahead.txt", b"01111\n11111\n11111\n11111\n11111\n");
    place.write("odd.txt", b"1 2\n");
    place.write("words.txt", b"x\ny\n");
    for (line, text, wanted) in [
        ("explain news --mask empty-row.txt", "a new car", "row 2 of the mask has no 1"),
        ("explain news --mask odd.txt", "a new car", "row 1 of the mask has “2”"),
        ("explain news --mask small.txt", "a new car", "1 rows of 1"),
        ("explain news --mask nowhere.txt", "a new car", "cannot open nowhere.txt"),
        (
            "explain news --mask cross=small.txt",
            "a new car",
            "no layer of this model uses a mask for cross attention",
        ),
        ("explain rnn --mask encoder=small.txt", "a new car", "no layer of this model uses a mask"),
        ("explain run --mask small.txt", "一辆新车", "encoder=small.txt"),
        ("explain news --target x", "a new car", "--target is not for a classifier"),
        ("explain writer --beam 3", "a new car", "--beam is not for a language model"),
        ("explain reader --n-best 2 -o x.json", "a <mask>", "--n-best is not for"),
        ("explain news --without-head encoder.0.self.0", "a new car", "--without-head is not for"),
        ("explain news --mask small.txt a", "b", "--mask is for one text"),
        ("explain news -o x.json --weights none --raw-scores", "a new car", "--raw-scores"),
        ("explain news --layer cross", "a new car", "it has encoder.0.self"),
        ("classify news words.txt --attention x.txt --text", "a", "cannot be used with"),
        ("classify news --attention x.txt --text", "a", ".json or .safetensors"),
        ("classify news --attention x.json --long split --text", "a", "--long cut or error"),
        ("fill reader --raw-scores", "a <mask>", "--attention"),
        ("classify news -o same.json --attention same.json --text", "a", "give each its own"),
    ] {
        let error = with_text(line, text).expect_err(line);
        assert!(error.contains(wanted), "{line}: {error}");
        assert!(!error.contains("panicked"), "{line}: {error}");
    }
    // In a causal model, the mask may allow later positions.
    with_text("explain writer -o length.json", "a new").expect("explained");
    let n = json("length.json")[0]["outputs"][0]["tokens"].as_array().map_or(0, Vec::len);
    let ahead: Vec<String> =
        (0..n).map(|i| if i == 0 { format!("0{}", "1".repeat(n - 1)) } else { "1".repeat(n) }).collect();
    place.write("ahead.txt", ahead.join("\n").as_bytes());
    let error = with_text("explain writer --mask ahead.txt", "a new").expect_err("nothing is left");
    assert!(error.contains("row 1 of the mask for decoder self attention"), "{error}");
}

#[test]
fn a_run_logs_and_reports_every_head() {
    let place = place();
    for (run, layers, heads) in [("run", 3, 2), ("news", 2, 2), ("writer", 1, 2), ("reader", 1, 2)] {
        let last = place.lines(&format!("{run}/attention.jsonl")).pop().expect("a line");
        let record: Value = serde_json::from_str(&last).expect("JSON");
        let found = record["layers"].as_array().expect("layers");
        assert_eq!(found.len(), layers, "{run}: {last}");
        assert_eq!(found[0]["heads"].as_array().map(Vec::len), Some(heads), "{run}");
        assert!(record["weights"].is_array(), "{run}");
        let report = String::from_utf8_lossy(&place.read(&format!("{run}/report.html"))).into_owned();
        for layer in found {
            let name = layer["layer"].as_str().expect("a name");
            assert!(report.contains(name), "{run}: {name}");
        }
    }
}
