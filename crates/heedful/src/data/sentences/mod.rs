//! Sentence segmentation: the rules of Unicode (UAX #29), which include the full stops of Chinese and
//! Japanese, and three more: an abbreviation does not end a sentence, an opening quotation mark starts one,
//! and a very long sentence is split after a comma or at a space.

mod gaps;

use std::ops::Range;

pub use gaps::{Gap, is_joint, is_unspaced, split};
use unicode_segmentation::UnicodeSegmentation;

/// The maximum characters of a sentence; longer ones are split, because models were trained on shorter ones.
const MAX_CHARACTERS: usize = 600;

/// Words whose full stop does not end a sentence, in lower case.
const ABBREVIATIONS: [&str; 40] = [
    "mr.", "mrs.", "ms.", "dr.", "prof.", "st.", "sr.", "jr.", "rev.", "gen.", "col.", "capt.", "lt.", "no.",
    "vol.", "fig.", "eq.", "sec.", "ch.", "vs.", "e.g.", "i.e.", "cf.", "approx.", "z.b.", "d.h.", "u.a.",
    "bzw.", "nr.", "hr.", "fr.", "abs.", "art.", "vgl.", "ca.", "m.", "mme.", "mlle.", "p.", "pp.",
];

/// The byte ranges of the sentences of a text, without the white space around them. Between them is white
/// space only.
pub fn sentences(text: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut starts: Vec<usize> =
        text.split_sentence_bound_indices().map(|(start, _)| before_opening(text, start)).collect();
    starts.push(text.len());
    for bounds in starts.windows(2) {
        let (start, piece) = (bounds[0], &text[bounds[0]..bounds[1]]);
        let trimmed = piece.trim();
        if trimmed.is_empty() {
            continue;
        }
        let begin = start + (piece.len() - piece.trim_start().len());
        let range = begin..begin + trimmed.len();
        match found.last_mut() {
            Some(last) if is_continued(text, last, begin) => last.end = range.end,
            _ => found.push(range),
        }
    }
    found.into_iter().flat_map(|range| split_long(text, range)).collect()
}

/// Unicode lets any quotation mark close a sentence; one that can only open belongs to the next sentence.
fn before_opening(text: &str, start: usize) -> usize {
    let opening = ['“', '‘', '「', '『', '《', '〈', '（', '【', '«', '„', '(', '['];
    text[..start].trim_end_matches(opening).len()
}

/// Whether the text at `next` continues the previous sentence, which ends in an abbreviation on the same
/// line.
fn is_continued(text: &str, before: &Range<usize>, next: usize) -> bool {
    if text[before.end..next].contains(['\n', '\r', '\u{2028}', '\u{2029}']) || before.end == next {
        return false;
    }
    let word = text[before.clone()].rsplit(char::is_whitespace).next().unwrap_or_default();
    let word = word.trim_start_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    // `J. S. Bach`
    let is_initial =
        word.chars().count() == 2 && word.ends_with('.') && word.starts_with(char::is_alphabetic);
    is_initial || ABBREVIATIONS.contains(&word.as_str())
}

/// Splits a sentence into pieces of at most [`MAX_CHARACTERS`] characters: after a comma or the like, else at
/// a space, else anywhere.
fn split_long(text: &str, range: Range<usize>) -> Vec<Range<usize>> {
    let mut pieces = Vec::new();
    let mut rest = range;
    while let Some((limit, _)) = text[rest.clone()].char_indices().nth(MAX_CHARACTERS) {
        let head = &text[rest.start..rest.start + limit];
        // Not in the first half: small pieces are worse than a split at a bad position.
        let later = |found: Option<usize>| found.filter(|&end| end > head.len() / 2);
        let after = |c: char| head.rfind(c).map(|at| at + c.len_utf8());
        let comma = later(['，', '、', '；', '：', ',', ';', ':'].into_iter().filter_map(after).max());
        let space = || later(head.rfind(char::is_whitespace));
        let end = rest.start + comma.or_else(space).unwrap_or(head.len());
        let piece = text[rest.start..end].trim_end();
        pieces.push(rest.start..rest.start + piece.len());
        let skipped = text[end..rest.end].len() - text[end..rest.end].trim_start().len();
        rest.start = end + skipped;
    }
    if !rest.is_empty() {
        pieces.push(rest);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<&str> {
        sentences(text).into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn sentences_end_where_readers_expect() {
        assert_eq!(split("One. Two!  Three?\nFour"), ["One.", "Two!", "Three?", "Four"]);
        assert_eq!(split("你好。再见！“好吗？”他说。"), ["你好。", "再见！", "“好吗？”", "他说。"]);
        assert_eq!(split("今日は。元気ですか？はい。"), ["今日は。", "元気ですか？", "はい。"]);
        assert_eq!(
            split("Mr. Smith met J. S. Bach. They sang."),
            ["Mr. Smith met J. S. Bach.", "They sang."]
        );
        assert_eq!(split("It costs 3.50 euros. Really?"), ["It costs 3.50 euros.", "Really?"]);
        assert_eq!(split("a line\r\n\r\n  and another"), ["a line", "and another"]);
        assert!(split(" \n\t ").is_empty());
        assert!(split("").is_empty());
    }

    #[test]
    fn only_white_space_separates_sentences() {
        let long = "word, ".repeat(700) + &"字".repeat(1500) + &"x".repeat(1300) + "\u{3000}end.  ";
        for text in [long.as_str(), " a. b.\n\nc ", "。。。", "\u{feff}x. y"] {
            let mut from = 0;
            for range in sentences(text) {
                assert!(text[from..range.start].trim().is_empty(), "{:?}", &text[from..range.start]);
                assert!(!range.is_empty() && text[range.clone()].chars().count() <= MAX_CHARACTERS);
                from = range.end;
            }
            assert!(text[from..].trim().is_empty());
        }
    }
}
