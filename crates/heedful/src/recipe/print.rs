//! A recipe as TOML and as JSON.

use std::fmt::Write;

use serde_json::{Map, Value};

use super::{Recipe, SECTIONS};

pub(super) const HOW_TO_LIST: &str = "`heedful train --print-recipe` lists all keys";

/// Comments are wrapped at this column.
const WIDTH: usize = 100;

impl Recipe {
    /// A complete recipe as TOML: every key with its meaning as a comment. Keys for which `is_set` is false
    /// are commented out.
    pub(crate) fn to_toml_where(&self, is_set: impl Fn(&super::Key) -> bool) -> String {
        let mut text = String::new();
        for section in SECTIONS {
            if !text.is_empty() {
                text.push('\n');
            }
            comment(&mut text, section.help);
            writeln!(text, "[{}]", section.name).expect("a string takes everything");
            for key in section.keys {
                comment(&mut text, key.help);
                let prefix = if is_set(key) { "" } else { "# " };
                writeln!(text, "{prefix}{} = {}", key.name, key.value(self))
                    .expect("a string takes everything");
            }
        }
        text
    }

    /// All values by section and key, for reports.
    #[doc(hidden)]
    pub fn to_json(&self) -> Value {
        let section = |section: &super::Section| {
            let value = |key: &super::Key| serde_json::to_value(key.value(self)).unwrap_or(Value::Null);
            let values: Map<String, Value> =
                section.keys.iter().map(|key| (key.name.to_owned(), value(key))).collect();
            (section.name.to_owned(), Value::Object(values))
        };
        Value::Object(SECTIONS.iter().map(section).collect())
    }
}

fn comment(text: &mut String, sentence: &str) {
    let mut column = 0;
    for (index, word) in sentence.split_whitespace().enumerate() {
        let length = word.chars().count();
        if index == 0 || column + 1 + length > WIDTH {
            if index > 0 {
                text.push('\n');
            }
            text.push('#');
            column = 1;
        }
        text.push(' ');
        text.push_str(word);
        column += 1 + length;
    }
    text.push('\n');
}
