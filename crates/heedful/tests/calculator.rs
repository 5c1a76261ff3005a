//! The attention calculator: it matches numpy and the kernels, and its errors name the location.

use heedful::explain::calculator::{EXAMPLES, Exercise, ExerciseOverrides, MaskRule, Matrix, Solution};
use heedful::layers::AttentionScore;
use heedful::tensor::ops::{self, AttentionOptions, ColumnView, Mask, ReturnWeights};
use heedful::tensor::random::Dropout;
use heedful::tensor::{Ragged, Rounding, Tensor};
use serde_json::Value;

/// Exercises with the tables that numpy computed for them.
fn goldens() -> Vec<(String, Value)> {
    let text = include_str!("golden/calculator.json");
    let cases: Vec<Value> = serde_json::from_str(text).expect("run `cargo xtask golden`");
    cases.into_iter().map(|case| (case["numbers"].to_string(), case["tables"].clone())).collect()
}

fn solve(text: &str) -> Solution {
    Exercise::parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).solve()
}

/// Compares every number of `expected` with the number of `ours` at the same path.
fn compare(path: &str, ours: &Value, expected: &Value) {
    match expected {
        Value::Object(fields) => {
            fields.iter().for_each(|(key, value)| compare(&format!("{path} {key}"), &ours[key], value));
        }
        Value::Array(elements) => {
            assert_eq!(ours.as_array().map(Vec::len), Some(elements.len()), "{path}");
            for (index, value) in elements.iter().enumerate() {
                compare(&format!("{path} {index}"), &ours[index], value);
            }
        }
        Value::Number(_) => {
            let (ours, expected) = (ours.as_f64(), expected.as_f64().expect("a number"));
            let ours = ours.unwrap_or_else(|| panic!("{path}: not a number"));
            assert!((ours - expected).abs() <= 1e-12 * expected.abs().max(1.0), "{path}: {ours} {expected}");
        }
        other => assert_eq!(ours, other, "{path}"),
    }
}

#[test]
fn every_table_matches_numpy() {
    let goldens = goldens();
    assert!(goldens.len() > 20, "{}", goldens.len());
    for (number, (numbers, tables)) in goldens.iter().enumerate() {
        compare(&format!("case {number}"), &solve(numbers).to_json(), tables);
    }
}

#[test]
fn the_attention_kernels_compute_the_same() {
    let part = |matrix: &Matrix| {
        ColumnView::whole(Tensor::from_f32(matrix.height(), matrix.width(), &matrix.to_f32()))
    };
    let mut compared = 0;
    for (numbers, _) in goldens() {
        let given: Value = serde_json::from_str(&numbers).expect("JSON");
        let score = given["score"].as_str().and_then(AttentionScore::from_name).unwrap_or_default();
        if !score.requires_equal_widths() || given["mask"].is_array() {
            continue;
        }
        let solution = solve(&numbers);
        let mut mask = Mask::full();
        if given["mask"] == "causal" {
            mask = mask.causal();
        }
        if let Some(radius) = given["window"].as_u64() {
            mask = mask.within(radius as usize);
        }
        let heads = solution.heads.len();
        let options = AttentionOptions {
            heads,
            scale: score.scale(solution.k.width() / heads),
            mask,
            dropout: Dropout::NONE,
            weights: ReturnWeights::All,
            rounding: Rounding::default(),
        };
        let (queries, keys) =
            (Ragged::from_lengths([solution.q.height()]), Ragged::from_lengths([solution.k.height()]));
        let attended = ops::attention(
            part(&solution.q),
            part(&solution.k),
            part(&solution.v),
            &queries,
            &keys,
            &options,
        );
        let near = |ours: &[f32], theirs: &[f32]| {
            ours.iter().zip(theirs).all(|(a, b)| (a - b).abs() <= 1e-5 * b.abs().max(1.0))
        };
        assert!(near(&attended.context.to_vec(), &solution.result.to_f32()), "{numbers}");
        let weights = attended.weights.expect("requested");
        for (head, of_head) in solution.heads.iter().enumerate() {
            assert!(near(&weights[0][head], &of_head.weights.to_f32()), "{numbers}");
        }
        compared += 1;
    }
    assert!(compared >= 8, "{compared}");
}

#[test]
fn weights_sum_to_one_and_masked_keys_have_exactly_zero() {
    for (numbers, _) in goldens() {
        for head in solve(&numbers).heads {
            for (weights, masked) in head.weights.rows().zip(head.masked.rows()) {
                assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-12);
                assert!(
                    weights.iter().zip(masked).all(|(weight, score)| score.is_finite() || *weight == 0.0)
                );
            }
        }
    }
}

#[test]
fn the_examples_are_rendered_as_text_and_as_a_page() {
    for (name, about, text) in EXAMPLES {
        assert!(!about.is_empty());
        let solution = solve(text);
        let shown = solution.to_text(3);
        for table in ["Q", "scores", "weights", "result"] {
            assert!(shown.contains(table), "{name}: {table}\n{shown}");
        }
        let page = solution.report("attention", 3).to_html();
        assert!(page.contains("<svg") && page.contains("softmax"), "{name}");
        assert!(solution.weights_svg().starts_with("<svg"));
    }
    let shown = solve(EXAMPLES[0].2).to_text(3);
    assert!(shown.contains("−∞") && shown.contains("√3"), "{shown}");
}

