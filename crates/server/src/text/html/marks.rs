//! The tags inside a sentence, and what encloses what.

use std::collections::HashMap;

use super::scan::Sight;

/// The tags inside a sentence, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::text) struct Marks(pub(super) Vec<Mark>);

/// A tag, or what stands at a point of a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// Its place in the sentence without tags.
    pub(super) at: usize,
    pub(super) html: String,
    pub(super) kind: MarkKind,
    /// The other tag of its element, if that is in the same sentence.
    pub(super) partner: Option<usize>,
    pub(super) spaces: Spaces,
}

/// Whether there is white space before and after a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spaces {
    pub(super) before: bool,
    pub(super) after: bool,
}

/// A tag with the name of its element.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind<'a> {
    Open(&'a str),
    Close(&'a str),
    Point(Sight),
}

/// As [`Kind`], once tags have their partners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarkKind {
    Open,
    Close,
    Point(Sight),
}

impl From<Kind<'_>> for MarkKind {
    fn from(kind: Kind<'_>) -> MarkKind {
        match kind {
            Kind::Open(_) => MarkKind::Open,
            Kind::Close(_) => MarkKind::Close,
            Kind::Point(sight) => MarkKind::Point(sight),
        }
    }
}

/// For each tag the other one of its element. Elements that overlap are none: the inner one stays without partners.
pub(super) fn pairs<'a>(marks: impl ExactSizeIterator<Item = Kind<'a>>) -> Vec<Option<usize>> {
    let mut partners = vec![None; marks.len()];
    let mut open: Vec<(usize, String)> = Vec::new();
    // A page of nothing but end tags must not search the stack for each of them.
    let mut counts: HashMap<String, usize> = HashMap::new();
    for (index, kind) in marks.enumerate() {
        match kind {
            Kind::Open(name) => {
                let name = name.to_ascii_lowercase();
                *counts.entry(name.clone()).or_default() += 1;
                open.push((index, name));
            }
            Kind::Close(name) => {
                let name = name.to_ascii_lowercase();
                if counts.get(&name).is_none_or(|&count| count == 0) {
                    continue;
                }
                while let Some((begin, last)) = open.pop() {
                    counts.entry(last.clone()).and_modify(|count| *count -= 1);
                    if last == name {
                        (partners[begin], partners[index]) = (Some(index), Some(begin));
                        break;
                    }
                }
            }
            Kind::Point(_) => {}
        }
    }
    partners
}

/// The marks of a sentence as a tree.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Item {
    Element(Element),
    /// May stand anywhere.
    Point(usize),
    /// A tag whose element begins or ends elsewhere. Cuts keep their order, and so stay well nested.
    Cut(usize),
}

/// An element that begins and ends in the sentence.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Element {
    pub(super) open: usize,
    pub(super) close: usize,
    pub(super) items: Vec<Item>,
}

/// Deeper elements keep their order only: a page may have as many tags as it has bytes, and a thread has one stack.
const DEEPEST: usize = 40;
/// In a sentence with more marks, all elements keep their order only.
const MOST: usize = 400;

impl Marks {
    pub(in crate::text) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn tree(&self) -> Vec<Item> {
        let is_crowded = self.0.len() > MOST;
        // The elements around the current mark, and what each contains so far; the first is the sentence.
        let mut levels: Vec<(usize, Vec<Item>)> = vec![(usize::MAX, Vec::new())];
        for (index, mark) in self.0.iter().enumerate() {
            let begins = mark.kind == MarkKind::Open && mark.partner.is_some();
            if begins && !is_crowded && levels.len() < DEEPEST {
                levels.push((index, Vec::new()));
                continue;
            }
            let ends = mark.kind == MarkKind::Close
                && levels.last().is_some_and(|(open, _)| mark.partner == Some(*open));
            let item = match mark.kind {
                MarkKind::Point(_) => Item::Point(index),
                MarkKind::Close if ends => match levels.pop() {
                    Some((open, items)) => Item::Element(Element { open, close: index, items }),
                    None => Item::Cut(index),
                },
                MarkKind::Open | MarkKind::Close => Item::Cut(index),
            };
            if let Some((_, items)) = levels.last_mut() {
                items.push(item);
            }
        }
        levels.into_iter().next().map(|(_, items)| items).unwrap_or_default()
    }
}
