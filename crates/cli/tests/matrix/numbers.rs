//! Numbers of one result against those of another: JSON values at the same places.

use serde_json::Value;

/// How far apart the results of two types may be, relative to the larger of 1 and the f32 value.
pub(crate) fn bound(stored: &str) -> f64 {
    if stored == "int8" { 0.2 } else { 0.1 }
}

/// The values of a text: one for each line that is JSON.
pub(crate) fn parsed(text: &str) -> Vec<Value> {
    match serde_json::from_str(text) {
        Ok(value) => vec![value],
        Err(_) => text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect(),
    }
}

/// Which texts of two results may differ.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Texts {
    /// None: what is asked decides them.
    Same,
    /// Those of a ranking, whose n-th numbers are near each other all the same.
    Ranked,
    /// All: a search may find something else, and its numbers are those of another text.
    Found,
}

/// Keys of times, checksums, names and sizes, which are no results, and of places of maxima.
const OTHERS: [&str; 7] = ["seconds", "timings", "checksum", "model", "bytes", "compute", "alignment"];

/// The largest distance between numbers at the same places; `None` if the results have other shapes, or other texts that may not
/// differ.
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
        (Value::Object(a), Value::Object(b)) if a.len() == b.len() => {
            a.iter().try_fold(0.0, |largest: f64, (key, a)| {
                if OTHERS.contains(&key.as_str()) {
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
    let [cat, dog] = [r#"[{"word": "cat", "p": 0.5}]"#, r#"[{"word": "dog", "p": 0.25}]"#];
    assert_eq!((far(cat, dog, Texts::Same), far(cat, dog, Texts::Ranked)), (None, Some(0.25)));
}
