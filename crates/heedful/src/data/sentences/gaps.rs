//! The gaps between the sentences of a text: `gap 0, sentence 0, gap 1, …, sentence n − 1, gap n`.

use super::sentences;

/// The text between two sentences.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gap {
    /// White space; tags too in HTML.
    pub text: String,
    /// If nothing separates the two sentences, as in Chinese: the position for a space that the outputs may
    /// need.
    pub joint: Option<usize>,
}

impl Gap {
    /// The position of a space that only the outputs need, as from Chinese to English; `before` and `after`
    /// are the outputs beside the gap.
    pub fn space(&self, before: Option<&str>, after: &str) -> Option<usize> {
        let joint = self.joint?;
        let before = before?.chars().next_back()?;
        let after = after.chars().next()?;
        let is_joined = |c: char| is_unspaced(c) || c.is_whitespace();
        (!is_joined(before) && !is_joined(after)).then_some(joint)
    }
}

/// The sentences of a plain text, and the gaps around them: one more than sentences.
pub fn split(text: &str) -> (Vec<String>, Vec<Gap>) {
    let (mut found, mut gaps, mut from) = (Vec::new(), Vec::new(), 0);
    for range in sentences(text) {
        let joint = (!found.is_empty() && from == range.start && is_joint(text, from)).then_some(0);
        gaps.push(Gap { text: text[from..range.start].to_owned(), joint });
        found.push(text[range.clone()].to_owned());
        from = range.end;
    }
    gaps.push(Gap { text: text[from..].to_owned(), joint: None });
    (found, gaps)
}

/// Whether two sentences meet here because their script has no spaces between sentences, unlike a typo as in
/// `dog!s`.
pub fn is_joint(text: &str, at: usize) -> bool {
    text[..at].chars().next_back().is_some_and(is_unspaced)
        || text[at..].chars().next().is_some_and(is_unspaced)
}

/// Whether a character is a letter or punctuation of a script without spaces between sentences.
pub fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{3000}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{ff00}'..='\u{ffef}')
}
