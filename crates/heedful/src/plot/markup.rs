//! Escapes text for markup and estimates its width.

use std::borrow::Cow;

/// A font stack that covers Chinese.
pub(crate) const FONT: &str = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'PingFang SC', 'Microsoft YaHei', 'Noto Sans CJK SC', sans-serif";

/// `text` escaped for HTML and XML. Control characters, which XML forbids, become U+FFFD.
pub(crate) fn escape(text: &str) -> Cow<'_, str> {
    let special = |c: char| matches!(c, '&' | '<' | '>' | '"' | '\'') || is_forbidden(c);
    if !text.contains(special) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c if is_forbidden(c) => safe.push('\u{FFFD}'),
            c => safe.push(c),
        }
    }
    Cow::Owned(safe)
}

fn is_forbidden(c: char) -> bool {
    matches!(c, '\u{0}'..='\u{8}' | '\u{B}' | '\u{C}' | '\u{E}'..='\u{1F}' | '\u{7F}'..='\u{9F}' | '\u{FFFE}' | '\u{FFFF}')
}

/// The estimated width of a text in multiples of the font size. The font is unknown, so the estimate is
/// generous.
pub(crate) fn text_width(text: &str) -> f64 {
    text.chars().map(character_width).sum()
}

fn character_width(c: char) -> f64 {
    match c {
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '…' => 1.0,
        'f' | 'i' | 'j' | 'l' | 't' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | ' ' => 0.4,
        c if c.is_ascii_uppercase() => 0.75,
        c if is_wide(c) => 1.0,
        _ => 0.65,
    }
}

/// `text`, truncated with an ellipsis if it is wider than `limit` times the font size.
pub(crate) fn shortened(text: &str, limit: f64) -> Cow<'_, str> {
    if text_width(text) <= limit {
        return Cow::Borrowed(text);
    }
    let mut width = 1.0;
    let fits = |c: &char| {
        width += character_width(*c);
        width <= limit
    };
    Cow::Owned(text.chars().take_while(fits).chain(['…']).collect())
}

/// Whether a character is full-width: Chinese, Japanese, Korean and their punctuation, full-width forms,
/// emoji.
pub(crate) fn is_wide(c: char) -> bool {
    matches!(u32::from(c), 0x1100..=0x115F | 0x2E80..=0xA4CF | 0xAC00..=0xD7A3 | 0xF900..=0xFAFF | 0xFE30..=0xFE6F
        | 0xFF00..=0xFF60 | 0xFFE0..=0xFFE6 | 0x1F300..=0x1FAFF | 0x20000..=0x3FFFD)
}

/// Formats a length in a picture, rounded to a tenth.
pub(crate) fn length(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_escaped() {
        assert_eq!(
            escape("<script>alert('1 & \"2\"')</script>"),
            "&lt;script&gt;alert(&#39;1 &amp; &quot;2&quot;&#39;)&lt;/script&gt;"
        );
        assert_eq!(escape("自动驾驶"), "自动驾驶");
        assert_eq!(escape("a\u{0}b\nc"), "a\u{FFFD}b\nc");
    }

    #[test]
    fn long_labels_are_truncated() {
        assert_eq!(shortened("autonomous", 20.0), "autonomous");
        assert_eq!(shortened("自动驾驶解决方案", 4.0), "自动驾…");
    }

    #[test]
    fn lengths_have_at_most_one_decimal() {
        assert_eq!(
            (length(3.0), length(2.26), length(-0.04)),
            ("3".to_owned(), "2.3".to_owned(), "-0".to_owned())
        );
    }
}
