//! White space as in Python's `str.split`: Unicode white space and four ASCII separators that Unicode does
//! not include.

pub(super) fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(is_space).filter(|word| !word.is_empty())
}

pub(super) fn trim_end(text: &str) -> &str {
    text.trim_end_matches(is_space)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ascii_separators_and_unicode_spaces_separate_words() {
        let text = "a\u{1c}b\u{3000}c\u{a0}\u{85}d\u{200b}e \t";
        assert_eq!(words(text).collect::<Vec<_>>(), ["a", "b", "c", "d\u{200b}e"]);
        assert_eq!(trim_end("a \u{1f}\r"), "a");
    }
}
