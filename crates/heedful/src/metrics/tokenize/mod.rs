//! How text becomes tokens: sacreBLEU's tokenizers, as text with spaces between the tokens.

mod chinese;
mod international;
pub(super) mod tercom;
mod western;

use super::spaces::is_space;

/// sacreBLEU's tokenizers for BLEU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tokenize {
    /// `13a`, WMT's choice: ASCII punctuation is set apart, points and commas inside numbers are not.
    #[default]
    V13a,
    /// `intl`: punctuation and symbols of all scripts are set apart, punctuation between digits is not.
    International,
    /// `zh`: every Chinese character is a token; the rest as in `13a`.
    Chinese,
    /// `char`: every character is a token.
    Character,
    /// `none`: text that has been tokenized already.
    None,
}

impl Tokenize {
    /// All of them.
    pub const ALL: [Tokenize; 5] =
        [Tokenize::V13a, Tokenize::International, Tokenize::Chinese, Tokenize::Character, Tokenize::None];

    /// sacreBLEU's name: `13a`, `intl`, `zh`, `char` or `none`.
    pub fn name(self) -> &'static str {
        match self {
            Tokenize::V13a => "13a",
            Tokenize::International => "intl",
            Tokenize::Chinese => "zh",
            Tokenize::Character => "char",
            Tokenize::None => "none",
        }
    }

    /// The tokenizer of that name.
    pub fn named(name: &str) -> Option<Tokenize> {
        Tokenize::ALL.into_iter().find(|tokenize| tokenize.name() == name)
    }

    /// What to count such texts by if nobody says: Chinese and Japanese have no spaces that words could be counted by,
    /// so their characters are.
    pub fn suited_to<'t>(texts: impl Iterator<Item = &'t str>) -> Tokenize {
        let is_ideograph = |c: char| matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}');
        let (mut letters, mut ideographs) = (0_usize, 0_usize);
        for c in texts.flat_map(str::chars).filter(|c| c.is_alphabetic()) {
            letters += 1;
            ideographs += usize::from(is_ideograph(c));
        }
        if 2 * ideographs > letters { Tokenize::Chinese } else { Tokenize::V13a }
    }

    /// `text` with white space between the tokens.
    pub(super) fn apply(self, text: &str) -> String {
        match self {
            Tokenize::V13a => western::tokenize(text),
            Tokenize::International => international::tokenize(text),
            Tokenize::Chinese => chinese::tokenize(text),
            Tokenize::Character => around_each(text, |c| !is_space(c)),
            Tokenize::None => text.to_owned(),
        }
    }
}

/// Puts a space before and after each character that is `chosen`.
fn around_each(text: &str, chosen: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    for c in text.chars() {
        if chosen(c) {
            out.extend([' ', c, ' ']);
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::spaces::words;
    use super::*;

    #[test]
    fn chinese_texts_are_counted_by_characters() {
        for (text, suited) in [
            ("一辆 SUV 汽车停在路边", Tokenize::Chinese),
            ("the word 车 means car", Tokenize::V13a),
            ("123", Tokenize::V13a),
        ] {
            assert_eq!(Tokenize::suited_to([text].into_iter()), suited);
        }
    }

    fn tokens(tokenize: Tokenize, text: &str) -> Vec<String> {
        words(&tokenize.apply(text)).map(str::to_owned).collect()
    }

    #[test]
    fn names_lead_back_to_their_tokenizers() {
        for tokenize in Tokenize::ALL {
            assert_eq!(Tokenize::named(tokenize.name()), Some(tokenize));
        }
        assert_eq!(Tokenize::named("14a"), None);
    }

    #[test]
    fn numbers_keep_their_points() {
        let text = "It's 1,234.5 (or -3.0), i.e. ,,5 5-6 &amp;lt;";
        assert_eq!(tokens(Tokenize::V13a, text).join(" "), "It's 1,234.5 ( or -3.0 ) , i . e . , ,5 5 - 6 <");
    }

    #[test]
    fn punctuation_of_all_scripts_is_set_apart() {
        assert_eq!(
            tokens(Tokenize::International, "3.5 €, «так»। 2019."),
            ["3.5", "€", ",", "«", "так", "»", "।", "2019."]
        );
    }

    #[test]
    fn chinese_is_split_into_characters_and_the_rest_into_words() {
        assert_eq!(
            tokens(Tokenize::Chinese, "你好,world!“好”ok"),
            ["你", "好", ",", "world", "!", "“", "好", "”", "ok"]
        );
        assert_eq!(tokens(Tokenize::Character, "a 你b"), ["a", "你", "b"]);
        assert_eq!(tokens(Tokenize::None, "a, b"), ["a,", "b"]);
    }
}
