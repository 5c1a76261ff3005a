//! The tags inside a sentence, and what encloses what.

use super::scan::{Kind, Open};

/// The tags inside a sentence, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::text) struct Marks(pub(super) Vec<Mark>);

/// A tag, or what stands at a point of a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// Its place in the sentence without tags.
    pub(super) at: usize,
    pub(super) html: String,
    pub(super) kind: Kind,
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

/// For each mark the other tag of its element. Elements that overlap are none: the inner one stays without partners.
pub(super) fn pairs<'a>(marks: impl ExactSizeIterator<Item = (Kind, &'a str)>) -> Vec<Option<usize>> {
    let mut partners = vec![None; marks.len()];
    let mut open = Open::default();
    for (index, (kind, name)) in marks.enumerate() {
        match kind {
            Kind::Open => open.push(name, index),
            Kind::Close => {
                if let Some(begin) = open.close(name) {
                    (partners[begin], partners[index]) = (Some(index), Some(begin));
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
            let begins = mark.kind == Kind::Open && mark.partner.is_some();
            if begins && !is_crowded && levels.len() < DEEPEST {
                levels.push((index, Vec::new()));
                continue;
            }
            let ends = mark.kind == Kind::Close
                && levels.last().is_some_and(|(open, _)| mark.partner == Some(*open));
            let item = match mark.kind {
                Kind::Point(_) => Item::Point(index),
                Kind::Close if ends => match levels.pop() {
                    Some((open, items)) => Item::Element(Element { open, close: index, items }),
                    None => Item::Cut(index),
                },
                Kind::Open | Kind::Close => Item::Cut(index),
            };
            if let Some((_, items)) = levels.last_mut() {
                items.push(item);
            }
        }
        levels.into_iter().next().map(|(_, items)| items).unwrap_or_default()
    }
}
