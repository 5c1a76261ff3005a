//! A long text in parts that a model can read.

use super::{TextLimit, ceil, floor};

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its tokens.
    pub tokens: Vec<u32>,
    /// Whether there is white space before it, or nothing: then it begins a word.
    pub begins_word: bool,
}

/// Marks that end a sentence, followed by a space.
const ENDS: [char; 4] = ['.', '!', '?', '…'];
/// Marks that end a sentence by themselves.
const UNSPACED_ENDS: [char; 3] = ['。', '！', '？'];

/// The parts, none of which is blank or too long.
pub(super) fn split(text: &str, limit: TextLimit, encode: impl Fn(&str) -> Vec<u32>) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut rest = text.trim();
    let mut begins_word = true;
    // The next part is about as long as the last one: so little is tokenized that is not used.
    let mut likely = limit.bytes();
    while !rest.is_empty() {
        let (length, tokens) = next(rest, likely, limit, &encode);
        likely = (length + length / 4 + 16).min(limit.bytes());
        if !tokens.is_empty() {
            parts.push(Part { tokens, begins_word });
        }
        let after = &rest[length..];
        rest = after.trim_start();
        begins_word = rest.len() < after.len();
    }
    parts
}

/// The bytes and the tokens of the first part.
fn next(
    text: &str,
    likely: usize,
    limit: TextLimit,
    encode: &impl Fn(&str) -> Vec<u32>,
) -> (usize, Vec<u32>) {
    let mut window = floor(text, likely);
    loop {
        let length = if window == text.len() { window } else { boundary(&text[..window]) };
        let tokens = encode(text[..length].trim_end());
        let first = ceil(text, 1);
        if tokens.len() <= limit.tokens() || length <= first {
            return (length, tokens);
        }
        // Where the text is even, this is the last round.
        window = floor(text, length * limit.tokens() / tokens.len()).max(first);
    }
}

/// Where to cut a text that goes on: after its last sentence, else before its last word, if that is not in the first half.
fn boundary(text: &str) -> usize {
    let later = |found: Option<usize>| found.filter(|&end| end > text.len() / 2);
    let ends = text.char_indices().zip(text.chars().skip(1).map(Some).chain([None]));
    let sentence = ends.filter(|&((_, mark), after)| {
        UNSPACED_ENDS.contains(&mark) || ENDS.contains(&mark) && after.is_some_and(char::is_whitespace)
    });
    let sentence = later(sentence.last().map(|((at, mark), _)| at + mark.len_utf8()));
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
    fn nothing_is_lost_but_white_space_at_the_cuts() {
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
