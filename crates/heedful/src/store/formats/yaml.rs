//! The subset of YAML that Marian writes: flat keys with scalars or lists of scalars. The crates for full
//! YAML are unmaintained or large; a model's settings and a vocabulary need neither anchors nor nesting.
//!
//! ```text
//! dim-emb: 512
//! dim-vocabs:
//!   - 32000
//!   - 32000
//! "▁the": 3
//! ```
//!
//! A deeper nested value is not parsed and becomes [`YamlValue::Nested`].

use std::collections::HashMap;

use super::FormatError;

/// Keys and values in file order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Yaml {
    entries: Vec<(String, YamlValue)>,
    indices: HashMap<String, usize>,
}

/// A value of a key.
#[derive(Clone, Debug, PartialEq)]
pub enum YamlValue {
    /// Text, a number or a boolean, as written in the file.
    Scalar(String),
    /// A list of scalars.
    List(Vec<String>),
    /// A deeper nested value.
    Nested,
}

impl Yaml {
    /// Parses a text; `file` is the name in error messages.
    pub fn parse(file: &str, text: &str) -> Result<Yaml, FormatError> {
        let mut yaml = Yaml::default();
        for (index, line) in text.split('\n').enumerate() {
            let line = line.strip_suffix('\r').unwrap_or(line);
            let damaged = |problem: &str| FormatError::damaged(file, format!("line {}", index + 1), problem);
            let content = line.trim_start_matches(' ');
            let indent = line.len() - content.len();
            if content.trim().is_empty()
                || content.starts_with(['#', '%'])
                || ["---", "..."].contains(&line.trim_end())
            {
                continue;
            }
            let is_item = content == "-" || content.starts_with("- ");
            if is_item || indent > 0 {
                let Some((_, value)) = yaml.entries.last_mut() else {
                    return Err(damaged("a key is expected here"));
                };
                value.add_line(content);
                continue;
            }
            let (key, rest) = scalar(content, true).map_err(damaged)?;
            let rest = rest
                .trim_start_matches(' ')
                .strip_prefix(':')
                .ok_or_else(|| damaged("a `:` is missing after the key"))?;
            let value = value(rest.trim()).map_err(damaged)?;
            if yaml.indices.insert(key.clone(), yaml.entries.len()).is_some() {
                return Err(damaged(&format!("the key `{key}` is a duplicate")));
            }
            yaml.entries.push((key, value));
        }
        Ok(yaml)
    }

    /// Keys and values in file order.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &YamlValue)> {
        self.entries.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&YamlValue> {
        self.indices.get(key).map(|&index| &self.entries[index].1)
    }

    /// The scalar at a key.
    pub fn text(&self, key: &str) -> Option<&str> {
        match self.get(key) {
            Some(YamlValue::Scalar(text)) => Some(text),
            _ => None,
        }
    }

    /// The number at a key.
    pub fn number(&self, key: &str) -> Option<f64> {
        self.text(key)?.parse().ok()
    }

    /// The boolean at a key.
    pub(crate) fn truth(&self, key: &str) -> Option<bool> {
        match self.text(key)? {
            "true" | "True" | "yes" | "on" => Some(true),
            "false" | "False" | "no" | "off" => Some(false),
            _ => None,
        }
    }
}

impl YamlValue {
    /// Adds an indented line or a list item to the value.
    fn add_line(&mut self, line: &str) {
        let item =
            line.strip_prefix('-').map(str::trim).filter(|item| !item.is_empty() && !item.starts_with("- "));
        let item = item.and_then(|item| match value(item) {
            Ok(YamlValue::Scalar(text)) if !is_mapping(item) => Some(text),
            _ => None,
        });
        match (&mut *self, item) {
            (YamlValue::Scalar(text), Some(item)) if text.is_empty() => *self = YamlValue::List(vec![item]),
            (YamlValue::List(items), Some(item)) => items.push(item),
            _ => *self = YamlValue::Nested,
        }
    }
}

/// Whether an item is a mapping of a key to a value.
fn is_mapping(item: &str) -> bool {
    scalar(item, true).is_ok_and(|(_, rest)| {
        let rest = rest.trim_start_matches(' ');
        rest == ":" || rest.starts_with(": ")
    })
}

fn value(text: &str) -> Result<YamlValue, &'static str> {
    if text.starts_with(['{', '&', '*', '!', '|', '>']) {
        return Ok(YamlValue::Nested);
    }
    if let Some(inner) = text.strip_prefix('[') {
        return list(inner);
    }
    let (text, rest) = scalar(text, false)?;
    match rest.trim() {
        "" => Ok(YamlValue::Scalar(text)),
        comment if comment.starts_with('#') => Ok(YamlValue::Scalar(text)),
        _ => Err("there is text after a closing quote"),
    }
}

/// A list in brackets, after the opening bracket.
fn list(mut text: &str) -> Result<YamlValue, &'static str> {
    let mut items = Vec::new();
    loop {
        text = text.trim_start();
        if text.starts_with(']') {
            return Ok(YamlValue::List(items));
        }
        if text.is_empty() || text.starts_with(['[', '{']) {
            return Ok(YamlValue::Nested);
        }
        let quoted = text.starts_with(['"', '\'']);
        let end = if quoted { None } else { text.find([',', ']']) };
        let (item, rest) = match (quoted, end) {
            (true, _) => scalar(text, false)?,
            (false, Some(end)) => (text[..end].trim().to_owned(), &text[end..]),
            (false, None) => return Ok(YamlValue::Nested),
        };
        items.push(item);
        text = rest.trim_start();
        text = text.strip_prefix(',').unwrap_or(text);
    }
}

