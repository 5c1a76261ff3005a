//! Splitting a long text into parts within the limit of a model.

use super::{TextLimit, ceil, floor};

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextPart {
    /// Its tokens.
    pub tokens: Vec<u32>,
    /// Whether it begins a word: it is preceded by white space, or it is the first part.
    pub begins_word: bool,
}

/// Punctuation that ends a sentence if a space follows.
const SENTENCE_ENDS: [char; 4] = ['.', '!', '?', '…'];
/// Punctuation that ends a sentence without a space.
const UNSPACED_SENTENCE_ENDS: [char; 3] = ['。', '！', '？'];

/// The parts; none is blank or too long.
pub(super) fn split(text: &str, limit: TextLimit, encode: impl Fn(&str) -> Vec<u32>) -> Vec<TextPart> {
    let mut parts = Vec::new();
    let mut rest = text.trim();
    let mut begins_word = true;
    // Estimated bytes of the next part, from the length of the last one, so that little text is tokenized in
    // vain.
    let mut estimate = limit.bytes();
    while !rest.is_empty() {
        let (length, tokens) = next(rest, estimate, limit, &encode);
        estimate = (length + length / 4 + 16).min(limit.bytes());
        if !tokens.is_empty() {
            parts.push(TextPart { tokens, begins_word });
        }
        let after = &rest[length..];
        rest = after.trim_start();
        begins_word = rest.len() < after.len();
    }
    parts
}

/// The length in bytes and the tokens of the first part.
fn next(
    text: &str,
    estimate: usize,
    limit: TextLimit,
    encode: &impl Fn(&str) -> Vec<u32>,
) -> (usize, Vec<u32>) {
    let mut window = floor(text, estimate);
    loop {
        let length = if window == text.len() { window } else { boundary(&text[..window]) };
        let tokens = encode(text[..length].trim_end());
        let first = ceil(text, 1);
        if tokens.len() <= limit.tokens() || length <= first {
            return (length, tokens);
        }
        // If tokens are spread evenly over the text, the next iteration succeeds.
        window = floor(text, length * limit.tokens() / tokens.len()).max(first);
    }
}

/// Where to cut a text that continues: after its last sentence, else before its last word, if that is in the
/// second half.
fn boundary(text: &str) -> usize {
    let later = |found: Option<usize>| found.filter(|&end| end > text.len() / 2);
    let ends = text.char_indices().zip(text.chars().skip(1).map(Some).chain([None]));
    let sentence = ends.filter(|&((_, character), after)| {
        UNSPACED_SENTENCE_ENDS.contains(&character)
            || SENTENCE_ENDS.contains(&character) && after.is_some_and(char::is_whitespace)
    });
    let sentence = later(sentence.last().map(|((at, character), _)| at + character.len_utf8()));
    sentence.or_else(|| later(text.rfind(char::is_whitespace))).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::super::tests::characters;
    use super::*;

    fn texts(text: &str, tokens: usize) -> Vec<String> {
        let tokenizer = characters();
        let limit = TextLimit::new(&tokenizer, Some(tokens), None);
        let parts = limit.split(text, |text| tokenizer.encode(text));
        assert!(parts.iter().all(|part| (1..=tokens).contains(&part.tokens.len())), "{parts:?}");
        parts.iter().map(|part| tokenizer.decode(&part.tokens)).collect()
    }

    #[test]
    fn a_text_is_cut_after_sentences_else_between_words_else_anywhere() {
        assert_eq!(texts("a dog runs. a cat sleeps! good", 28), ["a dog runs. a cat sleeps!", "good"]);
        assert_eq!(texts("one two three four five six seven", 20), ["one two three four", "five six seven"]);
        assert_eq!(texts("你好世界。你好世界。你好世界。", 8), ["你好世界。", "你好世界。", "你好世界。"]);
        assert_eq!(texts(&"x".repeat(45), 20).concat(), "x".repeat(45));
        assert_eq!(texts("short.", 20), ["short."]);
    }

    #[test]
    fn only_white_space_at_the_cuts_is_lost() {
        let all = |text: &str| text.split_whitespace().collect::<String>();
        for text in
            ["a dog. ".repeat(5000), "你好 世界".repeat(999), "🙂".repeat(500), " \n ab\t".repeat(700)]
        {
            for tokens in [16, 57, 300] {
                assert_eq!(all(&texts(&text, tokens).concat()), all(&text));
            }
        }
    }
}
