//! A value in a recipe or on the command line, before type checking.

use std::fmt;

use serde::Serialize;
use toml::de::{DeTable, DeValue};

/// A value that was not checked against its key yet.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Literal {
    /// `true`, `false`.
    Boolean(bool),
    /// `4096`.
    Integer(i64),
    /// `0.3`, `5e-3`.
    Float(f64),
    /// `"bf16"`.
    Text(String),
    /// `["a.txt", "b.txt"]`.
    List(Vec<Literal>),
}

impl Literal {
    /// The text after `key=` or after a flag, parsed as TOML if possible, else as plain text.
    pub fn typed(text: &str) -> Literal {
        let line = format!("value = {text}");
        let parsed = DeTable::parse(&line).ok().and_then(|table| {
            let table = table.into_inner();
            // A line break or a second key would be more than one value.
            if table.len() > 1 { None } else { Literal::from_toml(table.get("value")?.get_ref()).ok() }
        });
        parsed.unwrap_or_else(|| Literal::Text(text.to_owned()))
    }

    /// The value of a TOML key; the error names the type that was found instead.
    pub(super) fn from_toml(value: &DeValue<'_>) -> Result<Literal, &'static str> {
        match value {
            DeValue::String(text) => Ok(Literal::Text(text.to_string())),
            DeValue::Boolean(value) => Ok(Literal::Boolean(*value)),
            DeValue::Integer(value) => i64::from_str_radix(value.as_str(), value.radix())
                .map(Literal::Integer)
                .map_err(|_| "a number too large for 64 bits"),
            DeValue::Float(value) => {
                value.as_str().parse().map(Literal::Float).map_err(|_| "an invalid number")
            }
            DeValue::Array(values) => {
                let values = values.iter().map(|value| Literal::from_toml(value.get_ref()));
                values.collect::<Result<_, _>>().map(Literal::List)
            }
            DeValue::Datetime(_) => Err("a date"),
            DeValue::Table(_) => Err("a table"),
        }
    }
}

/// As TOML.
impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Literal::Boolean(value) => write!(f, "{value}"),
            Literal::Integer(value) => write!(f, "{value}"),
            // Debug always prints a point or an exponent, so that TOML does not parse an integer.
            Literal::Float(value) => write!(f, "{value:?}"),
            Literal::Text(text) => quote(text, f),
            Literal::List(values) => {
                f.write_str("[")?;
                for (i, value) in values.iter().enumerate() {
                    f.write_str(if i == 0 { "" } else { ", " })?;
                    value.fmt(f)?;
                }
                f.write_str("]")
            }
        }
    }
}

fn quote(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("\"")?;
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(f, "\\{c}")?,
            c if c.is_control() => write!(f, "\\u{:04X}", u32::from(c))?,
            c => write!(f, "{c}")?,
        }
    }
    f.write_str("\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_values_are_toml_or_text() {
        for (text, expected) in [
            ("0.3", Literal::Float(0.3)),
            ("5e-3", Literal::Float(5e-3)),
            ("4096", Literal::Integer(4096)),
            ("25_000", Literal::Integer(25_000)),
            ("true", Literal::Boolean(true)),
            ("noam", Literal::Text("noam".to_owned())),
            ("30m", Literal::Text("30m".to_owned())),
            ("", Literal::Text(String::new())),
            ("1\nother = 2", Literal::Text("1\nother = 2".to_owned())),
            ("[\"a\", \"b\"]", Literal::List(["a", "b"].map(|s| Literal::Text(s.to_owned())).to_vec())),
        ] {
            assert_eq!(Literal::typed(text), expected, "{text}");
        }
    }

    #[test]
    fn values_round_trip_through_printing() {
        for literal in [
            Literal::Float(1e-9),
            Literal::Float(3.0),
            Literal::Text("a \"b\" \\ c\nd é 套".to_owned()),
            Literal::List(vec![Literal::Integer(-3), Literal::Boolean(false)]),
        ] {
            assert_eq!(Literal::typed(&literal.to_string()), literal);
        }
    }
}
