//! `translate="yes"` inside `translate="no"`: an untranslated element with translated parts.
//!
//! The untranslated parts end a paragraph like a block: they may have any size, and their order must be kept.

use super::{OpenElements, Piece, RAW, Tag, is_declaration, kept_length, markup, markup_begin};

/// The pieces of an element with `translate="no"`, if it contains an element with `translate="yes"`.
pub(super) fn exceptions(element: &str) -> Option<Vec<Piece<'_>>> {
    let has_any = tags(element).any(|(at, tag)| at > 0 && tag.enables_translation());
    has_any.then(|| Scanner::default().pieces(element))
}

/// The begin tags of an element with their positions, without those in comments and scripts.
fn tags(html: &str) -> impl Iterator<Item = (usize, Tag<'_>)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            at += markup_begin(&html[at..])?;
            let begin = at;
            at += kept_length(&html[at..]);
            let tag = Tag::new(&html[begin..]);
            if !is_declaration(&html[begin..]) && !tag.is_end {
                return Some((begin, tag));
            }
        }
    })
}

/// Scans an element once, tracking whether the current position is translated.
#[derive(Default)]
struct Scanner<'a> {
    /// For each open element: whether its content is translated.
    open: OpenElements<'a, bool>,
}

impl<'a> Scanner<'a> {
    fn pieces(mut self, html: &'a str) -> Vec<Piece<'a>> {
        let mut pieces = Vec::new();
        let mut rest = html;
        while !rest.is_empty() {
            let text = markup_begin(rest).unwrap_or(rest.len());
            let piece = match (text, self.translates()) {
                (0, _) => self.markup(rest),
                (_, true) => Piece::Text(&rest[..text]),
                (_, false) => Piece::Block(&rest[..text]),
            };
            rest = &rest[piece.html().len()..];
            pieces.push(piece);
        }
        pieces
    }

    /// Whether the following text is translated.
    fn translates(&self) -> bool {
        self.open.stack.last().is_some_and(|(_, is_translated)| *is_translated)
    }

    /// The next piece of markup. A begin or end tag is translated or not like the text outside its element.
    fn markup(&mut self, html: &'a str) -> Piece<'a> {
        let tag = Tag::new(html);
        let is_tag = !is_declaration(html);
        if is_tag && (tag.is_end || self.open.is_ended_by(&tag)) {
            self.open.close(tag.name);
        }
        let (translates, is_begin) = (self.translates(), is_tag && !tag.is_end);
        let is_disabled = is_begin && tag.disables_translation();
        let piece = if is_disabled {
            Piece::Block(tag.html)
        } else if translates {
            markup(html)
        } else {
            Piece::Block(&html[..kept_length(html)])
        };
        if is_begin && piece.html().len() == tag.html.len() && !tag.is(&RAW) && tag.has_content() {
            self.open.push(tag.name, !is_disabled && (translates || tag.enables_translation()));
        }
        piece
    }
}

#[cfg(test)]
mod tests {
    use super::super::pieces;
    use super::*;

    fn texts(page: &str) -> Vec<&str> {
        let whole: String = pieces(page).into_iter().map(Piece::html).collect();
        assert_eq!(whole, page);
        let text = |piece: &Piece<'_>| matches!(piece, Piece::Text(_));
        pieces(page).into_iter().filter(text).map(Piece::html).collect()
    }

    #[test]
    fn only_elements_with_translate_yes_are_translated() {
        for (page, expected) in [
            ("a<div translate=no>b<p translate=yes>c</p>d</div>e", vec!["a", "c", "e"]),
            ("a<i translate=no>b<b TRANSLATE='Yes'>c<u>d</u></b>e</i>f", vec!["a", "c", "d", "f"]),
            ("<div translate=no>a<p translate>b</p><p translate=''>c</p></div>", vec!["b", "c"]),
            (
                "<div translate=no>a<p translate=yes>b<i translate=no>c<u translate=yes>d</u>e</i>f</p>g</div>h",
                vec!["b", "d", "f", "h"],
            ),
            ("<div class=notranslate>a<p translate=yes>b</p>c</div>", vec!["b"]),
            ("<p translate=yes class=notranslate>a</p>b", vec!["b"]),
            ("<ul translate=no><li translate=yes>a<li>b</ul>c", vec!["a", "c"]),
            (
                "<div translate=no><p translate=yes>a<script>b</script><code>c</code>d</p></div>",
                vec!["a", "d"],
            ),
            (
                "<div translate=no><!-- <p translate=yes> -->a<script><p translate=yes></script>b</div>c",
                vec!["c"],
            ),
            ("<div translate=no><br translate=yes>a</div>b", vec!["b"]),
            ("<p><b translate=no>a<i translate=yes>b</p>c", vec!["b", "c"]),
            ("<p translate=no>a<i translate=yes>b", vec!["b"]),
        ] {
            assert_eq!(texts(page), expected, "{page}");
        }
    }

    #[test]
    fn exceptions_in_exceptions_take_linear_time() {
        // Quadratic time would take minutes, and recursion would overflow the stack.
        for (open, close) in [
            ("<i translate=no><b translate=yes>", "</b></i>"),
            ("<i translate=no><b translate=yes>", "</i>"),
            ("<p translate=no><p translate=yes>", "<p>"),
        ] {
            let page = open.repeat(50_000) + "x" + &close.repeat(50_000);
            assert_eq!(pieces(&page).into_iter().map(Piece::html).map(str::len).sum::<usize>(), page.len());
        }
    }
}
