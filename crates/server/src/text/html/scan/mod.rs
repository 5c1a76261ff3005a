//! Splits a page into pieces, as browsers do: text, tags, and untranslated parts.

mod exceptions;

use std::collections::HashMap;

use self::exceptions::exceptions;

/// A piece of HTML. The concatenated pieces are the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// Text to translate, with undecoded character references.
    Text(&'a str),
    /// Markup or an untranslated element inside a sentence or at its edge.
    Inline {
        html: &'a str,
        kind: TagKind,
        /// The name of the element.
        name: &'a str,
    },
    /// Ends a paragraph: a block tag, a whole untranslated element, or unclosed markup, which must not move
    /// because it would swallow the text after it.
    Block(&'a str),
}

/// The kind of an inline tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TagKind {
    /// The begin tag of an inline element.
    Open,
    /// The end tag of an inline element.
    Close,
    /// An image, a comment, or an untranslated element.
    Placeholder(PlaceholderKind),
}

/// Whether a placeholder reads as a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlaceholderKind {
    /// An untranslated word, such as code: spaces around it matter.
    Word,
    Other,
}

/// Elements inside sentences. All others end a paragraph.
const INLINE: [&str; 33] = [
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "data", "del", "dfn", "em", "font", "i", "ins",
    "label", "mark", "nobr", "output", "q", "rb", "rp", "rt", "ruby", "s", "small", "span", "strike",
    "strong", "sub", "sup", "time", "u",
];

/// Inline elements whose content is not natural language.
const INLINE_KEPT: [&str; 7] = ["code", "kbd", "samp", "tt", "var", "math", "svg"];
/// Invisible elements, which do not interrupt a sentence.
const INVISIBLE_KEPT: [&str; 3] = ["script", "style", "template"];
/// Elements whose content is kept exactly, and that end a paragraph.
const BLOCK_KEPT: [&str; 6] = ["pre", "textarea", "iframe", "noembed", "noframes", "xmp"];
/// Raw text elements: only their own end tag ends them.
const RAW: [&str; 7] = ["script", "style", "textarea", "iframe", "noembed", "noframes", "xmp"];
/// Elements without an end tag.
const VOID: [&str; 13] =
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"];
/// The void elements inside sentences.
const INLINE_VOID: [&str; 4] = ["embed", "img", "input", "wbr"];
/// Elements that end at the next element of the same name, if not at an end tag.
const OPTIONAL_END: [&str; 8] = ["dd", "dt", "li", "option", "p", "td", "th", "tr"];

/// The pieces of a page, in order.
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
        let piece = markup(rest);
        rest = &rest[piece.html().len()..];
        let is_kept = piece.html().starts_with('<') && Tag::new(piece.html()).disables_translation();
        match is_kept.then(|| exceptions(piece.html())).flatten() {
            Some(parts) => pieces.extend(parts),
            None => pieces.push(piece),
        }
    }
    pieces
}

impl<'a> Piece<'a> {
    /// The source text of the piece.
    pub(super) fn html(self) -> &'a str {
        match self {
            Piece::Text(html) | Piece::Inline { html, .. } | Piece::Block(html) => html,
        }
    }
}

/// The position of the next tag, comment or declaration. A `<` before anything else is text.
fn markup_begin(html: &str) -> Option<usize> {
    html.match_indices('<').map(|(at, _)| at).find(|&at| {
        let next = html.as_bytes().get(at + 1);
        next.is_some_and(|c| c.is_ascii_alphabetic() || matches!(c, b'/' | b'!' | b'?'))
    })
}

