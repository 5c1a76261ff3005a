//! The text between two block tags, with its inline tags, as sentences and the gaps between them.

use std::ops::Range;

use super::entities;
use super::marks::{Mark, Marks, Spaces, pairs};
use super::scan::{Kind, Piece, pieces};
use crate::text::layout::{Gap, is_seam};
use crate::text::sentences::sentences;

/// A sentence without its tags, and the tags.
pub(in crate::text) struct Sentence {
    pub(in crate::text) text: String,
    pub(in crate::text) marks: Marks,
}

/// The sentences of a page and the gaps around them, one more than sentences.
pub(in crate::text) fn paragraphs(html: &str) -> (Vec<Sentence>, Vec<Gap>) {
    let mut page = Page { sentences: Vec::new(), gaps: vec![Gap::default()] };
    let mut paragraph = Paragraph::default();
    for piece in pieces(html) {
        match piece {
            Piece::Text(text) => paragraph.add(text),
            Piece::Mark { html, kind, name } => {
                paragraph.marks.push((paragraph.plain.len(), html, kind, name));
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
    /// Without tags, with characters in place of references.
    plain: String,
    /// The references that were decoded, by their place in `plain`.
    references: Vec<(usize, &'a str)>,
    /// Each tag: its place in `plain`, its text, and the name of its element.
    marks: Vec<(usize, &'a str, Kind, &'a str)>,
}

impl<'a> Paragraph<'a> {
    fn add(&mut self, text: &'a str) {
        let references = &mut self.references;
        entities::decode(text, &mut self.plain, |at, reference| references.push((at, reference)));
    }

    fn split(self, page: &mut Page) {
        // To a browser, a line break is a space.
        let flat = self.plain.replace(['\t', '\n', '\x0c', '\r'], " ");
        let partners = pairs(self.marks.iter().map(|&(_, _, kind, name)| (kind, name)));
        let (mut from, mut next) = (0, 0);
        for (number, range) in sentences(&flat).into_iter().enumerate() {
            let inside = self.inside(&range, next, &partners);
            self.keep(from..range.start, next..inside.start, page);
            if number > 0
                && from == range.start
                && is_seam(&flat, from)
                && let Some(gap) = page.gaps.last_mut()
            {
                // Nothing separates the two sentences, as in Chinese; a space would stand after the tags that end.
                let ending = self.marks[next..inside.start].iter();
                let ending = ending.take_while(|(_, _, kind, _)| *kind == Kind::Close);
                gap.seam = Some(ending.map(|(_, html, ..)| html.len()).sum());
            }
            page.sentences.push(self.sentence(&flat, &range, inside.clone(), &partners));
            page.gaps.push(Gap::default());
            (from, next) = (range.end, inside.end);
        }
        self.keep(from..self.plain.len(), next..self.marks.len(), page);
    }

    /// The marks that stand inside of a sentence; those at its edges only if they enclose a part of it.
    fn inside(&self, range: &Range<usize>, next: usize, partners: &[Option<usize>]) -> Range<usize> {
        let at = |mark: usize| self.marks[mark].0;
        let encloses_a_part = |mark: usize| {
            let end = partners[mark].filter(|&end| end > mark).map(at);
            end.is_some_and(|end| range.start < end && end < range.end)
        };
        let is_before =
            |&mark: &usize| at(mark) < range.start || at(mark) == range.start && !encloses_a_part(mark);
        let all = self.marks.len();
        let begin = next + (next..all).take_while(is_before).count();
        let mut end = begin + (begin..all).take_while(|&mark| at(mark) < range.end).count();
        for mark in (end..all).take_while(|&mark| at(mark) == range.end) {
            if partners[mark].is_some_and(|open| begin <= open && open < end) {
                end = mark + 1;
            }
        }
        begin..end
    }

    /// A gap: white space as it stands in the page, with the tags in it.
    fn keep(&self, range: Range<usize>, marks: Range<usize>, page: &mut Page) {
        let mut from = range.start;
        for &(at, html, ..) in &self.marks[marks] {
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
        let (mut text, mut marks) = (String::new(), Vec::new());
        let mut from = range.start;
        for mark in inside.clone() {
            let (at, html, kind, _) = self.marks[mark];
            let at = at.clamp(from, range.end);
            collapse(&flat[from..at], &mut text);
            from = at;
            marks.push(Mark {
                at: text.len(),
                html: html.to_owned(),
                kind,
                partner: partners[mark]
                    .filter(|partner| inside.contains(partner))
                    .map(|at| at - inside.start),
                spaces: Spaces { before: flat[..at].ends_with(' '), after: flat[at..].starts_with(' ') },
            });
        }
        collapse(&flat[from..range.end], &mut text);
        Sentence { text, marks: Marks(marks) }
    }
}

/// Appends a text with one space for several.
fn collapse(text: &str, collapsed: &mut String) {
    for c in text.chars() {
        if c != ' ' || !collapsed.ends_with(' ') {
            collapsed.push(c);
        }
    }
}
