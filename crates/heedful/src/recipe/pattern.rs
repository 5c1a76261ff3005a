//! Glob patterns of parameter names: `encoder.*`.

use std::fmt;

use super::Literal;
use super::setting::Setting;

/// Maximum length of a pattern.
const MAX_LENGTH: usize = 256;

/// A glob pattern of parameter names: `*` matches any text, including the empty one, and `?` matches one
/// character.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamePattern {
    text: String,
}

impl NamePattern {
    /// Parses a pattern; `None` if it is empty, contains white space or is too long.
    pub fn new(text: &str) -> Option<NamePattern> {
        let is_good = !text.is_empty() && text.len() <= MAX_LENGTH && !text.contains(char::is_whitespace);
        is_good.then(|| NamePattern { text: text.to_owned() })
    }

    /// The text of the pattern.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether a name matches.
    pub fn matches(&self, name: &str) -> bool {
        let (pattern, name): (Vec<char>, Vec<char>) = (self.text.chars().collect(), name.chars().collect());
        let (mut p, mut n) = (0, 0);
        // The position of the latest `*`, and the position in the name where the rest of the pattern was last
        // tried.
        let mut star = None;
        while n < name.len() {
            match pattern.get(p) {
                Some('*') => {
                    star = Some((p, n));
                    p += 1;
                }
                Some(&c) if c == '?' || c == name[n] => (p, n) = (p + 1, n + 1),
                _ => match star {
                    Some((at, tried)) => {
                        star = Some((at, tried + 1));
                        (p, n) = (at + 1, tried + 1);
                    }
                    None => return false,
                },
            }
        }
        pattern[p..].iter().all(|&c| c == '*')
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Comma-separated patterns in one string, or a list.
impl Setting for Vec<NamePattern> {
    const EXPECTS: &'static str = "patterns of names, such as \"encoder.*, embedding.*\"";
    const VALUE_NAME: &'static str = "PATTERN";
    const MANY: bool = true;
    const BARE: bool = true;

    fn read(literal: &Literal) -> Option<Vec<NamePattern>> {
        match literal {
            Literal::Text(text) if text == "none" => Some(Vec::new()),
            Literal::Text(text) => text.split(',').map(|part| NamePattern::new(part.trim())).collect(),
            Literal::List(parts) => {
                let parts = parts.iter().map(<Vec<NamePattern> as Setting>::read);
                Some(parts.collect::<Option<Vec<_>>>()?.concat())
            }
            _ => None,
        }
    }

    fn literal(&self) -> Literal {
        Literal::List(self.iter().map(|pattern| Literal::Text(pattern.text.clone())).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_match_any_text() {
        let matches = |pattern: &str, name: &str| NamePattern::new(pattern).expect("a pattern").matches(name);
        for (pattern, name) in [
            ("encoder.*", "encoder.0.self_attention.qkv.weight"),
            ("*.bias", "encoder.0.feed_forward.inner.bias"),
            ("*", "embedding.weight"),
            ("encoder.?.*norm*", "encoder.3.norm.gamma"),
            ("*a*b", "aab"),
            ("embedding.weight", "embedding.weight"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in
            [("encoder", "encoder.0"), ("encoder.?.*", "encoder.10.x"), ("*a*b", "ba"), ("?", "")]
        {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn patterns_are_a_list_or_separated_by_commas() {
        let read = <Vec<NamePattern> as Setting>::read;
        let text = |text: &str| Literal::Text(text.to_owned());
        let both = read(&text("encoder.*, embedding.*")).expect("two patterns");
        assert_eq!(read(&Literal::List(vec![text("encoder.*"), text("embedding.*")])), Some(both.clone()));
        assert_eq!(read(&both.literal()), Some(both));
        assert_eq!(read(&text("none")), Some(Vec::new()));
        for bad in ["", "a,,b", "a b"] {
            assert_eq!(read(&text(bad)), None, "{bad:?}");
        }
    }
}