/// The markup at the start of `html`; unclosed markup extends to the end.
fn markup(html: &str) -> Piece<'_> {
    if html.starts_with("<!--") {
        let html = &html[..comment_end(html)];
        return match html.ends_with("-->") {
            true => Piece::Inline { html, kind: TagKind::Placeholder(PlaceholderKind::Other), name: "" },
            false => Piece::Block(html),
        };
    }
    let tag = Tag::new(html);
    if is_declaration(html) || !tag.html.ends_with('>') {
        return Piece::Block(tag.html);
    }
    let is_kept = tag.is(&INLINE_KEPT)
        || tag.is(&INVISIBLE_KEPT)
        || tag.is(&BLOCK_KEPT)
        || !tag.is_end && tag.disables_translation();
    let end = match is_kept && tag.has_content() {
        true => element_end(html, &tag),
        false => ElementEnd::Closed(tag.html.len()),
    };
    let html = match end {
        ElementEnd::Closed(length) => &html[..length],
        ElementEnd::Unclosed(length) => return Piece::Block(&html[..length]),
    };
    let is_inline = tag.is(&INLINE) || tag.is(&INLINE_KEPT);
    let kind = if tag.is_end {
        is_inline.then_some(TagKind::Close)
    } else if tag.is(&INVISIBLE_KEPT) || tag.is(&INLINE_VOID) {
        Some(TagKind::Placeholder(PlaceholderKind::Other))
    } else if is_kept {
        is_inline.then_some(TagKind::Placeholder(PlaceholderKind::Word))
    } else {
        is_inline.then_some(if tag.has_content() {
            TagKind::Open
        } else {
            TagKind::Placeholder(PlaceholderKind::Other)
        })
    };
    kind.map_or(Piece::Block(html), |kind| Piece::Inline { html, kind, name: tag.name })
}

/// A begin tag or an end tag.
struct Tag<'a> {
    /// With its brackets.
    html: &'a str,
    /// The name in the case of the page; names are case-insensitive.
    name: &'a str,
    is_end: bool,
}

impl<'a> Tag<'a> {
    fn new(html: &'a str) -> Tag<'a> {
        let html = &html[..tag_end(html)];
        let is_end = html.starts_with("</");
        let from = if is_end { 2 } else { 1 };
        let ends = |c: char| c.is_ascii_whitespace() || matches!(c, '/' | '>');
        let name = html[from..].split(ends).next().unwrap_or_default();
        Tag { html, name, is_end }
    }

    fn is(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.name.eq_ignore_ascii_case(name))
    }

    /// Whether it opens an element with content.
    fn has_content(&self) -> bool {
        !self.is_end && !self.is(&VOID) && !self.is_self_closed()
    }

    /// `<b/>`, but not `<a href=here/>`, whose slash belongs to the URL.
    fn is_self_closed(&self) -> bool {
        let Some(inside) = self.html.strip_suffix("/>") else { return false };
        let last_word = inside.rsplit(|c: char| c.is_ascii_whitespace()).next().unwrap_or_default();
        inside.ends_with(['"', '\'']) || !last_word.contains('=')
    }

    /// `translate`, `translate=""` and `translate="yes"`.
    fn enables_translation(&self) -> bool {
        attributes(self.html).into_iter().any(|(name, value)| {
            name.eq_ignore_ascii_case("translate") && (value.is_empty() || value.eq_ignore_ascii_case("yes"))
        })
    }

    /// `translate="no"` and `class="notranslate"`.
    fn disables_translation(&self) -> bool {
        attributes(self.html).into_iter().any(|(name, value)| {
            let is_off = name.eq_ignore_ascii_case("translate") && value.eq_ignore_ascii_case("no");
            let mut classes = value.split_ascii_whitespace();
            is_off || name.eq_ignore_ascii_case("class") && classes.any(|class| class == "notranslate")
        })
    }
}

/// The names and values of a tag's attributes.
fn attributes(tag: &str) -> Vec<(&str, &str)> {
    let inside = tag.trim_start_matches('<').trim_end_matches('>');
    let begin = inside.find(|c: char| c.is_ascii_whitespace() || c == '/').unwrap_or(inside.len());
    let (mut rest, mut found) = (&inside[begin..], Vec::new());
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
        if rest.is_empty() {
            return found;
        }
        // A name has at least one character, even if that is `=`.
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let ends = |c: char| c.is_ascii_whitespace() || matches!(c, '=' | '/');
        let (name, after) = rest.split_at(rest[first..].find(ends).map_or(rest.len(), |at| first + at));
        let Some(value) = after.trim_ascii_start().strip_prefix('=').map(str::trim_ascii_start) else {
            found.push((name, ""));
            rest = after;
            continue;
        };
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
        let (value, after) = match quote {
            Some(quote) => value[1..].split_once(quote).unwrap_or((&value[1..], "")),
            None => value.split_at(value.find(|c: char| c.is_ascii_whitespace()).unwrap_or(value.len())),
        };
        found.push((name, value));
        rest = after;
    }
}

