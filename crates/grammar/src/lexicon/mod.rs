//! The words, as tables. A word has one translation wherever it may stand, so that both directions are functions.
//!
//! Nouns come in classes. A class says which adjectives go with its nouns, who does what with them and where they are
//! found: an honest doctor, but no honest bicycle.

mod adjectives;
mod classes;
mod culture;
mod function_words;
mod household;
mod living;
mod machines;
mod verbs;

pub(super) use adjectives::EXPENSIVE;
pub(super) use classes::CLASSES;
pub(super) use function_words::{
    DURATIONS, Duration, NUMERALS, Numeral, OWNERS, Owner, PASTIMES, SMALL_NUMERALS, SUBJECTS, Subject,
};

/// A noun with the measure word that counts it.
#[derive(Debug)]
pub(super) struct Noun {
    pub(super) measure: &'static str,
    pub(super) chinese: &'static str,
    /// Its form right behind a longer word: 车 alone, 汽车 in 电动汽车.
    pub(super) compound: &'static str,
    pub(super) singular: &'static str,
    pub(super) plural: &'static str,
}

/// An adjective that can also be said of something: 昂贵的车, 这辆车很贵.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Opinion {
    pub(super) attributive: &'static str,
    pub(super) predicative: &'static str,
    pub(super) english: &'static str,
}

/// A word that only stands before nouns.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Modifier {
    pub(super) chinese: &'static str,
    pub(super) english: &'static str,
}

/// Something that one does with a thing.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Verb {
    pub(super) chinese: &'static str,
    pub(super) base: &'static str,
    pub(super) past: &'static str,
    pub(super) aspect: Aspect,
}

/// Whether one can be at it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Aspect {
    /// It takes time and can be wanted; in English its form with -ing.
    Action(&'static str),
    /// It happens: see, find. Only told of the past.
    Event,
}

/// What a sentence can say of how things are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Like,
    Need,
    Have,
}

/// Nouns that share their company.
#[derive(Debug)]
pub(super) struct Class {
    pub(super) nouns: &'static [Noun],
    pub(super) opinions: &'static [Opinion],
    /// Size and age, of which a phrase has one at most. One syllable each in Chinese, beside the noun.
    pub(super) statures: &'static [Modifier],
    pub(super) colours: &'static [Modifier],
    /// Countries and kinds, of which a phrase has one at most. Part of the name in Chinese: no 的.
    pub(super) kinds: &'static [Modifier],
    pub(super) verbs: &'static [Verb],
    pub(super) states: &'static [State],
    pub(super) places: &'static [Modifier],
    pub(super) role: Role,
}

/// What a noun may be in a sentence besides an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// It has an owner and a price.
    Goods,
    /// It belongs to someone, and nobody sells it.
    Belonging,
    /// Not owned by anyone who speaks here: a river, a hospital.
    Unowned,
    /// He is one, or she is.
    Person,
}

impl Class {
    pub(super) fn has_owner(&self) -> bool {
        self.role != Role::Unowned
    }
}

const fn noun(
    measure: &'static str,
    chinese: &'static str,
    singular: &'static str,
    plural: &'static str,
) -> Noun {
    Noun { measure, chinese, compound: chinese, singular, plural }
}

const fn opinion(word: &'static str, english: &'static str) -> Opinion {
    Opinion { attributive: word, predicative: word, english }
}

const fn modifier(chinese: &'static str, english: &'static str) -> Modifier {
    Modifier { chinese, english }
}

const fn action(
    chinese: &'static str,
    base: &'static str,
    past: &'static str,
    progressive: &'static str,
) -> Verb {
    Verb { chinese, base, past, aspect: Aspect::Action(progressive) }
}

const fn event(chinese: &'static str, base: &'static str, past: &'static str) -> Verb {
    Verb { chinese, base, past, aspect: Aspect::Event }
}
