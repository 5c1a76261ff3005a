//! Splits the text between two block tags, with its inline tags, into sentences and gaps.

use std::ops::Range;

use heedful::data::sentences::{Gap, is_joint, sentences};

use super::entities;
use super::inline_tags::{InlineTag, InlineTags, Spaces, pairs};
use super::scan::{Piece, TagKind, pieces};

/// A sentence without its inline tags, and the tags.
pub(in crate::text) struct Sentence {
    pub(in crate::text) text: String,
    pub(in crate::text) tags: InlineTags,
}

/// The sentences of a page and the gaps around them, one more than sentences.
pub(in crate::text) fn paragraphs(html: &str) -> (Vec<Sentence>, Vec<Gap>) {
    let mut page = Page { sentences: Vec::new(), gaps: vec![Gap::default()] };
    let mut paragraph = Paragraph::default();
    for piece in pieces(html) {
        match piece {
            Piece::Text(text) => paragraph.add(text),
            Piece::Inline { html, kind, name } => {
                paragraph.tags.push((paragraph.plain.len(), html, kind, name));
            }
            Piece::Block(html) => {
                std::mem::take(&mut paragraph).split(&mut page);
                page.keep(html);
            }
        }
    }
    paragraph.split(&mut page);
    (page.sentences, page.gaps)
}

struct Page {
    sentences: Vec<Sentence>,
    gaps: Vec<Gap>,
}

impl Page {
    fn keep(&mut self, html: &str) {
        if let Some(last) = self.gaps.last_mut() {
            last.text.push_str(html);
        }
    }
}

#[derive(Default)]
struct Paragraph<'a> {
    /// The text without tags, with decoded references.
    plain: String,
    /// The decoded references with their positions in `plain`.
    references: Vec<(usize, &'a str)>,
    /// Each tag: its position in `plain`, its text, its kind, and the name of its element.
    tags: Vec<(usize, &'a str, TagKind, &'a str)>,
}

impl<'a> Paragraph<'a> {
    fn add(&mut self, text: &'a str) {
        let references = &mut self.references;
        entities::decode(text, &mut self.plain, |at, reference| references.push((at, reference)));
    }

    fn split(self, page: &mut Page) {
        // In HTML, a line break is a space.
        let flat = self.plain.replace(['\t', '\n', '\x0c', '\r'], " ");
        let partners = pairs(self.tags.iter().map(|&(_, _, kind, name)| (kind, name)));
        let (mut from, mut next) = (0, 0);
        for (number, range) in sentences(&flat).into_iter().enumerate() {
            let inside = self.inside(&range, next, &partners);
            self.keep(from..range.start, next..inside.start, page);
            if number > 0
                && from == range.start
                && is_joint(&flat, from)
                && let Some(gap) = page.gaps.last_mut()
            {
                // Nothing separates the two sentences, as in Chinese; a space would go after the end tags.
                let ending = self.tags[next..inside.start].iter();
                let ending = ending.take_while(|(_, _, kind, _)| *kind == TagKind::Close);
                gap.joint = Some(ending.map(|(_, html, ..)| html.len()).sum());
            }
            page.sentences.push(self.sentence(&flat, &range, inside.clone(), &partners));
            page.gaps.push(Gap::default());
            (from, next) = (range.end, inside.end);
        }
        self.keep(from..self.plain.len(), next..self.tags.len(), page);
    }

    /// The tags inside a sentence; a tag at its edge only if its element encloses a part of the sentence.
    fn inside(&self, range: &Range<usize>, next: usize, partners: &[Option<usize>]) -> Range<usize> {
        let at = |tag: usize| self.tags[tag].0;
        let encloses_a_part = |tag: usize| {
            let end = partners[tag].filter(|&end| end > tag).map(at);
            end.is_some_and(|end| range.start < end && end < range.end)
        };
        let is_before =
            |&tag: &usize| at(tag) < range.start || at(tag) == range.start && !encloses_a_part(tag);
        let all = self.tags.len();
        let begin = next + (next..all).take_while(is_before).count();
        let mut end = begin + (begin..all).take_while(|&tag| at(tag) < range.end).count();
        for tag in (end..all).take_while(|&tag| at(tag) == range.end) {
            if partners[tag].is_some_and(|open| begin <= open && open < end) {
                end = tag + 1;
            }
        }
        begin..end
    }

    /// Appends a gap: the white space of the page, with the tags in it.
    fn keep(&self, range: Range<usize>, tags: Range<usize>, page: &mut Page) {
        let mut from = range.start;
        for &(at, html, ..) in &self.tags[tags] {
            self.keep_text(from..at.clamp(from, range.end), page);
            page.keep(html);
            from = at.clamp(from, range.end);
        }
        self.keep_text(from..range.end, page);
    }

    fn keep_text(&self, range: Range<usize>, page: &mut Page) {
        let mut html = String::new();
        let mut references = &self.references[self.references.partition_point(|(at, _)| *at < range.start)..];
        let mut from = range.start;
        while let Some(((at, reference), rest)) = references.split_first()
            && *at < range.end
        {
            entities::encode(&self.plain[from..*at], &mut html);
            html.push_str(reference);
            from = at + self.plain[*at..].chars().next().map_or(0, char::len_utf8);
            references = rest;
        }
        entities::encode(&self.plain[from..range.end], &mut html);
        page.keep(&html);
    }

    fn sentence(
        &self,
        flat: &str,
        range: &Range<usize>,
        inside: Range<usize>,
        partners: &[Option<usize>],
    ) -> Sentence {
        let (mut text, mut tags) = (String::new(), Vec::new());
        let mut from = range.start;
        for tag in inside.clone() {
            let (at, html, kind, _) = self.tags[tag];
            let at = at.clamp(from, range.end);
            collapse(&flat[from..at], &mut text);
            from = at;
            tags.push(InlineTag {
                at: text.len(),
                html: html.to_owned(),
                kind,
                partner: partners[tag].filter(|partner| inside.contains(partner)).map(|at| at - inside.start),
                spaces: Spaces { before: flat[..at].ends_with(' '), after: flat[at..].starts_with(' ') },
            });
        }
        collapse(&flat[from..range.end], &mut text);
        Sentence { text, tags: InlineTags(tags) }
    }
}

/// Appends a text with runs of spaces collapsed.
fn collapse(text: &str, collapsed: &mut String) {
    for c in text.chars() {
        if c != ' ' || !collapsed.ends_with(' ') {
            collapsed.push(c);
        }
    }
}