/// Whether markup is a declaration or a comment instead of a tag.
fn is_declaration(html: &str) -> bool {
    html.starts_with("<!") || html.starts_with("<?")
}

/// The length of a tag, a comment, a declaration, or a raw text element.
fn kept_length(html: &str) -> usize {
    if html.starts_with("<!--") {
        return comment_end(html);
    }
    let tag = Tag::new(html);
    if is_declaration(html) || tag.is_end || !tag.is(&RAW) {
        return tag.html.len();
    }
    let (ElementEnd::Closed(length) | ElementEnd::Unclosed(length)) = raw_end(html, &tag);
    length
}

fn comment_end(html: &str) -> usize {
    html.find("-->").map_or(html.len(), |at| at + 3)
}

/// The length of a tag: up to the first `>` outside a quoted value. A quotation mark opens a value only after
/// `=`.
fn tag_end(html: &str) -> usize {
    let (mut quote, mut before) = (None, '<');
    for (at, c) in html.char_indices() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == '>' => return at + 1,
            None if matches!(c, '"' | '\'') && before == '=' => quote = Some(c),
            None => {}
        }
        if !c.is_ascii_whitespace() {
            before = c;
        }
    }
    html.len()
}

/// The length of an element with its content.
enum ElementEnd {
    /// Up to its end tag.
    Closed(usize),
    /// Up to its implicit end, without an end tag.
    Unclosed(usize),
}

fn element_end(html: &str, begin: &Tag<'_>) -> ElementEnd {
    if begin.is(&RAW) {
        return raw_end(html, begin);
    }
    let mut open = OpenElements::default();
    open.push(begin.name, ());
    let mut at = begin.html.len();
    while let Some(next) = markup_begin(&html[at..]) {
        at += next;
        let rest = &html[at..];
        let tag = Tag::new(rest);
        if !is_declaration(rest) && (tag.is_end || !tag.is(&RAW)) {
            let ends_another = tag.is_end || open.is_ended_by(&tag);
            if ends_another && open.close(tag.name).is_none() {
                // The tag ends an enclosing element.
                return ElementEnd::Unclosed(at);
            }
            if ends_another && open.stack.is_empty() {
                return match tag.is_end && tag.html.ends_with('>') {
                    true => ElementEnd::Closed(at + tag.html.len()),
                    false if tag.is_end => ElementEnd::Unclosed(at + tag.html.len()),
                    false => ElementEnd::Unclosed(at),
                };
            }
            if tag.has_content() {
                open.push(tag.name, ());
            }
        }
        at += kept_length(rest);
    }
    ElementEnd::Unclosed(html.len())
}

/// The length of a raw text element.
fn raw_end(html: &str, begin: &Tag<'_>) -> ElementEnd {
    let (from, name) = (begin.html.len(), begin.name);
    let closing = html[from..].match_indices("</").find(|(at, _)| {
        let found = html.as_bytes().get(from + at + 2..from + at + 2 + name.len());
        found.is_some_and(|found| found.eq_ignore_ascii_case(name.as_bytes()))
    });
    match closing.map(|(at, _)| from + at + tag_end(&html[from + at..])) {
        Some(end) if html[..end].ends_with('>') => ElementEnd::Closed(end),
        _ => ElementEnd::Unclosed(html.len()),
    }
}

/// The stack of open elements, with a value for each. Counts by name avoid quadratic time for pages that
/// consist of tags.
pub(super) struct OpenElements<'a, T> {
    stack: Vec<(&'a str, T)>,
    counts: HashMap<String, usize>,
}

impl<T> Default for OpenElements<'_, T> {
    fn default() -> Self {
        OpenElements { stack: Vec::new(), counts: HashMap::new() }
    }
}

impl<'a, T> OpenElements<'a, T> {
    pub(super) fn push(&mut self, name: &'a str, value: T) {
        self.stack.push((name, value));
        *self.counts.entry(name.to_ascii_lowercase()).or_default() += 1;
    }

    /// Closes the innermost element of this name and all elements inside it.
    pub(super) fn close(&mut self, name: &str) -> Option<T> {
        if self.counts.get(&name.to_ascii_lowercase()).is_none_or(|&count| count == 0) {
            return None;
        }
        while let Some((last, value)) = self.stack.pop() {
            if let Some(count) = self.counts.get_mut(&last.to_ascii_lowercase()) {
                *count -= 1;
            }
            if last.eq_ignore_ascii_case(name) {
                return Some(value);
            }
        }
        None
    }

