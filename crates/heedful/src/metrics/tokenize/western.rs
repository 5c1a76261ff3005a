//! `13a`: NIST's `mteval-v13a`, for languages with ASCII punctuation.

/// Tokenizes a line.
pub(super) fn tokenize(line: &str) -> String {
    let joined = line.replace("<skipped>", "").replace("-\n", "").replace('\n', " ");
    // The rules for points and commas examine adjacent characters, so spaces are added at both ends of the
    // line.
    separate_numbers(separate_symbols(format!(" {} ", unescape(joined))))
}

/// Replaces four entities one after the other, so `&amp;lt;` becomes `<`.
pub(super) fn unescape(mut text: String) -> String {
    if text.contains('&') {
        for (entity, character) in [("&quot;", "\""), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">")] {
            text = text.replace(entity, character);
        }
    }
    text
}

/// Splits off ASCII symbols and punctuation, except `'`, `,`, `-` and `.`.
pub(super) fn separate_symbols(text: String) -> String {
    space_where(text, |bytes, index, _| {
        let is_symbol = matches!(bytes[index], b'!'..=b'&' | b'('..=b'+' | b'/' | b':'..=b'@' | b'['..=b'`' | b'{'..=b'~');
        is_symbol.then_some(index + 1)
    })
}

/// Splits off points and commas that are not between digits, and dashes after digits.
///
/// Each rule scans the text once and never examines a character twice: the second of two adjacent points is
/// left to the next rule, and some are never split off (`,,5` becomes `, ,5`).
pub(super) fn separate_numbers(text: String) -> String {
    let is_point_or_comma = |byte: u8| matches!(byte, b'.' | b',');
    let text = space_where(text, |bytes, index, unconsumed| {
        let after_other = index > unconsumed && !bytes[index - 1].is_ascii_digit();
        (is_point_or_comma(bytes[index]) && after_other).then_some(index + 1)
    });
    let text = space_where(text, |bytes, index, unconsumed| {
        let before_other = bytes.get(index + 1).is_some_and(|next| !next.is_ascii_digit());
        (is_point_or_comma(bytes[index]) && index >= unconsumed && before_other).then_some(index + 2)
    });
    space_where(text, |bytes, index, unconsumed| {
        let after_digit = index > unconsumed && bytes[index - 1].is_ascii_digit();
        (bytes[index] == b'-' && after_digit).then_some(index + 1)
    })
}

/// Inserts spaces around every byte that `rule` selects. A rule gets all bytes, an index, and the first
/// unconsumed index; for a selected byte it returns the next unconsumed index. Rules select ASCII only, so
/// working on bytes is safe.
fn space_where(text: String, rule: impl Fn(&[u8], usize, usize) -> Option<usize>) -> String {
    let bytes = text.as_bytes();
    let mut out = String::new();
    let (mut copied, mut unconsumed) = (0, 0);
    for index in 0..bytes.len() {
        if let Some(next) = rule(bytes, index, unconsumed) {
            if copied == 0 {
                out.reserve(text.len() + text.len() / 4);
            }
            out.push_str(&text[copied..index]);
            out.extend([' ', char::from(bytes[index]), ' ']);
            copied = index + 1;
            unconsumed = next;
        }
    }
    if copied == 0 {
        return text;
    }
    out.push_str(&text[copied..]);
    out
}
