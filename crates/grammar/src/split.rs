//! What is trained on and what is asked: disjoint, whatever the seed and the order.

use std::fmt;

use super::{EXAMPLE, Grammar, Phrase};

/// One phrase of so many is never trained on.
const HELD_OUT: u64 = 16;

/// Phrases to learn and phrases to be asked.
#[derive(Clone, Debug)]
pub struct Split {
    /// To learn from.
    pub train: Vec<Phrase>,
    /// Never learned from.
    pub test: Vec<Phrase>,
}

/// How long a phrase is, in Chinese words.
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
    /// `train` phrases to learn from and `test` phrases to be asked, drawn under `seed`.
    ///
    /// Which side a phrase may be on is decided by the phrase alone: no seed ever trains on what another asks.
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
    /// Whether this phrase is kept for the test.
    pub fn is_held_out(&self) -> bool {
        self.chinese.contains(EXAMPLE.0) || fingerprint(&self.chinese).is_multiple_of(HELD_OUT)
    }

    /// How long it is.
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
