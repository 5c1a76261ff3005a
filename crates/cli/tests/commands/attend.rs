//! `heedful attend` as a process.

use std::io::Write;

use crate::support::{Workplace, text};
use serde_json::Value;

#[test]
fn the_example_is_a_valid_file() {
    let place = Workplace::empty();
    for name in ["", " self", " cross", " heads", " additive"] {
        let numbers = place.good(&format!("attend --example{name}"));
        place.write("numbers.json", numbers.as_bytes());
        let tables = place.good("attend numbers.json --digits 2");
        assert!(tables.contains("softmax") && tables.contains("result = weights V"), "{tables}");
    }
    let cross = place.good("attend --example cross");
    assert!(cross.contains("memory"), "{cross}");
}

#[test]
fn results_are_written_in_every_format() {
    let place = Workplace::empty();
    place.write(
        "numbers.json",
        br#"{"q": [[0, 0]], "k": [[1, 2], [3, 4]], "v": [[2], [4]], "tokens": ["<b>"]}"#,
    );
    let json: Value =
        serde_json::from_str(&place.good("attend numbers.json --json -o same.json")).expect("JSON");
    assert_eq!(json["heads"][0]["weights"], serde_json::json!([[0.5, 0.5]]));
    assert_eq!(json["result"], serde_json::json!([[3.0]]));
    assert_eq!(serde_json::from_slice::<Value>(&place.read("same.json")).expect("JSON"), json);
    let shown = place.good("attend numbers.json -o page.html");
    let page = text(&place.read("page.html"));
    assert!(page.contains("&lt;b&gt;") && !page.contains("<b>") && page.contains("<svg"), "{page}");
    place.good("attend numbers.json -o tables.txt");
    assert_eq!(text(&place.read("tables.txt")), shown);
    place.good("attend numbers.json -o weights.svg");
    assert!(text(&place.read("weights.svg")).starts_with("<svg"));
    assert!(place.bad("attend numbers.json -o weights.pdf").contains(".html or .json"));
}

#[test]
fn flags_replace_the_score_and_the_mask() {
    let place = Workplace::empty();
    let example = place.good("attend --example");
    place.write("numbers.json", example.as_bytes());
    let weights = |flags: &str| -> Value {
        let json: Value =
            serde_json::from_str(&place.good(&format!("attend numbers.json --json {flags}"))).expect("JSON");
        json["heads"][0]["weights"].clone()
    };
    assert_eq!(weights("")[0], serde_json::json!([1.0, 0.0, 0.0]));
    assert_ne!(weights("--mask none")[0], serde_json::json!([1.0, 0.0, 0.0]));
    assert_eq!(weights("--mask none --window 0")[2], serde_json::json!([0.0, 0.0, 1.0]));
    assert_ne!(weights("--score dot"), weights(""));
    assert!(place.bad("attend numbers.json --score general").contains("score_matrix"));
    assert!(place.bad("attend numbers.json --score cosine").contains("scaled-dot"));
}

#[test]
fn bad_files_are_refused_with_their_name() {
    let place = Workplace::empty();
    assert!(place.bad("attend").contains("FILE"));
    assert!(place.bad("attend missing.json").contains("cannot read missing.json"));
    place.write("ragged.json", br#"{"x": [[1, 2], [3]]}"#);
    assert!(place.bad("attend ragged.json").contains("ragged.json: x, row 2 has 1 numbers"));
    place.write("huge.json", &vec![b' '; (8 << 20) + 1]);
    assert!(place.bad("attend huge.json").contains("more than 8388608 bytes"));
    place.write("latin.json", b"{\"x\": \"\xe9\"}");
    assert!(place.bad("attend latin.json").contains("UTF-8"));
    assert!(place.bad("attend ragged.json -o ragged.json").contains("ragged.json"));
}

#[test]
fn standard_input_is_accepted() {
    let place = Workplace::empty();
    let mut child = place.start("attend - --json");
    child
        .stdin
        .take()
        .expect("a pipe")
        .write_all(br#"{"q": [[1]], "k": [[1]], "v": [[7]]}"#)
        .expect("it reads");
    let output = child.output();
    assert!(output.status.success());
    assert!(text(&output.stdout).contains("\"result\":[[7.0]]"));
}
