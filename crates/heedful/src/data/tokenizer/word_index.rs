//! The word that each token belongs to.

/// For each token, given as the bytes that it adds to the text, the index of the white-space separated word
/// that its first visible character is part of.
pub(super) fn word_indices<'b>(tokens: impl Iterator<Item = &'b [u8]>) -> Vec<Option<usize>> {
    numbered(tokens, |_| false)
}

/// As [`word_indices`], but a character of a script without spaces between words begins a word of its own, so
/// that each token of such a text is one; and a token that is the space before a word belongs to the word.
pub(super) fn for_display<'b>(tokens: impl Iterator<Item = &'b [u8]> + Clone) -> Vec<Option<usize>> {
    let mut words = numbered(tokens.clone(), is_written_without_spaces);
    for (i, token) in tokens.enumerate() {
        if token == b" " && words[i].is_none() {
            words[i] = words.get(i + 1).copied().flatten();
        }
    }
    // A token of several such characters has used several indices: renumber.
    let mut last = None;
    let mut next = 0;
    for word in words.iter_mut().flatten() {
        if last.is_some_and(|last| last != *word) {
            next += 1;
        }
        last = Some(std::mem::replace(word, next));
    }
    words
}

/// Han, kana, Thai, Lao, Khmer and Burmese, with their punctuation.
fn is_written_without_spaces(character: char) -> bool {
    matches!(character,
        '\u{0E00}'..='\u{0EFF}' | '\u{1000}'..='\u{109F}' | '\u{1780}'..='\u{17FF}' | '\u{2E80}'..='\u{30FF}'
        | '\u{3100}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{FF00}'..='\u{FFEF}'
        | '\u{20000}'..='\u{3FFFF}')
}

fn numbered<'b>(
    tokens: impl Iterator<Item = &'b [u8]>,
    begins_a_word: fn(char) -> bool,
) -> Vec<Option<usize>> {
    let mut text: Vec<u8> = Vec::new();
    let mut ends = Vec::new();
    for bytes in tokens {
        text.extend_from_slice(bytes);
        ends.push(text.len());
    }
    let words = of_bytes(&text, begins_a_word);
    let mut start = 0;
    ends.into_iter()
        .map(|end| {
            let token = start..end;
            start = end;
            words[token].iter().copied().flatten().next()
        })
        .collect()
}

/// For each byte the index of its word, `None` for white space. Per byte, because a character may be split
/// over several tokens.
fn of_bytes(text: &[u8], begins_a_word: fn(char) -> bool) -> Vec<Option<usize>> {
    let mut words = Vec::with_capacity(text.len());
    let (mut word, mut inside) = (0, false);
    let mut step = |visible: bool, begins: bool, bytes: usize| {
        if inside && (!visible || begins) {
            word += 1;
        }
        inside = visible;
        words.extend(std::iter::repeat_n(visible.then_some(word), bytes));
    };
    for chunk in text.utf8_chunks() {
        for character in chunk.valid().chars() {
            step(!character.is_whitespace(), begins_a_word(character), character.len_utf8());
        }
        // Invalid bytes are visible: they are shown as U+FFFD.
        if !chunk.invalid().is_empty() {
            step(true, false, chunk.invalid().len());
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(tokens: &[&[u8]]) -> Vec<Option<usize>> {
        word_indices(tokens.iter().copied())
    }

    #[test]
    fn tokens_have_the_index_of_their_word() {
        let tokens: [&[u8]; 6] = [b" hel", b"lo", b"  ", b" wor", b"ld", b"!"];
        assert_eq!(words(&tokens), [Some(0), Some(0), None, Some(1), Some(1), Some(1)]);
    }

    #[test]
    fn special_tokens_belong_to_no_word_and_bytes_to_the_word_of_their_character() {
        let tokens: [&[u8]; 7] = [b"", b" a", b" ", b"\xE4", b"\xBD", b"\xA0", b""];
        assert_eq!(words(&tokens), [None, Some(0), None, Some(1), Some(1), Some(1), None]);
        assert_eq!(words(&[b"\xE4", b"\xFF", b" x"]), [Some(0), Some(0), Some(1)]);
    }

    #[test]
    fn a_space_spelled_over_three_bytes_ends_a_word() {
        let tokens: [&[u8]; 5] = [b"a", b"\xE3", b"\x80", b"\x80", b"b"];
        assert_eq!(words(&tokens), [Some(0), None, None, None, Some(1)]);
    }

    #[test]
    fn every_token_of_a_text_without_spaces_is_a_display_word() {
        let tokens = ["一", "套", "自动驾驶", "解决方案", " ok", "ay"].map(str::as_bytes);
        let found = for_display(tokens.iter().copied());
        assert_eq!(found, [Some(0), Some(1), Some(2), Some(3), Some(4), Some(4)]);
        let alone: [&[u8]; 5] = [b" a", b" ", b"b", b" ", b""];
        assert_eq!(for_display(alone.iter().copied()), [Some(0), Some(1), Some(1), None, None]);
        let spelled: [&[u8]; 4] = [b"\xE4", b"\xBD", b"\xA0", "好".as_bytes()];
        assert_eq!(for_display(spelled.iter().copied()), [Some(0), Some(0), Some(0), Some(1)]);
    }
}
