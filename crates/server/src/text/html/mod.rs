//! HTML keeps its sentences: inline tags do not cut a sentence, and stand around the same words in its translation.
//!
//! ```text
//! scan         a page as text, tags, and what stays as it is (comments, scripts, `translate="no"`)
//! entities     `&amp;` and the like, which models do not know
//! paragraphs   the text between two block tags, with its inline tags as marks; cut into sentences
//! marks        the marks inside one sentence, and what encloses what
//! placement    where they stand in the translation, by the alignment of words
//! ```
//!
//! No tag is lost or doubled, whatever the alignment is, and what was well nested stays so: an element is put around one
//! stretch of words, elements beside each other get stretches that do not meet, and what begins or ends in another
//! sentence keeps its order.

mod scan;

mod entities;
mod paragraphs;

mod marks;
mod placement;

pub(super) use self::marks::Marks;
pub(super) use self::paragraphs::paragraphs;
pub(super) use self::placement::render;

#[cfg(test)]
mod tests;
