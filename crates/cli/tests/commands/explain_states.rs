//! `heedful explain lens`, `attribute`, `patch`, `neuron` and `heads --sentence` as processes, with small models
//! of every task.

use std::sync::OnceLock;

use crate::support::{Bounded, Workplace, text};
use serde_json::Value;

const TEXTS: &str = "the cat sees the dog\na dog runs fast\nmy cat sleeps here\nthe dog sleeps\n";

/// A workplace with a model for each task: `run`, `classes`, `language`, `masked`.
fn place() -> &'static Workplace {
    static PLACE: OnceLock<Workplace> = OnceLock::new();
    PLACE.get_or_init(|| {
        let place = Workplace::new(200);
        place.good(&Workplace::training("run", "--steps 20 --lr 3e-3 --encoder-layers 2 --heads 4"));
        place.write("text.txt", TEXTS.repeat(8).as_bytes());
        place.write("labels.tsv", "cat\tthe cat sleeps\ndog\tthe dog sleeps\n".repeat(8).as_bytes());
        let tiny = "--preset tiny --d-model 16 --steps 2 --warmup 1 --vocabulary-kind word";
        place.good(&format!("train --task classify --label-text labels.tsv --out classes {tiny}"));
        place.good(&format!("train --task lm --text text.txt --out language {tiny}"));
        place.good(&format!("train --task mlm --text text.txt --out masked {tiny}"));
        place
    })
}

fn json(name: &str) -> Value {
    serde_json::from_slice(&place().read(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("a list").iter().map(|number| number.as_f64().expect("a number")).collect()
}

/// Runs a command with a model and one more word, which has no spaces of its own.
fn good(command: &str, text: &str, more: &str) {
    let mut process = place().command(&format!("explain {command}"));
    let output = process.arg(text).args(more.split_whitespace()).finish();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
}

const MODELS: [(&str, &str); 4] = [
    ("run", "一辆新车"),
    ("classes", "the cat"),
    ("language", "the cat sees"),
    ("masked", "the <mask> sees"),
];

#[test]
fn every_task_has_a_lens() {
    for (model, input) in MODELS {
        good(&format!("lens {model}"), input, &format!("-o {model}-lens.json --top 3"));
        let lens = json(&format!("{model}-lens.json"));
        let positions = lens["positions"].as_array().expect("positions").len();
        for layer in lens["layers"].as_array().expect("layers") {
            let predictions = layer["predictions"].as_array().expect("predictions");
            assert_eq!(predictions.len(), positions, "{layer}");
        }
        good(&format!("lens {model}"), input, &format!("-o {model}-lens.html"));
        good(&format!("lens {model}"), input, &format!("-o {model}-lens.svg"));
    }
    assert!(text(&place().read("run-lens.html")).contains("What each layer predicts"));
    let shown = place().good("explain lens run 一辆新车");
    assert!(shown.contains("decoder.embedding") && shown.contains("<eos>"), "{shown}");
}

#[test]
fn every_task_has_attributions_by_every_method() {
    for (model, input) in MODELS {
        for method in ["gradient-x-input", "integrated-gradients", "rollout", "occlusion"] {
            let more = format!("--method {method} -o attribution-{model}.json --force");
            good(&format!("attribute {model}"), input, &more);
            let found = json(&format!("attribution-{model}.json"));
            assert_eq!(found["method"], method);
            for target in found["targets"].as_array().expect("targets") {
                let stacks = target["scores"].as_array().expect("stacks").iter();
                let lengths: Vec<usize> = stacks.map(|stack| numbers(stack).len()).collect();
                let inputs = found["inputs"].as_array().expect("inputs").iter();
                let pieces: Vec<usize> =
                    inputs.map(|stack| stack["pieces"].as_array().expect("pieces").len()).collect();
                assert_eq!(lengths, pieces, "{model}, {method}");
            }
        }
        good(&format!("attribute {model}"), input, &format!("-o attribution-{model}.svg --reduction l2"));
    }
}

#[test]
fn states_and_heads_are_patched() {
    let texts = "explain patch run 一辆新车 一本新书";
    for unit in ["states", "heads"] {
        let command = format!("{texts} --unit {unit} --answer car --wrong book -o {unit}.json");
        place().good(&command);
        let found = json(&format!("{unit}.json"));
        for grid in found["grids"].as_array().expect("grids") {
            let rows = grid["rows"].as_array().expect("rows").len();
            assert_eq!(grid["effects"].as_array().expect("effects").len(), rows);
        }
    }
    let effects = &json("states.json")["grids"][1]["effects"];
    let last = effects.as_array().and_then(|layers| layers.last()).expect("a layer");
    assert!((numbers(last)[0] - 1.0).abs() < 1e-3, "{last}");
    place().good(&format!("{texts} --answer car --wrong book -o states.html"));
}

#[test]
fn neurons_and_functions_of_heads_are_shown() {
    place().good("explain neuron run 一辆新车 --head decoder.0.cross.1 --query 0 --key 2 -o neuron.json");
    let pair = &json("neuron.json")["pair"];
    let sum: f64 = numbers(&pair["products"]).iter().sum();
    assert!((sum - pair["dot"].as_f64().expect("a number")).abs() < 1e-4, "{pair}");
    for (model, input) in MODELS {
        good(&format!("neuron {model}"), input, &format!("-o neuron-{model}.html"));
        let words = format!("explain heads {model} --json --random-tokens 4 --sentence");
        let output = place().command(&words).arg(input).finish();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert!(found["heads"].as_array().is_some_and(|heads| !heads.is_empty()), "{found}");
    }
}

#[test]
fn wrong_input_is_named() {
    place().good(&Workplace::training("rnn", "--steps 2 --family recurrent"));
    for (arguments, part) in [
        ("explain lens rnn 一辆新车", "only models of the Transformer family"),
        ("explain lens run 一辆新车 --top 0", "at least 1"),
        ("explain lens run 一辆新车 -o x.csv", "must end in .html or .svg or .png or .json"),
        ("explain attribute language the --target cat", "--target is only for translators and classifiers"),
        ("explain attribute classes the --target bird", "no label “bird”: it has cat, dog"),
        ("explain attribute run 一辆新车 --steps 0", "1 to 10000 steps"),
        ("explain attribute masked the", "no <mask>"),
        ("explain attribute run 一辆新车 --method rollout --steps 9", "--steps is only for"),
        ("explain attribute run 一辆新车 --method occlusion --reduction l2", "--reduction is only for"),
        ("explain patch run 一辆新车 一本书 --answer car --wrong book", "same number"),
        ("explain patch run 一辆新车 一本新书 --answer car --wrong car", "the same translation"),
        ("explain neuron run 一辆新车 --head decoder.7.cross.0", "no head decoder.7.cross.0"),
        ("explain neuron run 一辆新车 --query 99", "position 99 is not in the decoder"),
        ("explain heads run", "--src"),
    ] {
        let complaint = place().bad(arguments);
        assert!(complaint.contains(part), "{arguments}: {complaint}");
    }
}
