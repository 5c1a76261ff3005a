//! Normalization and pre-tokenization: how text is prepared and split into words, before a vocabulary
//! splits words into pieces. The rules are written into tokenizer.json, so that other programs split in the
//! same places.
//!
//! ```text
//! text              "Hallo Welt, 你好"
//! a space before    " Hallo Welt, 你好"                the first word is the same piece as in the middle of a line
//! split into words  " Hallo" " Welt" "," " " "你好"    concatenated they are the text: nothing is replaced
//! pieces            " Hal" "lo" " Welt" "," " " "你好"
//! ```
//!
//! The space belongs to the word after it. Spaces are not replaced by a special character, so nothing needs
//! escaping, and decoding joins the pieces and removes the first space. No space is put before Chinese and
//! Japanese text.
//!
//! A `<` always ends a word, so that no text is encoded as `<eos>` or as the byte token `<0x0A>`.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;
use serde::{Deserialize, Serialize};
use tokenizers::decoders::DecoderWrapper;
use tokenizers::decoders::byte_fallback::ByteFallback;
use tokenizers::decoders::fuse::Fuse;
use tokenizers::decoders::sequence::Sequence as DecoderSequence;
use tokenizers::decoders::strip::Strip;
use tokenizers::normalizers::replace::{Replace, ReplacePattern};
use tokenizers::normalizers::{NFC, NFKC, NormalizerWrapper, Prepend, Sequence as NormalizerSequence};
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::split::{Split as SplitAt, SplitPattern};
use tokenizers::tokenizer::SplitDelimiterBehavior;
use unicode_normalization_alignments::UnicodeNormalization;

/// The Unicode normalization that is applied first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NormalizationForm {
    /// None: decoding restores every text exactly.
    #[default]
    None,
    /// Composed characters: é is one character, however it was typed.
    Nfc,
    /// Composed characters, and compatibility characters made equal: ﬁ becomes fi, full-width Ａ becomes A.
    /// Decoding does not restore the original text.
    Nfkc,
}

/// Where words end; pieces never cross the end of a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Boundaries {
    /// Before spaces, and between letters, digits and punctuation; each digit and each punctuation mark is
    /// a word. `house` and `house,` share a piece, which small corpora need.
    #[default]
    Words,
    /// Before spaces only.
    Spaces,
}

/// How the rules split text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SplitMode {
    Words,
    Spaces,
    /// As `Words`, but numbers stay whole and each Chinese or Japanese character is a word.
    WholeWords,
    Characters,
}

const SPACE: char = ' ';
/// Scripts without spaces whose characters count as letters, and 々 and 〇.
const UNSPACED: &str = r"\x{3005}-\x{3007}\x{3040}-\x{30FF}\x{31F0}-\x{31FF}\x{3400}-\x{4DBF}\x{4E00}-\x{9FFF}\x{F900}-\x{FAFF}\x{FF66}-\x{FF9F}\x{20000}-\x{3FFFF}";
/// Their punctuation and full-width forms, which are not preceded by a space either.
const UNSPACED_PUNCTUATION: &str = r"\x{3000}-\x{303F}\x{FF00}-\x{FFEF}";

/// The characters before which no space is inserted, as ranges for a regular expression's character class.
pub(super) fn unspaced_characters() -> String {
    format!("{UNSPACED}{UNSPACED_PUNCTUATION}")
}

/// Whether a character belongs to a script without spaces, or to its punctuation.
pub(super) fn is_unspaced(character: char) -> bool {
    static PATTERN: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(&format!("[{}]", unspaced_characters())).expect("the pattern is fixed and tested")
    });
    PATTERN.is_match(character.encode_utf8(&mut [0; 4]))
}

/// Normalization and pre-tokenization.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    normalization: NormalizationForm,
    split: SplitMode,
    word: Regex,
    first_needs_no_space: Regex,
}

impl Rules {
    pub(super) fn new(normalization: NormalizationForm, split: SplitMode) -> Rules {
        let compile = |pattern: &str| Regex::new(pattern).expect("the patterns are fixed and tested");
        Rules {
            normalization,
            split,
            word: compile(&split.pattern()),
            first_needs_no_space: compile(&format!(r"\A[{}]", unspaced_characters())),
        }
    }

    /// Every combination.
    pub(super) fn all() -> impl Iterator<Item = (NormalizationForm, SplitMode)> {
        let splits = [SplitMode::Words, SplitMode::Spaces, SplitMode::WholeWords, SplitMode::Characters];
        let normalizations = [NormalizationForm::None, NormalizationForm::Nfc, NormalizationForm::Nfkc];
        normalizations.into_iter().flat_map(move |normalization| splits.map(|split| (normalization, split)))
    }

    /// Maximum factor by which normalization shrinks text, in bytes: 𝐀 has four bytes, and A has one.
    pub(super) fn max_shrink_factor(&self) -> usize {
        match self.normalization {
            NormalizationForm::None => 1,
            NormalizationForm::Nfc | NormalizationForm::Nfkc => 4,
        }
    }