/// One scalar and the rest of the text. A plain key ends before a `:` that is followed by a space or by the
/// end of the line.
fn scalar(text: &str, is_key: bool) -> Result<(String, &str), &'static str> {
    if let Some(inner) = text.strip_prefix('"') {
        return double_quoted(inner);
    }
    if let Some(inner) = text.strip_prefix('\'') {
        return single_quoted(inner);
    }
    let end = match is_key {
        true => text.find(": ").or_else(|| text.ends_with(':').then(|| text.len() - 1)),
        false => text.find(" #"),
    };
    let end = end.unwrap_or(text.len());
    Ok((text[..end].trim_end().to_owned(), &text[end..]))
}

const UNCLOSED: &str = "a quote is not closed";

fn single_quoted(mut text: &str) -> Result<(String, &str), &'static str> {
    let mut out = String::new();
    loop {
        let (before, rest) = text.split_once('\'').ok_or(UNCLOSED)?;
        out.push_str(before);
        match rest.strip_prefix('\'') {
            Some(rest) => {
                out.push('\'');
                text = rest;
            }
            None => return Ok((out, rest)),
        }
    }
}

fn double_quoted(text: &str) -> Result<(String, &str), &'static str> {
    const UNKNOWN: &str = "an unknown escape in quotes";
    let mut out = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Ok((out, &text[at + 1..])),
            '\\' => {
                let (_, escape) = characters.next().ok_or(UNCLOSED)?;
                let digits = match escape {
                    'x' => 2,
                    'u' => 4,
                    'U' => 8,
                    _ => 0,
                };
                let mut code = 0;
                for _ in 0..digits {
                    let digit = characters.next().and_then(|(_, digit)| digit.to_digit(16)).ok_or(UNKNOWN)?;
                    code = code * 16 + digit;
                }
                out.push(match escape {
                    'x' | 'u' | 'U' => char::from_u32(code).ok_or(UNKNOWN)?,
                    '"' | '\\' | '/' | ' ' => escape,
                    '0' => '\0',
                    'a' => '\u{7}',
                    'b' => '\u{8}',
                    't' => '\t',
                    'n' => '\n',
                    'v' => '\u{B}',
                    'f' => '\u{C}',
                    'r' => '\r',
                    'e' => '\u{1B}',
                    'N' => '\u{85}',
                    '_' => '\u{A0}',
                    'L' => '\u{2028}',
                    'P' => '\u{2029}',
                    _ => return Err(UNKNOWN),
                });
            }
            other => out.push(other),
        }
    }
    Err(UNCLOSED)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Yaml {
        Yaml::parse("some.yml", text).expect("YAML")
    }

    #[test]
    fn settings_are_scalars_and_lists() {
        let yaml = parsed(
            "# made by hand\ndim-emb: 512\ndim-vocabs:\n  - 32000\n  - 65000\nempty: []\nshort: [1, 'a, b', c]\r\n\
             skip: false\nname: \"\"\nversion: v1.9.56 2021-04-28 00:28:35 +0100 \nsame-indent:\n- x\n- \"y\"\n",
        );
        assert_eq!(yaml.number("dim-emb"), Some(512.0));
        let list =
            |items: &[&str]| Some(YamlValue::List(items.iter().map(|&item| item.to_owned()).collect()));
        assert_eq!(yaml.get("dim-vocabs").cloned(), list(&["32000", "65000"]));
        assert_eq!(yaml.get("empty").cloned(), list(&[]));
        assert_eq!(yaml.get("short").cloned(), list(&["1", "a, b", "c"]));
        assert_eq!(yaml.get("same-indent").cloned(), list(&["x", "y"]));
        assert_eq!((yaml.truth("skip"), yaml.text("name")), (Some(false), Some("")));
        assert_eq!(yaml.text("version"), Some("v1.9.56 2021-04-28 00:28:35 +0100"));
    }

    #[test]
    fn keys_may_be_plain_or_quoted() {
        let yaml = parsed(
            "</s>: 0\n<unk>: 1\n\",\": 2\n\"\\u2581\\\"x\": 3\n'it''s': 4\n▁: 5\n::: 6\n\"#\": 7\na:b: 8\n",
        );
        let keys: Vec<&str> = yaml.entries().map(|(key, _)| key).collect();
        assert_eq!(keys, ["</s>", "<unk>", ",", "▁\"x", "it's", "▁", "::", "#", "a:b"]);
        assert_eq!(yaml.number("a:b"), Some(8.0));
    }

    #[test]
    fn nested_values_are_skipped_and_errors_name_the_line() {
        let yaml = parsed("a:\n  b: 1\n  c:\n    - 2\nd:\n  - e: 1\nf: {g: 1}\nh: 2\n");
        for key in ["a", "d", "f"] {
            assert_eq!(yaml.get(key), Some(&YamlValue::Nested), "{key}");
        }
        assert_eq!(yaml.number("h"), Some(2.0));
        for (text, place) in [
            ("a: 1\nb", "line 2"),
            ("\"a: 1", "line 1"),
            ("  a: 1", "line 1"),
            ("a: 1\na: 2", "line 2"),
            ("\"\\q\": 1", "line 1"),
        ] {
            let message = Yaml::parse("some.yml", text).expect_err("no YAML").to_string();
            assert!(message.contains(&format!("some.yml is damaged at {place}")), "{message}");
        }
    }
}
