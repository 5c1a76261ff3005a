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

/// The largest distance between numbers at the same places; `None` if the results have other shapes or other texts: a search then
/// found something else, and its numbers are those of another text.
pub(crate) fn distance(exact: &[Value], other: &[Value]) -> Option<f64> {
    if exact.len() != other.len() {
        return None;
    }
    exact.iter().zip(other).try_fold(0.0, |largest: f64, (a, b)| Some(largest.max(of_value(a, b)?)))
}

fn of_value(a: &Value, b: &Value) -> Option<f64> {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64()?, b.as_f64()?);
            Some((a - b).abs() / a.abs().max(1.0))
        }
        (Value::Array(a), Value::Array(b)) => distance(a, b),
        (Value::Object(a), Value::Object(b)) if a.len() == b.len() => {
            a.iter().try_fold(0.0, |largest: f64, (key, a)| {
                // Times and checksums are not results.
                if ["seconds", "checksum", "model", "bytes"].contains(&key.as_str()) {
                    return Some(largest);
                }
                Some(largest.max(of_value(a, b.get(key)?)?))
            })
        }
        (a, b) => (a == b).then_some(0.0),
    }
}
