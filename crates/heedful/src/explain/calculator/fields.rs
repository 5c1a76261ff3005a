//! The file of an exercise, key by key: what is wrong is named with its place.

use serde_json::{Map, Value};

use super::matrix::Matrix;

/// The most rows of a sequence: an exercise is read by people.
pub(super) const MOST_ROWS: usize = 64;
/// The most columns of a matrix, and rows of a weight.
pub(super) const MOST_COLUMNS: usize = 256;
/// The largest number. Products of such numbers stay finite.
const LARGEST: f64 = 1e9;
/// The longest label.
const LONGEST_LABEL: usize = 40;

/// What is wrong with an exercise, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ExerciseError(pub(super) String);

impl crate::error::Cause for ExerciseError {}

pub(super) fn wrong<T>(message: impl Into<String>) -> Result<T, ExerciseError> {
    Err(ExerciseError(message.into()))
}

/// The keys that were not read yet.
pub(super) struct Fields {
    unread: Map<String, Value>,
}

impl Fields {
    /// The keys of a JSON object, all of which are among `known`.
    pub(super) fn parse(text: &str, known: &[&str]) -> Result<Fields, ExerciseError> {
        let value: Value = serde_json::from_str(text)
            .map_err(|error| ExerciseError(format!("not valid JSON (which has no NaN and no ∞): {error}")))?;
        let Value::Object(unread) = value else {
            return wrong("the file must be a JSON object: { \"x\": [[1, 0], [0, 1]], … }");
        };
        if let Some(key) = unread.keys().find(|key| !known.contains(&key.as_str())) {
            return wrong(format!("there is no key {key:?}: the keys are {}", known.join(", ")));
        }
        Ok(Fields { unread })
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.unread.contains_key(key)
    }

    pub(super) fn take(&mut self, key: &str) -> Option<Value> {
        self.unread.remove(key)
    }

    /// A key that nothing has read.
    pub(super) fn any_unread(&self) -> Option<&str> {
        self.unread.keys().next().map(String::as_str)
    }

    /// A sequence: one row for each of its tokens.
    pub(super) fn sequence(&mut self, key: &str) -> Result<Option<Matrix>, ExerciseError> {
        self.matrix_of(key, MOST_ROWS)
    }

    /// A weight.
    pub(super) fn weight(&mut self, key: &str) -> Result<Option<Matrix>, ExerciseError> {
        self.matrix_of(key, MOST_COLUMNS)
    }

    fn matrix_of(&mut self, key: &str, most_rows: usize) -> Result<Option<Matrix>, ExerciseError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let rows = array(&value, key, most_rows, "rows, each [number, …]")?;
        let rows: Vec<Vec<f64>> = rows
            .iter()
            .enumerate()
            .map(|(row, value)| numbers(value, &format!("{key}, row {}", row + 1)))
            .collect::<Result<_, _>>()?;
        let width = rows[0].len();
        if let Some(row) = rows.iter().position(|row| row.len() != width) {
            return wrong(format!(
                "{key}, row {} has {} numbers and row 1 has {width}: give all rows one length",
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

    /// Labels of the rows of a sequence; by default their numbers.
    pub(super) fn labels(
        &mut self,
        key: &str,
        of: &str,
        rows: usize,
    ) -> Result<Option<Vec<String>>, ExerciseError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let labels = array(&value, key, MOST_ROWS, "texts")?;
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
            Some(text) if text.chars().count() <= LONGEST_LABEL => Ok(text.to_owned()),
            Some(_) => wrong(format!("{key}, text {} is longer than {LONGEST_LABEL} characters", number + 1)),
            None => wrong(format!("{key}, text {} is {value}: write it in quotes", number + 1)),
        };
        labels.iter().enumerate().map(label).collect::<Result<_, _>>().map(Some)
    }

    /// A number from 1 on (`least` 1) or from 0.
    pub(super) fn count(&mut self, key: &str, least: u64, most: u64) -> Result<Option<usize>, ExerciseError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        match value.as_u64() {
            Some(count) if (least..=most).contains(&count) => Ok(Some(count as usize)),
            _ => wrong(format!("{key} is {}: give a whole number from {least} to {most}", short(&value))),
        }
    }
}

/// The elements of an array that is neither empty nor too long.
pub(super) fn array<'a>(
    value: &'a Value,
    place: &str,
    most: usize,
    of: &str,
) -> Result<&'a [Value], ExerciseError> {
    match value.as_array() {
        None => wrong(format!("{place} is {}: give an array of {of}", short(value))),
        Some(elements) if elements.is_empty() => {
            wrong(format!("{place} is empty: give at least one element"))
        }
        Some(elements) if elements.len() > most => {
            wrong(format!("{place} has {} elements: at most {most} are shown", elements.len()))
        }
        Some(elements) => Ok(elements),
    }
}

fn numbers(value: &Value, place: &str) -> Result<Vec<f64>, ExerciseError> {
    let number = |(column, value): (usize, &Value)| match value.as_f64() {
        Some(number) if number.abs() <= LARGEST => Ok(number),
        Some(number) => {
            wrong(format!("{place}, column {} is {number:e}: the largest number is {LARGEST:e}", column + 1))
        }
        None => wrong(format!("{place}, column {} is {}: give a number", column + 1, short(value))),
    };
    array(value, place, MOST_COLUMNS, "numbers")?.iter().enumerate().map(number).collect()
}

/// A value as an error quotes it.
pub(super) fn short(value: &Value) -> String {
    match value {
        Value::Array(elements) => format!("an array of {} elements", elements.len()),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) if text.chars().count() > LONGEST_LABEL => "a long text".to_owned(),
        other => other.to_string(),
    }
}
