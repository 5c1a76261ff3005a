//! `intl`: NIST's `mteval-v14` with its option for international tokenization.

use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

use super::space_around;

/// Tokenizes a line.
///
/// The first two rules scan the text once and consume characters in pairs. A point after a number at the end
/// of a line stays with the number, because the rule needs a character after the point.
pub(super) fn tokenize(line: &str) -> String {
    let after_other = replace_pairs(line, |one, other| {
        (class(one) != Class::Number && class(other) == Class::Punctuation).then_some([one, ' ', other, ' '])
    });
    let before_other = replace_pairs(&after_other, |one, other| {
        (class(one) == Class::Punctuation && class(other) != Class::Number).then_some([' ', one, ' ', other])
    });
    space_around(&before_other, |c| class(c) == Class::Symbol)
}

/// Replaces pairs of adjacent characters that the rule matches, from left to right, without overlap.
fn replace_pairs(text: &str, rule: impl Fn(char, char) -> Option<[char; 4]>) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 4);
    let mut characters = text.chars();
    let mut pending = characters.next();
    while let Some(one) = pending {
        pending = characters.next();
        match pending.and_then(|other| rule(one, other)) {
            Some(replacement) => {
                out.extend(replacement);
                pending = characters.next();
            }
            None => out.push(one),
        }
    }
    out
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Number,
    Punctuation,
    Symbol,
    Other,
}

fn class(c: char) -> Class {
    match c {
        '0'..='9' => Class::Number,
        '$' | '+' | '<'..='>' | '^' | '`' | '|' | '~' => Class::Symbol,
        '!'..='/' | ':' | ';' | '?' | '@' | '['..=']' | '_' | '{' | '}' => Class::Punctuation,
        '\0'..='\x7f' => Class::Other,
        _ => match c.general_category_group() {
            GeneralCategoryGroup::Number => Class::Number,
            GeneralCategoryGroup::Punctuation => Class::Punctuation,
            GeneralCategoryGroup::Symbol => Class::Symbol,
            _ => Class::Other,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ascii_characters_have_their_unicode_classes() {
        for c in '\0'..='\x7f' {
            let expected = match c.general_category_group() {
                GeneralCategoryGroup::Number => Class::Number,
                GeneralCategoryGroup::Punctuation => Class::Punctuation,
                GeneralCategoryGroup::Symbol => Class::Symbol,
                _ => Class::Other,
            };
            assert_eq!(class(c), expected, "{c:?}");
        }
    }
}
