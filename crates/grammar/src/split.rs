//! Training and test sets, which are disjoint for all seeds and orders.

use std::fmt;

use super::{Grammar, Phrase, SENSES};

/// One of this many phrases is held out.
const HELD_OUT: u64 = 16;

/// Training and test phrases.
#[derive(Clone, Debug)]
pub struct Split {
    /// The training set.
    pub train: Vec<Phrase>,
    /// The test set.
    pub test: Vec<Phrase>,
}

/// The length of a phrase, in Chinese words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LengthClass {
    /// Up to 5.
    Short,
    /// 6 to 9.
    Medium,
    /// 10 to 13.
    Long,
    /// 14 and more.
    Longest,
}

impl Grammar {
    /// `train` training phrases and `test` test phrases, drawn with `seed`.
    ///
    /// Whether a phrase is held out depends on the phrase only: no seed trains on the test phrases of another
    /// seed.
    pub fn split(&self, seed: u64, train: usize, test: usize) -> Split {
        let mut split = Split { train: Vec::with_capacity(train), test: Vec::with_capacity(test) };
        for phrase in self.phrases(seed) {
            let (side, wanted) =
                if phrase.is_held_out() { (&mut split.test, test) } else { (&mut split.train, train) };
            if side.len() < wanted {
                side.push(phrase);
            }
            if split.train.len() == train && split.test.len() == test {
                break;
            }
        }
        split
    }
}

impl Phrase {
    /// Whether this phrase is held out for the test.
    pub fn is_held_out(&self) -> bool {
        SENSES.iter().any(|sense| self.chinese.contains(sense.chinese))
            || fingerprint(&self.chinese).is_multiple_of(HELD_OUT)
    }

    /// The class of its length.
    pub fn length_class(&self) -> LengthClass {
        match self.chinese_words.len() {
            ..=5 => LengthClass::Short,
            6..=9 => LengthClass::Medium,
            10..=13 => LengthClass::Long,
            _ => LengthClass::Longest,
        }
    }
}

impl LengthClass {
    /// From short to long.
    pub const ALL: [LengthClass; 4] =
        [LengthClass::Short, LengthClass::Medium, LengthClass::Long, LengthClass::Longest];
}

impl fmt::Display for LengthClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            LengthClass::Short => "up to 5 words",
            LengthClass::Medium => "6 to 9 words",
            LengthClass::Long => "10 to 13 words",
            LengthClass::Longest => "14 words and more",
        })
    }
}

/// FNV-1a with a final mix: the same on every machine and in every version.
pub(super) fn fingerprint(text: &str) -> u64 {
    let hash = text.bytes().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
    });
    let mixed = (hash ^ (hash >> 33)).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    mixed ^ (mixed >> 33)
}
