//! Reads a boolean attention mask from a file: rows of 0 and 1, as text or as JSON.
//!
//! ```text
//! 1 0 0        [[1, 0, 0],
//! 110           [true, true, false],
//! 1,1,1         [1, 1, 1]]
//! ```
//!
//! Rows are queries, columns are keys; 1 lets the query attend to the key. Text files may have white space
//! and commas between digits, blank lines, and comments after `#`.

use crate::layers::{AttentionMask, AttentionRole};

/// Rows of a mask file, all equally long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaskRows {
    rows: Vec<Vec<bool>>,
}

/// Errors in a mask file. Rows are counted from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MaskFileError {
    /// The file has no rows.
    #[error("the mask has no row: give a row of 0 and 1 for each query")]
    Empty,
    /// The file begins like JSON but is not an array of rows.
    #[error("the mask is not a JSON array of rows such as [[1,0],[1,1]]: {reason}")]
    Json {
        /// The parser's message.
        reason: String,
    },
    /// An element that is neither 0 nor 1.
    #[error("row {row} of the mask has “{found}”: only 0 and 1 are allowed")]
    Digit {
        /// The row.
        row: usize,
        /// The element.
        found: String,
    },
    /// Rows have different lengths.
    #[error(
        "row {row} of the mask has {length} elements, but the first row has {first}: every row needs one element per key"
    )]
    Ragged {
        /// The row.
        row: usize,
        /// Its length.
        length: usize,
        /// The length of the first.
        first: usize,
    },
    /// A row has no 1.
    #[error("row {row} of the mask has no 1: every query needs at least one key")]
    NoKey {
        /// The row.
        row: usize,
    },
}

impl crate::error::Cause for MaskFileError {}

impl MaskRows {
    /// Reads the contents of a file.
    pub fn parse(text: &str) -> Result<MaskRows, MaskFileError> {
        let text = text.trim_start_matches('\u{feff}');
        let rows = if text.trim_start().starts_with('[') { from_json(text)? } else { from_text(text)? };
        let first = rows.first().ok_or(MaskFileError::Empty)?.len();
        for (index, row) in rows.iter().enumerate() {
            let row_number = index + 1;
            if row.len() != first {
                return Err(MaskFileError::Ragged { row: row_number, length: row.len(), first });
            }
            if !row.contains(&true) {
                return Err(MaskFileError::NoKey { row: row_number });
            }
        }
        Ok(MaskRows { rows })
    }

    /// The mask for all layers of a role.
    pub fn mask(&self, role: AttentionRole) -> AttentionMask {
        AttentionMask::new(role, [self.rows.len(), self.rows[0].len()], self.rows.concat())
    }
}

fn from_text(text: &str) -> Result<Vec<Vec<bool>>, MaskFileError> {
    let mut rows = Vec::new();
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default();
        let digits = line.chars().filter(|c| !c.is_whitespace() && *c != ',');
        let row: Vec<bool> = digits
            .map(|digit| match digit {
                '0' => Ok(false),
                '1' => Ok(true),
                other => Err(MaskFileError::Digit { row: rows.len() + 1, found: other.to_string() }),
            })
            .collect::<Result<_, _>>()?;
        if !row.is_empty() {
            rows.push(row);
        }
    }
    Ok(rows)
}

fn from_json(text: &str) -> Result<Vec<Vec<bool>>, MaskFileError> {
    let rows: Vec<Vec<serde_json::Value>> =
        serde_json::from_str(text).map_err(|error| MaskFileError::Json { reason: error.to_string() })?;
    let boolean = |row: usize, value: &serde_json::Value| match value {
        serde_json::Value::Bool(value) => Ok(*value),
        value if value.as_u64() == Some(0) => Ok(false),
        value if value.as_u64() == Some(1) => Ok(true),
        other => Err(MaskFileError::Digit { row, found: other.to_string() }),
    };
    let row = |(index, row): (usize, &Vec<serde_json::Value>)| {
        row.iter().map(|value| boolean(index + 1, value)).collect::<Result<_, _>>()
    };
    rows.iter().enumerate().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_json_give_the_same_mask() {
        let expected = MaskRows { rows: vec![vec![true, false], vec![true, true]] };
        for text in [
            "10\n11",
            "# a comment\n1 0\n\n1,1 # all\n",
            "[[1,0],[1,1]]",
            " [[true, false],\n [1, true]]\n",
            "\u{feff}10\n11",
        ] {
            assert_eq!(MaskRows::parse(text).as_ref(), Ok(&expected), "{text}");
        }
    }

    #[test]
    fn errors_name_the_row() {
        for (text, expected) in [
            ("", "no row"),
            ("# nothing", "no row"),
            ("[]", "no row"),
            ("10\n12", "row 2 of the mask has “2”"),
            ("1 0\n1", "row 2 of the mask has 1 elements, but the first row has 2"),
            ("11\n\n00", "row 2 of the mask has no 1"),
            ("[[1,0],[0.5,1]]", "row 2 of the mask has “0.5”"),
            ("[[1,0],[\"1\",1]]", "row 2"),
            ("[[1,0],[]]", "row 2 of the mask has 0 elements"),
            ("[1,0]", "not a JSON array of rows"),
            ("[[1,0]", "not a JSON array of rows"),
            ("[[]]", "row 1 of the mask has no 1"),
        ] {
            let error = MaskRows::parse(text).expect_err(text).to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
