//! Compares the numbers of two results at the same JSON paths.

use serde_json::Value;

/// Maximum distance between the results of two types, relative to the larger of 1 and the f32 value.
pub(crate) fn bound(stored: &str) -> f64 {
    if stored == "int8" { 0.2 } else { 0.1 }
}

/// The JSON values of a text, one per JSON line.
pub(crate) fn parsed(text: &str) -> Vec<Value> {
    match serde_json::from_str(text) {
        Ok(value) => vec![value],
        Err(_) => text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect(),
    }
}

/// The texts that may differ between two results.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Texts {
    /// None, because the request determines them.
    Same,
    /// Texts of a ranking, whose n-th numbers are still near each other.
    Ranked,
    /// All, because a search may find a different text with different numbers.
    Found,
}

/// Keys that are not compared: times, checksums, names and sizes, positions of maxima, and ratios whose
/// denominator may be near zero.
const IGNORED_KEYS: [&str; 11] = [
    "seconds",
    "timings",
    "checksum",
    "model",
    "bytes",
    "compute",
    "alignment",
    "id",
    "rank",
    "relative_error",
    "effects",
];

/// The largest distance between numbers at the same paths; `None` if the results have different shapes, or
/// texts that must not differ.
pub(crate) fn distance(exact: &[Value], other: &[Value], texts: Texts) -> Option<f64> {
    if exact.len() != other.len() {
        return None;
    }
    exact.iter().zip(other).try_fold(0.0, |largest: f64, (a, b)| Some(largest.max(of_value(a, b, texts)?)))
}

fn of_value(a: &Value, b: &Value, texts: Texts) -> Option<f64> {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64()?, b.as_f64()?);
            Some((a - b).abs() / a.abs().max(1.0))
        }
        (Value::Array(a), Value::Array(b)) => distance(a, b, texts),
        // A token that each type chose for itself, such as the one with the largest weight.
        (Value::Object(a), Value::Object(b)) if a.get("position") != b.get("position") => None,
        (Value::Object(a), Value::Object(b)) if a.len() == b.len() => {
            a.iter().try_fold(0.0, |largest: f64, (key, a)| {
                if IGNORED_KEYS.contains(&key.as_str()) {
                    return Some(largest);
                }
                Some(largest.max(of_value(a, b.get(key)?, texts)?))
            })
        }
        (Value::String(_), Value::String(_)) if texts == Texts::Ranked => Some(0.0),
        (a, b) => (a == b).then_some(0.0),
    }
}

#[test]
fn numbers_of_other_results_have_no_distance() {
    let parsed = |text: &str| parsed(text);
    let far = |a: &str, b: &str, texts| distance(&parsed(a), &parsed(b), texts);
    assert_eq!(
        far(r#"{"x": [4, 0.5], "seconds": 1}"#, r#"{"x": [3, 0.5], "seconds": 9}"#, Texts::Same),
        Some(0.25)
    );
    assert_eq!(far(r#"{"x": [4]}"#, r#"{"x": [4, 4]}"#, Texts::Ranked), None);
    assert_eq!(far(r#"{"x": [4]}"#, "nonsense", Texts::Same), None);
    assert_eq!(far(r#"{"key": {"position": 1}}"#, r#"{"key": {"position": 2}}"#, Texts::Found), None);
    let [cat, dog] = [r#"[{"word": "cat", "p": 0.5}]"#, r#"[{"word": "dog", "p": 0.25}]"#];
    assert_eq!((far(cat, dog, Texts::Same), far(cat, dog, Texts::Ranked)), (None, Some(0.25)));
}