    /// The normalized text.
    pub(super) fn normalize<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.normalization {
            NormalizationForm::None => text.into(),
            NormalizationForm::Nfc | NormalizationForm::Nfkc if text.is_ascii() => text.into(),
            NormalizationForm::Nfc => text.nfc().map(|(character, _)| character).collect::<String>().into(),
            NormalizationForm::Nfkc => text.nfkc().map(|(character, _)| character).collect::<String>().into(),
        }
    }

    /// The text that is split into words: normalized, with a space before it.
    pub(super) fn prepare<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let text = self.normalize(text);
        match self.split {
            SplitMode::Characters => text,
            _ if text.is_empty() || self.first_needs_no_space.is_match(&text) => text,
            _ => {
                let mut spaced = String::with_capacity(text.len() + 1);
                spaced.push(SPACE);
                spaced.push_str(&text);
                spaced.into()
            }
        }
    }

    /// The words of a prepared text; concatenated they are that text.
    pub(super) fn words<'t>(&'t self, prepared: &'t str) -> impl Iterator<Item = &'t str> {
        self.word.find_iter(prepared).map(|word| word.as_str())
    }

    /// Removes the space that [`Rules::prepare`] inserts before the text.
    pub(super) fn without_first_space(&self, mut text: String) -> String {
        if self.split != SplitMode::Characters && text.starts_with(SPACE) {
            text.remove(0);
        }
        text
    }

    pub(super) fn normalizer(&self) -> Option<NormalizerWrapper> {
        let mut steps: Vec<NormalizerWrapper> = match self.normalization {
            NormalizationForm::None => vec![],
            NormalizationForm::Nfc => vec![NFC.into()],
            NormalizationForm::Nfkc => vec![NFKC.into()],
        };
        if self.split != SplitMode::Characters {
            let unneeded = ReplacePattern::Regex(format!(r"\A (?=[{}])", unspaced_characters()));
            steps.push(Prepend::new(SPACE.to_string()).into());
            steps.push(Replace::new(unneeded, "").expect("the pattern is fixed and tested").into());
        }
        (!steps.is_empty()).then(|| NormalizerSequence::new(steps).into())
    }

    pub(super) fn pre_tokenizer(&self) -> PreTokenizerWrapper {
        let pattern = SplitPattern::Regex(self.split.pattern());
        let split = SplitAt::new(pattern, SplitDelimiterBehavior::Isolated, false);
        split.expect("the patterns are fixed and tested").into()
    }

    pub(super) fn decoder(&self) -> DecoderWrapper {
        let mut steps: Vec<DecoderWrapper> = vec![ByteFallback::new().into(), Fuse::new().into()];
        if self.split != SplitMode::Characters {
            steps.push(Strip::new(SPACE, 1, 0).into());
        }
        DecoderSequence::new(steps).into()
    }
}

impl SplitMode {
    /// Alternatives that together match every character. Written so that Rust's engine and Oniguruma, which
    /// the Python package uses, agree: no look-around, and no `\s`.
    fn pattern(self) -> String {
        let letters = format!(r"[\p{{L}}\p{{M}}&&[^{UNSPACED}]]+");
        let others = r"[^ \p{L}\p{M}\p{N}]";
        match self {
            SplitMode::Words => format!(r" ?{letters}|[{UNSPACED}]+| ?\p{{N}}| ?{others}| "),
            SplitMode::Spaces => format!(r" ?<| ?[^ <{UNSPACED}]+|[{UNSPACED}]+| "),
            SplitMode::WholeWords => format!(r" ?{letters}|[{UNSPACED}]| ?\p{{N}}+| ?{others}| "),
            SplitMode::Characters => r"[\x{0}-\x{10FFFF}]".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(split: SplitMode, text: &str) -> Vec<String> {
        let rules = Rules::new(NormalizationForm::None, split);
        let prepared = rules.prepare(text);
        rules.words(&prepared).map(str::to_owned).collect()
    }

    #[test]
    fn letters_digits_and_punctuation_are_split() {
        assert_eq!(
            words(SplitMode::Words, "Hallo Welt,  1984: 你好，世界 x"),
            [" Hallo", " Welt", ",", " ", " 1", "9", "8", "4", ":", " ", "你好", "，", "世界", " x"]
        );
        assert_eq!(words(SplitMode::WholeWords, "1984 你好"), [" 1984", " ", "你", "好"]);
        assert_eq!(words(SplitMode::Spaces, "it's <b> 你好!"), [" it's", " <", "b>", " ", "你好", "!"]);
        assert_eq!(words(SplitMode::Characters, "a 你"), ["a", " ", "你"]);
    }

    #[test]
    fn combining_marks_stay_with_their_letters() {
        assert_eq!(words(SplitMode::Words, "e\u{301}te\u{301} नमस्ते"), [" e\u{301}te\u{301}", " नमस्ते"]);
    }

    #[test]
    fn chinese_gets_no_space_before_it() {
        assert_eq!(words(SplitMode::Words, "一套自动驾驶"), ["一套自动驾驶"]);
        assert_eq!(words(SplitMode::Words, " 一"), [" ", " ", "一"]);
    }

    #[test]
    fn text_like_a_special_token_is_split_after_the_first_character() {
        for (_, split) in Rules::all() {
            for text in ["<eos>", "x<0x41>", " <unk>", "<<pad>"] {
                let words = words(split, text);
                let is_split = words.iter().all(|word| !word.contains('<') || word.ends_with('<'));
                assert!(is_split, "{split:?}: {words:?}");
            }
        }
    }
}
