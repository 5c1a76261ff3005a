//! `13a`: NIST's `mteval-v13a` for languages that are written with ASCII punctuation.

/// Tokenizes a line.
pub(super) fn tokenize(line: &str) -> String {
    let joined = line.replace("<skipped>", "").replace("-\n", "").replace('\n', " ");
    // The rules for points and commas examine adjacent characters: at both ends of the line, that is a space.
    separate_numbers(separate_symbols(format!(" {} ", unescape(joined))))
}

/// Replaces the four entities one after the other: `&amp;lt;` becomes `<`.
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
    set_apart(text, |bytes, place, _| {
        let symbol = matches!(bytes[place], b'!'..=b'&' | b'('..=b'+' | b'/' | b':'..=b'@' | b'['..=b'`' | b'{'..=b'~');
        symbol.then_some(place + 1)
    })
}

/// Splits off points and commas unless digits are on both sides, and dashes after digits.
///
/// Each rule goes over the text once and never examines a character twice: of two points in a row the second is left to
/// the next rule, and some are never split off (`,,5` becomes `, ,5`).
pub(super) fn separate_numbers(text: String) -> String {
    let is_mark = |byte: u8| matches!(byte, b'.' | b',');
    let text = set_apart(text, |bytes, place, free| {
        let after_other = place > free && !bytes[place - 1].is_ascii_digit();
        (is_mark(bytes[place]) && after_other).then_some(place + 1)
    });
    let text = set_apart(text, |bytes, place, free| {
        let before_other = bytes.get(place + 1).is_some_and(|next| !next.is_ascii_digit());
        (is_mark(bytes[place]) && place >= free && before_other).then_some(place + 2)
    });
    set_apart(text, |bytes, place, free| {
        let after_digit = place > free && bytes[place - 1].is_ascii_digit();
        (bytes[place] == b'-' && after_digit).then_some(place + 1)
    })
}

/// Puts spaces around every byte that the `rule` chooses. It gets all bytes, an index, and the first index that it has
/// not consumed yet, and returns the next such index. Rules choose ASCII only, so bytes suffice.
fn set_apart(text: String, rule: impl Fn(&[u8], usize, usize) -> Option<usize>) -> String {
    let bytes = text.as_bytes();
    let mut out = String::new();
    let (mut copied, mut free) = (0, 0);
    for place in 0..bytes.len() {
        if let Some(next) = rule(bytes, place, free) {
            if copied == 0 {
                out.reserve(text.len() + text.len() / 4);
            }
            out.push_str(&text[copied..place]);
            out.extend([' ', char::from(bytes[place]), ' ']);
            copied = place + 1;
            free = next;
        }
    }
    if copied == 0 {
        return text;
    }
    out.push_str(&text[copied..]);
    out
}