    /// Whether a begin tag implicitly ends the innermost element.
    fn is_ended_by(&self, tag: &Tag<'_>) -> bool {
        tag.is(&OPTIONAL_END)
            && self.stack.last().is_some_and(|(last, _)| last.eq_ignore_ascii_case(tag.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(page: &str) -> Vec<&str> {
        let text = |piece: &Piece<'_>| matches!(piece, Piece::Text(_));
        pieces(page).into_iter().filter(text).map(Piece::html).collect()
    }

    #[test]
    fn the_concatenated_pieces_are_the_page() {
        let page = "<!doctype html><p class='a>b'>Tom &amp; Ann<br/>2 < 3</p><SCRIPT>if (a<b) x</script >\
                    <!-- no <b> --> ok <style>p{}</style><code>x = 1</code> end <b";
        let whole: String = pieces(page).into_iter().map(Piece::html).collect();
        assert_eq!(whole, page);
        assert_eq!(texts(page), ["Tom &amp; Ann", "2 < 3", " ok ", " end "]);
    }

    #[test]
    fn untranslated_elements_are_not_text() {
        for (page, expected) in [
            ("a<pre>b<b>c</b></pre>d", vec!["a", "d"]),
            ("a<div translate=no>b<div>c</div>d</div>e", vec!["a", "e"]),
            ("a<span class='x notranslate y'>b</span>c", vec!["a", "c"]),
            ("a<span class='notranslated'>b</span>c", vec!["a", "b", "c"]),
            ("a<i translate='NO'>b<!-- </i> --><script></i></script>c</i>d", vec!["a", "d"]),
            ("a<i translate=yes>b</i>", vec!["a", "b"]),
            ("<ul><li translate=no>a<li>b</ul>c", vec!["b", "c"]),
            ("<p><b translate=no>a</p>b", vec!["b"]),
            ("<kbd>a<kbd>b</kbd>c</kbd>d", vec!["d"]),
            ("<img translate=no>a<input class=notranslate />b", vec!["a", "b"]),
            ("<textarea><b></textarea>a", vec!["a"]),
            ("<svg><text>x</text></svg>a<style>b", vec!["a"]),
        ] {
            assert_eq!(texts(page), expected, "{page}");
        }
    }

    #[test]
    fn tags_end_where_browsers_end_them() {
        for (page, expected) in [
            ("<p title='a>b'>c", vec!["c"]),
            ("<p don't>c</p>", vec!["c"]),
            ("<p a = \">\" b>c", vec!["c"]),
            ("<p a='b", vec![]),
            ("a </ b", vec!["a "]),
            ("1 < 2 <3> <", vec!["1 < 2 <3> <"]),
            ("<!-->a<!--b", vec!["a"]),
        ] {
            assert_eq!(texts(page), expected, "{page}");
        }
        let address = pieces("<a href=here/>x</a>");
        assert!(matches!(address[0], Piece::Inline { kind: TagKind::Open, name: "a", .. }), "{address:?}");
        assert!(matches!(
            pieces("<b/>x")[0],
            Piece::Inline { kind: TagKind::Placeholder(PlaceholderKind::Other), .. }
        ));
        assert!(matches!(
            pieces("<i class=\"icon\"/>x")[0],
            Piece::Inline { kind: TagKind::Placeholder(_), .. }
        ));
    }

    #[test]
    fn pages_that_consist_of_tags_take_linear_time() {
        // Quadratic time would take minutes.
        for (open, close) in
            [("<b>", "</i>"), ("<i translate=no>", "</b>"), ("<b", ""), ("<!--", ""), ("&", "")]
        {
            let page = format!("<div translate=no>{}{}", open.repeat(100_000), close.repeat(100_000));
            assert_eq!(pieces(&page).into_iter().map(Piece::html).map(str::len).sum::<usize>(), page.len());
            let page = &page["<div translate=no>".len()..];
            assert_eq!(pieces(page).into_iter().map(Piece::html).map(str::len).sum::<usize>(), page.len());
        }
    }
}
