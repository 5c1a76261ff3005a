//! sacreBLEU's tokenizers, which insert spaces between tokens.

mod chinese;
mod international;
mod script;
pub(super) mod tercom;
mod western;

pub use self::script::UnspacedScript;
use super::spaces::is_space;

/// sacreBLEU's tokenizers for BLEU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BleuTokenizer {
    /// `13a`, the tokenizer of WMT: ASCII punctuation is split off, except points and commas inside numbers.
    #[default]
    V13a,
    /// `intl`: punctuation and symbols of all scripts are split off, except punctuation between digits.
    International,
    /// `zh`: every Chinese character is a token; the rest as in `13a`.
    Chinese,
    /// `char`: every character is a token.
    Character,
    /// `none`: the text is already tokenized.
    None,
}

impl BleuTokenizer {
    /// All of them.
    pub const ALL: [BleuTokenizer; 5] = [
        BleuTokenizer::V13a,
        BleuTokenizer::International,
        BleuTokenizer::Chinese,
        BleuTokenizer::Character,
        BleuTokenizer::None,
    ];

    /// sacreBLEU's name: `13a`, `intl`, `zh`, `char` or `none`.
    pub fn name(self) -> &'static str {
        match self {
            BleuTokenizer::V13a => "13a",
            BleuTokenizer::International => "intl",
            BleuTokenizer::Chinese => "zh",
            BleuTokenizer::Character => "char",
            BleuTokenizer::None => "none",
        }
    }

    /// The tokenizer with this name.
    pub fn named(name: &str) -> Option<BleuTokenizer> {
        BleuTokenizer::ALL.into_iter().find(|tokenize| tokenize.name() == name)
    }

    /// The default tokenizer for these texts: Chinese and Japanese are tokenized by character, because they
    /// have no spaces between words.
    pub fn suited_to<'t>(texts: impl Iterator<Item = &'t str>) -> BleuTokenizer {
        match UnspacedScript::of(texts) {
            Some(UnspacedScript::Chinese | UnspacedScript::Japanese) => BleuTokenizer::Chinese,
            Some(UnspacedScript::SoutheastAsian) | None => BleuTokenizer::V13a,
        }
    }

    /// `text` with white space between the tokens.
    pub(super) fn apply(self, text: &str) -> String {
        match self {
            BleuTokenizer::V13a => western::tokenize(text),
            BleuTokenizer::International => international::tokenize(text),
            BleuTokenizer::Chinese => chinese::tokenize(text),
            BleuTokenizer::Character => space_around(text, |c| !is_space(c)),
            BleuTokenizer::None => text.to_owned(),
        }
    }
}

/// Inserts spaces around each character for which `is_token` is true.
fn space_around(text: &str, is_token: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    for c in text.chars() {
        if is_token(c) {
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
    fn chinese_texts_are_tokenized_by_character() {
        for (text, suited) in [
            ("一辆 SUV 汽车停在路边", BleuTokenizer::Chinese),
            ("the word 车 means car", BleuTokenizer::V13a),
            ("123", BleuTokenizer::V13a),
        ] {
            assert_eq!(BleuTokenizer::suited_to([text].into_iter()), suited);
        }
    }

    fn tokens(tokenize: BleuTokenizer, text: &str) -> Vec<String> {
        words(&tokenize.apply(text)).map(str::to_owned).collect()
    }

    #[test]
    fn names_survive_a_round_trip() {
        for tokenize in BleuTokenizer::ALL {
            assert_eq!(BleuTokenizer::named(tokenize.name()), Some(tokenize));
        }
        assert_eq!(BleuTokenizer::named("14a"), None);
    }

    #[test]
    fn numbers_keep_points_and_commas() {
        let text = "It's 1,234.5 (or -3.0), i.e. ,,5 5-6 &amp;lt;";
        assert_eq!(
            tokens(BleuTokenizer::V13a, text).join(" "),
            "It's 1,234.5 ( or -3.0 ) , i . e . , ,5 5 - 6 <"
        );
    }

    #[test]
    fn punctuation_of_all_scripts_is_split_off() {
        assert_eq!(
            tokens(BleuTokenizer::International, "3.5 €, «так»। 2019."),
            ["3.5", "€", ",", "«", "так", "»", "।", "2019."]
        );
    }

    #[test]
    fn chinese_is_split_into_characters_and_the_rest_into_words() {
        assert_eq!(
            tokens(BleuTokenizer::Chinese, "你好,world!“好”ok"),
            ["你", "好", ",", "world", "!", "“", "好", "”", "ok"]
        );
        assert_eq!(tokens(BleuTokenizer::Character, "a 你b"), ["a", "你", "b"]);
        assert_eq!(tokens(BleuTokenizer::None, "a, b"), ["a,", "b"]);
    }
}
