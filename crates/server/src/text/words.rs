//! Word alignment between a source and its translation, as byte ranges in both texts.

use std::ops::Range;

use heedful::explain::{ExplainedOutput, ExplainedSource, ExplainedToken};

/// The words of a sentence and of its translation, and the aligned pairs of words.
#[derive(Clone, Debug, Default)]
pub(crate) struct WordLinks {
    pub(super) source: Vec<Range<usize>>,
    pub(super) target: Vec<Range<usize>>,
    /// Indices of a source word and a target word; if empty, words are aligned by order.
    pub(super) pairs: Vec<(usize, usize)>,
}

impl WordLinks {
    /// The links of an explanation's alignment.
    pub(crate) fn aligned(source: &ExplainedSource, output: &ExplainedOutput) -> WordLinks {
        WordLinks {
            source: words(&source.text, &source.tokens),
            target: words(&output.text, &output.tokens),
            pairs: output.alignment.clone(),
        }
    }

    /// The links by word order, without an alignment.
    pub(crate) fn in_order(source: &str, target: &str) -> WordLinks {
        WordLinks { source: spaced(source), target: spaced(target), pairs: Vec::new() }
    }

    /// The same words with these pairs; pairs with an invalid index are dropped.
    pub(crate) fn with(self, pairs: &[(usize, usize)]) -> WordLinks {
        let is_there =
            |&&(source, target): &&(usize, usize)| source < self.source.len() && target < self.target.len();
        WordLinks { pairs: pairs.iter().filter(is_there).copied().collect(), ..self }
    }
}

/// The words separated by white space.
fn spaced(text: &str) -> Vec<Range<usize>> {
    let place = |word: &str| {
        let start = word.as_ptr().addr() - text.as_ptr().addr();
        start..start + word.len()
    };
    text.split_whitespace().map(place).collect()
}

/// The ranges of the words that tokens belong to. Where normalization has changed characters, a word may be
/// off by a few characters; the next word after a space is exact again.
fn words(text: &str, tokens: &[ExplainedToken]) -> Vec<Range<usize>> {
    let mut words: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    // The remaining byte tokens of the current character.
    let mut remaining_bytes = 0;
    for token in tokens {
        let Some(word) = token.word else { continue };
        let length = match byte(&token.piece) {
            Some(_) if remaining_bytes > 0 => {
                remaining_bytes -= 1;
                continue;
            }
            Some(first) => {
                remaining_bytes = first.leading_ones().saturating_sub(1);
                1
            }
            None => {
                remaining_bytes = 0;
                token.piece.chars().filter(|&c| c != SPACE).count()
            }
        };
        let is_new = words.len() <= word;
        let is_inside_of_one = !text[..at].is_empty() && !text[..at].ends_with(char::is_whitespace);
        if is_new && token.piece.starts_with(SPACE) && is_inside_of_one {
            at += text[at..].find(char::is_whitespace).unwrap_or(text.len() - at);
        }
        at = text.len() - text[at..].trim_start().len();
        let characters = text[at..].chars().take(length).take_while(|c| !c.is_whitespace());
        let end = at + characters.map(char::len_utf8).sum::<usize>();
        if is_new {
            words.resize(word, at..at);
            words.push(at..end);
        } else {
            words[word].end = end;
        }
        at = end;
    }
    words
}

const SPACE: char = '▁';

/// The byte that a token such as `<0xE4>` stands for.
fn byte(piece: &str) -> Option<u8> {
    let digits = piece.strip_prefix("<0x")?.strip_suffix('>')?;
    (digits.len() == 2).then(|| u8::from_str_radix(digits, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found<'t>(text: &'t str, tokens: &[(&str, Option<usize>)]) -> Vec<&'t str> {
        let token = |&(piece, word): &(&str, Option<usize>)| ExplainedToken {
            piece: piece.to_owned(),
            word,
            log_probability: None,
            alternatives: Vec::new(),
        };
        let tokens: Vec<ExplainedToken> = tokens.iter().map(token).collect();
        words(text, &tokens).into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn words_have_the_ranges_of_their_tokens() {
        let tokens = [("▁A", Some(0)), ("▁do", Some(1)), ("g", Some(1)), (".", Some(1)), ("<eos>", None)];
        assert_eq!(found("A dog.", &tokens), ["A", "dog."]);
        let tokens = [("一", Some(0)), ("辆", Some(1)), ("▁ok", Some(2))];
        assert_eq!(found("一辆 ok", &tokens), ["一", "辆", "ok"]);
        let tokens = [("<0xE4>", Some(0)), ("<0xBD>", Some(0)), ("<0xA0>", Some(0)), ("好", Some(1))];
        assert_eq!(found("你好", &tokens), ["你", "好"]);
    }

    #[test]
    fn tokens_that_do_not_match_the_text_are_tolerated() {
        // A ligature that the tokenizer normalizes to two letters: the next word is exact again.
        let tokens = [("▁fi", Some(0)), ("ne", Some(0)), ("▁dog", Some(1))];
        assert_eq!(found("ﬁne dog", &tokens)[0], "ﬁne");
        let tokens = [("▁...", Some(0)), ("▁dog", Some(1))];
        assert_eq!(found("… dog", &tokens).len(), 2);
        for text in ["", "a", "你"] {
            let tokens = [("▁many", Some(0)), ("<0xE4>", Some(3)), ("▁words", Some(7)), ("x", Some(2))];
            assert_eq!(found(text, &tokens).len(), 8);
        }
    }
}
