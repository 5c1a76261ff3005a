//! HTML as text between tags: tags, comments, scripts and styles stay as they are; entities are decoded for the model and
//! encoded again afterwards.

/// A piece of HTML.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// Stays as it is.
    Markup(&'a str),
    /// To be translated; still with its entities.
    Text(&'a str),
}

/// Elements whose content is no natural language, or must stay exact.
const UNTOUCHED: [&str; 6] = ["script", "style", "pre", "code", "textarea", "template"];

/// The pieces of HTML, in order; their concatenation is the input.
pub(super) fn pieces(html: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = html;
    while !rest.is_empty() {
        let text = markup_begin(rest).unwrap_or(rest.len());
        if text > 0 {
            pieces.push(Piece::Text(&rest[..text]));
            rest = &rest[text..];
            continue;
        }
        let markup = markup_end(rest);
        pieces.push(Piece::Markup(&rest[..markup]));
        rest = &rest[markup..];
    }
    pieces
}

/// Where the next tag, comment or declaration begins. A `<` before anything else is text.
fn markup_begin(html: &str) -> Option<usize> {
    html.match_indices('<').map(|(at, _)| at).find(|&at| {
        let next = html[at + 1..].chars().next();
        next.is_some_and(|c| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?'))
    })
}

/// The length of the markup that `html` begins with; what is not closed goes to the end.
fn markup_end(html: &str) -> usize {
    let after = |end: &str| html.find(end).map_or(html.len(), |at| at + end.len());
    if html.starts_with("<!--") {
        return after("-->");
    }
    let tag = tag_end(html);
    let name: String =
        html[1..].chars().take_while(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    let is_closed = html[..tag].ends_with("/>");
    if UNTOUCHED.contains(&name.as_str()) && !is_closed {
        return element_end(html, tag, &name);
    }
    tag
}

/// The length of a tag: up to the first `>` outside quotes.
fn tag_end(html: &str) -> usize {
    let mut quote = None;
    for (at, c) in html.char_indices() {
        match (quote, c) {
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            (None, '>') => return at + 1,
            _ => {}
        }
    }
    html.len()
}

/// The length of an element with its content.
fn element_end(html: &str, tag: usize, name: &str) -> usize {
    let closing = html[tag..].match_indices("</").find(|(at, _)| {
        let found = html.as_bytes().get(tag + at + 2..tag + at + 2 + name.len());
        found.is_some_and(|found| found.eq_ignore_ascii_case(name.as_bytes()))
    });
    closing.map_or(html.len(), |(at, _)| tag + at + tag_end(&html[tag + at..]))
}

/// Named entities that are common in text; numeric ones are decoded as well.
const NAMED: [(&str, char); 14] = [
    ("amp", '&'),
    ("lt", '<'),
    ("gt", '>'),
    ("quot", '"'),
    ("apos", '\''),
    ("nbsp", '\u{a0}'),
    ("ndash", '–'),
    ("mdash", '—'),
    ("hellip", '…'),
    ("lsquo", '‘'),
    ("rsquo", '’'),
    ("ldquo", '“'),
    ("rdquo", '”'),
    ("euro", '€'),
];

/// Decodes entities; unknown ones stay as they are.
pub(super) fn decode(text: &str) -> String {
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        decoded.push_str(&rest[..at]);
        rest = &rest[at..];
        let entity =
            rest[1..].split_once(';').map(|(name, _)| name).and_then(|name| Some((name, character(name)?)));
        match entity {
            Some((name, c)) => {
                decoded.push(c);
                rest = &rest[name.len() + 2..];
            }
            None => {
                decoded.push('&');
                rest = &rest[1..];
            }
        }
    }
    decoded + rest
}

fn character(name: &str) -> Option<char> {
    if let Some(&(_, c)) = NAMED.iter().find(|(known, _)| *known == name) {
        return Some(c);
    }
    let number = match name.strip_prefix('#')? {
        hex if hex.starts_with(['x', 'X']) => u32::from_str_radix(&hex[1..], 16).ok()?,
        decimal => decimal.parse().ok()?,
    };
    char::from_u32(number)
}

/// Escapes text, so that no browser takes it for markup.
pub(super) fn encode(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('\u{a0}', "&nbsp;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_end_to_end_are_the_page() {
        let page = "<!doctype html><p class='a>b'>Tom &amp; Ann<br/>2 < 3</p><SCRIPT>if (a<b) x</script >\
                    <!-- no <b> --> ok <style>p{}</style><code>x = 1</code> end <b";
        let found = pieces(page);
        let whole: String = found
            .iter()
            .map(|piece| match piece {
                Piece::Markup(text) | Piece::Text(text) => *text,
            })
            .collect();
        assert_eq!(whole, page);
        let texts: Vec<&str> = found
            .iter()
            .filter_map(|piece| match piece {
                Piece::Text(text) => Some(*text),
                Piece::Markup(_) => None,
            })
            .collect();
        assert_eq!(texts, ["Tom &amp; Ann", "2 < 3", " ok ", " end "]);
    }

    #[test]
    fn entities_become_characters_and_characters_entities() {
        assert_eq!(decode("a &amp; b &#228; &#x4f60; &nope; & &lt;b&gt;"), "a & b ä 你 &nope; & <b>");
        assert_eq!(encode("a & b <script>"), "a &amp; b &lt;script&gt;");
        assert_eq!(decode("&#xD800;&#9999999999;&"), "&#xD800;&#9999999999;&");
    }
}
