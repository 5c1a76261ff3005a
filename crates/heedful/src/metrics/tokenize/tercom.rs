//! Tercom's tokenizer, which TER uses.

use super::super::case::Case;
use super::{space_around, western};

/// The settings of the tokenizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Tercom {
    pub(in super::super) normalization: TercomNormalization,
    pub(in super::super) punctuation: Punctuation,
    pub(in super::super) asian: AsianText,
    pub(in super::super) case: Case,
}

/// Whether text is tokenized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TercomNormalization {
    /// Text is split at white space only.
    Off,
    /// Punctuation is split off and entities are decoded.
    On,
}

/// How punctuation is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Punctuation {
    /// It counts as words.
    Kept,
    /// It is removed.
    Removed,
}

/// How East Asian characters are treated when text is normalized or punctuation is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsianText {
    /// They are treated as letters.
    Plain,
    /// Each ideograph is a word, and full-width punctuation is punctuation.
    Split,
}

impl Tercom {
    /// `text` with white space between the words.
    pub(in super::super) fn apply(self, text: &str) -> String {
        let mut text = self.case.apply(text).into_owned();
        if self.normalization == TercomNormalization::On {
            text = normalize(&text);
            if self.asian == AsianText::Split {
                text = space_around(&text, |c| is_ideograph(c) || is_asian_punctuation(c));
            }
        }
        if self.punctuation == Punctuation::Removed {
            text.retain(|c| !matches!(c, '.' | ',' | '?' | ':' | ';' | '!' | '"' | '(' | ')'));
            if self.asian == AsianText::Split {
                text.retain(|c| !is_asian_punctuation(c));
            }
        }
        text
    }
}

/// Like `13a`, but possessives are separate words.
fn normalize(text: &str) -> String {
    let joined = text.replace("\n-", "").replace('\n', " ");
    let separated = western::separate_symbols(format!(" {} ", western::unescape(joined)));
    western::separate_numbers(separated.replace("'s ", " 's "))
}

/// Kana is not included: sacreBLEU's rules for kana never match, because they require a line that begins and
/// ends with kana after spaces were added at both ends.
fn is_ideograph(c: char) -> bool {
    matches!(u32::from(c),
        0x2e80..=0x2eff
        | 0x31c0..=0x31ef
        | 0x3200..=0x4dbf
        | 0x4e00..=0x9fff
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe4f
    )
}

fn is_asian_punctuation(c: char) -> bool {
    matches!(u32::from(c),
        0x3001 | 0x3002 | 0x3008..=0x3011 | 0x3014..=0x301f | 0x30fb | 0xff61..=0xff65
        // Full-width forms.
        | 0xff01 | 0xff02 | 0xff08 | 0xff09 | 0xff0c | 0xff0e | 0xff1a | 0xff1b | 0xff1f
    )
}