#[test]
fn flags_replace_keys_of_the_file() {
    let text = EXAMPLES[0].2;
    let keys = ExerciseOverrides { score: Some(AttentionScore::Dot), mask: Some(None), window: Some(0) };
    let solution = Exercise::parse_with(text, &keys).expect("a good exercise").solve();
    // Every word attends only to itself.
    assert_eq!(solution.result, solution.v);
    let causal = ExerciseOverrides { mask: Some(Some(MaskRule::Causal)), ..ExerciseOverrides::default() };
    let solution = Exercise::parse_with(EXAMPLES[2].2, &causal).expect("a good exercise").solve();
    assert_eq!(solution.heads[0].weights.row(0), [1.0, 0.0, 0.0]);
    // Matrices of a different score are ignored when a score is chosen.
    let equal = r#"{"q": [[1]], "k": [[1]], "v": [[1]], "score": "general", "score_matrix": [[2]]}"#;
    assert!(Exercise::parse_with(equal, &keys).is_ok());
}

#[test]
fn errors_name_the_location_of_the_mistake() {
    let square = |more: &str| {
        format!(
            r#"{{"x": [[1, 2], [3, 4]], "w_q": [[1, 0], [0, 1]], "w_k": [[1, 0], [0, 1]], "w_v": [[1], [1]]{more}}}"#
        )
    };
    assert!(Exercise::parse(&square("")).is_ok());
    let many = format!("[{}]", vec!["[1]"; 65].join(","));
    let wide = format!("[[{}]]", vec!["1"; 257].join(","));
    let cases = [
        ("[1]".to_owned(), "must be a JSON object"),
        ("{\"x\": [[NaN]]}".to_owned(), "line 1 column 9"),
        ("{\"x\": [[1e999]]}".to_owned(), "out of range"),
        ("{}".to_owned(), "--example"),
        (r#"{"x": [[1, 2], [3]]}"#.to_owned(), "x, row 2 has 1 numbers and row 1 has 2"),
        (r#"{"x": [[1, null]]}"#.to_owned(), "x, row 1, column 2 is null"),
        (r#"{"x": [[1, "2"]]}"#.to_owned(), "x, row 1, column 2 is \"2\""),
        (r#"{"x": [[1e10]]}"#.to_owned(), "x, row 1, column 1 is 1e10: the largest number is 1e9"),
        (r#"{"x": []}"#.to_owned(), "x is empty"),
        (r#"{"x": [[]]}"#.to_owned(), "x, row 1 is empty"),
        (r#"{"x": 3}"#.to_owned(), "x is 3: give an array of rows"),
        (format!(r#"{{"x": {many}}}"#), "x has 65 elements: at most 64"),
        (format!(r#"{{"x": {wide}}}"#), "x, row 1 has 257 elements: at most 256"),
        (r#"{"x": [[1]], "w_q": [[1]], "w_k": [[1]]}"#.to_owned(), "w_v is missing"),
        (r#"{"x": [[1]], "w_q": [[1], [1]]}"#.to_owned(), "w_q has 2 rows and x has 1 columns"),
        (square(r#", "memory": [[1]]"#), "w_k has 2 rows and memory has 1 columns"),
        (square(r#", "b_v": [1, 2]"#), "b_v has 2 numbers and w_v has 1 columns"),
        (square(r#", "wq": 1"#), "no key \"wq\""),
        (square(r#", "q": [[1]]"#), "q has no effect here"),
        (square(r#", "memory_tokens": ["a"]"#), "memory_tokens has no effect"),
        (square(r#", "tokens": ["a"]"#), "tokens has 1 texts and x has 2 rows"),
        (square(r#", "tokens": ["a", 2]"#), "tokens, text 2 is 2"),
        (square(r#", "tokens": ["a", "b\nc"]"#), "tokens, text 2 has a line break"),
        (square(r#", "score": "cosine""#), "additive, dot, general, scaled-dot"),
        (square(r#", "score": "general""#), "needs score_matrix"),
        (
            square(r#", "score": "general", "heads": 2"#),
            "heads is 2 and the score is general: several heads need",
        ),
        (
            square(r#", "score": "additive", "heads": 2"#),
            "heads is 2 and the score is additive: several heads need",
        ),
        (square(r#", "score_matrix": [[1]]"#), "score_matrix has no effect"),
        (
            square(r#", "score": "general", "score_matrix": [[1], [1]]"#),
            "score_matrix has 1 columns and keys have 2",
        ),
        (
            square(r#", "score": "additive", "score_query": [[1], [1]], "score_key": [[1], [1]]"#),
            "needs score_vector",
        ),
        (square(r#", "mask": "future""#), "mask is \"future\""),
        (square(r#", "mask": [[true, false]]"#), "mask has 1 rows and there are 2 queries"),
        (square(r#", "mask": [[true, false], [true]]"#), "mask, row 2 has 1 elements"),
        (square(r#", "mask": [[1, 0], [1, 2]]"#), "mask, row 2, column 2 is 2"),
        (square(r#", "mask": [[1, 0], [0, 0]]"#), "hides every key from query 2"),
        (square(r#", "window": -1"#), "window is -1"),
        (square(r#", "heads": 2"#), "values have 1 columns, which 2 heads cannot share"),
        (square(r#", "heads": 1000000000"#), "heads is 1000000000"),
        (square(r#", "w_o": [[1], [1]]"#), "w_o has 2 rows and the result has 1 columns"),
        (square(r#", "b_o": [1]"#), "b_o has no effect"),
        (r#"{"q": [[1, 2]], "k": [[1]], "v": [[1]]}"#.to_owned(), "queries have 2 columns and keys have 1"),
        (r#"{"q": [[1]], "k": [[1]], "v": [[1], [2]]}"#.to_owned(), "k has 1 rows and v has 2"),
    ];
    for (text, expected) in cases {
        let error = Exercise::parse(&text).expect_err(&text).to_string();
        assert!(error.contains(expected), "{text}\n{error}\n{expected}");
    }
}
