//! HTML is translated by sentence: inline tags do not split a sentence, and enclose the same words in its
//! translation.
//!
//! ```text
//! scan         splits a page into text, tags, and untranslated parts (comments, scripts, `translate="no"`)
//! entities     decodes `&amp;` and the like for models
//! paragraphs   the text between two block tags, with its inline tags; split into sentences
//! inline_tags  the inline tags of one sentence, and their nesting
//! placement    places them in the translation, by word alignment
//! ```
//!
//! No tag is lost or duplicated, whatever the alignment, and well-nested markup stays well nested: an element
//! encloses one range of words, sibling elements get disjoint ranges, and tags whose partner is in another
//! sentence keep their order.

mod scan;

mod entities;
mod paragraphs;

mod inline_tags;
mod placement;

pub(super) use self::inline_tags::InlineTags;
pub(super) use self::paragraphs::paragraphs;
pub(super) use self::placement::render;

#[cfg(test)]
mod tests;
