//! The inline tags of a sentence, and their nesting.

use super::scan::{OpenElements, TagKind};

/// The inline tags of a sentence, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::text) struct InlineTags(pub(super) Vec<InlineTag>);

/// A begin tag, an end tag, or a placeholder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InlineTag {
    /// Its position in the sentence without tags.
    pub(super) at: usize,
    pub(super) html: String,
    pub(super) kind: TagKind,
    /// The other tag of its element, if it is in the same sentence.
    pub(super) partner: Option<usize>,
    pub(super) spaces: Spaces,
}

/// Whether there is white space before and after a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spaces {
    pub(super) before: bool,
    pub(super) after: bool,
}

/// For each tag the other tag of its element. Of overlapping elements, the inner one stays without partners.
pub(super) fn pairs<'a>(tags: impl ExactSizeIterator<Item = (TagKind, &'a str)>) -> Vec<Option<usize>> {
    let mut partners = vec![None; tags.len()];
    let mut open = OpenElements::default();
    for (index, (kind, name)) in tags.enumerate() {
        match kind {
            TagKind::Open => open.push(name, index),
            TagKind::Close => {
                if let Some(begin) = open.close(name) {
                    (partners[begin], partners[index]) = (Some(index), Some(begin));
                }
            }
            TagKind::Placeholder(_) => {}
        }
    }
    partners
}

/// The inline tags of a sentence as a tree.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Item {
    Element(Element),
    /// May be placed anywhere.
    Placeholder(usize),
    /// A tag whose partner is in another sentence. Unpaired tags keep their order, and so stay well nested.
    Unpaired(usize),
}

/// An element that begins and ends in the same sentence.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Element {
    pub(super) open: usize,
    pub(super) close: usize,
    pub(super) items: Vec<Item>,
}

/// Deeper elements only keep their order: a page may have as many tags as bytes, and the stack of a thread is
/// limited.
const MAX_DEPTH: usize = 40;
/// In a sentence with more tags, all elements only keep their order.
const MAX_TAGS: usize = 400;

impl InlineTags {
    pub(in crate::text) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn tree(&self) -> Vec<Item> {
        let is_crowded = self.0.len() > MAX_TAGS;
        // The elements around the current tag with their items so far; the first entry is the sentence.
        let mut levels: Vec<(usize, Vec<Item>)> = vec![(usize::MAX, Vec::new())];
        for (index, tag) in self.0.iter().enumerate() {
            let begins = tag.kind == TagKind::Open && tag.partner.is_some();
            if begins && !is_crowded && levels.len() < MAX_DEPTH {
                levels.push((index, Vec::new()));
                continue;
            }
            let ends = tag.kind == TagKind::Close
                && levels.last().is_some_and(|(open, _)| tag.partner == Some(*open));
            let item = match tag.kind {
                TagKind::Placeholder(_) => Item::Placeholder(index),
                TagKind::Close if ends => match levels.pop() {
                    Some((open, items)) => Item::Element(Element { open, close: index, items }),
                    None => Item::Unpaired(index),
                },
                TagKind::Open | TagKind::Close => Item::Unpaired(index),
            };
            if let Some((_, items)) = levels.last_mut() {
                items.push(item);
            }
        }
        levels.into_iter().next().map(|(_, items)| items).unwrap_or_default()
    }
}
