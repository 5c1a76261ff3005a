//! Reads the keys of an exercise file. Errors name the key, row and column.

use serde_json::{Map, Value};

use super::matrix::Matrix;

/// The maximum number of rows of a sequence: people read the tables.
pub(super) const MAX_ROWS: usize = 64;
/// The maximum number of columns of a matrix and of rows of a weight.
pub(super) const MAX_COLUMNS: usize = 256;
/// The largest absolute value. Products of such values stay finite.
const MAX_VALUE: f64 = 1e9;
/// The maximum length of a label in characters.
const MAX_LABEL_LENGTH: usize = 40;

/// An error in an exercise, with its location.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ExerciseError(pub(super) String);

impl crate::error::Cause for ExerciseError {}

pub(super) fn wrong<T>(message: impl Into<String>) -> Result<T, ExerciseError> {
    Err(ExerciseError(message.into()))
}

/// The keys of the file that have not been read yet.
pub(super) struct Fields {
    unused: Map<String, Value>,
}

impl Fields {
    /// Parses a JSON object whose keys must all be in `known`.
    pub(super) fn parse(text: &str, known: &[&str]) -> Result<Fields, ExerciseError> {
        let value: Value = serde_json::from_str(text)
            .map_err(|error| ExerciseError(format!("not valid JSON (which has no NaN and no ∞): {error}")))?;
        let Value::Object(unused) = value else {
            return wrong("the file must be a JSON object: { \"x\": [[1, 0], [0, 1]], … }");
        };
        if let Some(key) = unused.keys().find(|key| !known.contains(&key.as_str())) {
            return wrong(format!("there is no key {key:?}: the keys are {}", known.join(", ")));
        }
        Ok(Fields { unused })
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.unused.contains_key(key)
    }

    pub(super) fn take(&mut self, key: &str) -> Option<Value> {
        self.unused.remove(key)
    }

    /// A key that has not been read.
    pub(super) fn any_unused(&self) -> Option<&str> {
        self.unused.keys().next().map(String::as_str)
    }

    /// A sequence: one row per token.
    pub(super) fn sequence(&mut self, key: &str) -> Result<Option<Matrix>, ExerciseError> {
        self.matrix_of(key, MAX_ROWS)
    }

    /// A weight matrix.
    pub(super) fn weight(&mut self, key: &str) -> Result<Option<Matrix>, ExerciseError> {
        self.matrix_of(key, MAX_COLUMNS)
    }

    fn matrix_of(&mut self, key: &str, max_rows: usize) -> Result<Option<Matrix>, ExerciseError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let rows = array(&value, key, max_rows, "rows, each [number, …]")?;
        let rows: Vec<Vec<f64>> = rows
            .iter()
            .enumerate()
            .map(|(row, value)| numbers(value, &format!("{key}, row {}", row + 1)))
            .collect::<Result<_, _>>()?;
        let width = rows[0].len();
        if let Some(row) = rows.iter().position(|row| row.len() != width) {
            return wrong(format!(
                "{key}, row {} has {} numbers and row 1 has {width}: all rows must have the same length",
                row + 1,
                rows[row].len()
            ));
        }
        Ok(Some(Matrix::from_rows(&rows)))
    }

    /// A vector.
    pub(super) fn vector(&mut self, key: &str) -> Result<Option<Vec<f64>>, ExerciseError> {
        self.take(key).map(|value| numbers(&value, key)).transpose()
    }

    /// Labels of the rows of a sequence; `None` if the key is missing.
    pub(super) fn labels(
        &mut self,
        key: &str,
        of: &str,
        rows: usize,
    ) -> Result<Option<Vec<String>>, ExerciseError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let labels = array(&value, key, MAX_ROWS, "texts")?;
        if labels.len() != rows {
            return wrong(format!(
                "{key} has {} texts and {of} has {rows} rows: give one for each",
                labels.len()
            ));
        }
        let label = |(number, value): (usize, &Value)| match value.as_str() {
            Some(text) if text.contains(char::is_control) => {
                wrong(format!("{key}, text {} has a line break or another control character", number + 1))
            }
            Some(text) if text.chars().count() <= MAX_LABEL_LENGTH => Ok(text.to_owned()),
            Some(_) => {
                wrong(format!("{key}, text {} is longer than {MAX_LABEL_LENGTH} characters", number + 1))
            }
            None => wrong(format!("{key}, text {} is {value}: write it in quotes", number + 1)),
        };
        labels.iter().enumerate().map(label).collect::<Result<_, _>>().map(Some)
    }

    /// An integer in `min..=max`.
    pub(super) fn count(&mut self, key: &str, min: u64, max: u64) -> Result<Option<usize>, ExerciseError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        match value.as_u64() {
            Some(count) if (min..=max).contains(&count) => Ok(Some(count as usize)),
            _ => wrong(format!("{key} is {}: give a whole number from {min} to {max}", short(&value))),
        }
    }
}

/// The elements of an array that is neither empty nor too long.
pub(super) fn array<'a>(
    value: &'a Value,
    place: &str,
    max: usize,
    of: &str,
) -> Result<&'a [Value], ExerciseError> {
    match value.as_array() {
        None => wrong(format!("{place} is {}: give an array of {of}", short(value))),
        Some(elements) if elements.is_empty() => {
            wrong(format!("{place} is empty: give at least one element"))
        }
        Some(elements) if elements.len() > max => {
            wrong(format!("{place} has {} elements: at most {max} are allowed", elements.len()))
        }
        Some(elements) => Ok(elements),
    }
}

fn numbers(value: &Value, place: &str) -> Result<Vec<f64>, ExerciseError> {
    let number = |(column, value): (usize, &Value)| match value.as_f64() {
        Some(number) if number.abs() <= MAX_VALUE => Ok(number),
        Some(number) => wrong(format!(
            "{place}, column {} is {number:e}: the largest number is {MAX_VALUE:e}",
            column + 1
        )),
        None => wrong(format!("{place}, column {} is {}: give a number", column + 1, short(value))),
    };
    array(value, place, MAX_COLUMNS, "numbers")?.iter().enumerate().map(number).collect()
}

/// A value, shortened for error messages.
pub(super) fn short(value: &Value) -> String {
    match value {
        Value::Array(elements) => format!("an array of {} elements", elements.len()),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) if text.chars().count() > MAX_LABEL_LENGTH => "a long text".to_owned(),
        other => other.to_string(),
    }
}
