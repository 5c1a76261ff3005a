//! The words, as tables. A word has one translation in every position, so that both directions are functions. The exception is
//! *solution*, which has three: 解决方案, 解 and 溶液. The words around it decide, and there is always one that does.
//!
//! Nouns are grouped into classes. A class defines which adjectives, verbs and places go with its nouns: an honest
//! doctor, but no honest bicycle.

mod adjectives;
mod classes;
mod culture;
mod function_words;
mod household;
mod living;
mod machines;
mod science;
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
    /// Its form after a modifier of two syllables: 车 alone, 汽车 in 电动汽车.
    pub(super) compound: &'static str,
    pub(super) singular: &'static str,
    pub(super) plural: &'static str,
}

/// An adjective that can also be a predicate: 昂贵的车, 这辆车很贵.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Opinion {
    pub(super) attributive: &'static str,
    pub(super) predicative: &'static str,
    pub(super) english: &'static str,
}

/// A word that only precedes nouns.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Modifier {
    pub(super) chinese: &'static str,
    pub(super) english: &'static str,
}

/// A verb whose object is a noun of the class.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Verb {
    pub(super) chinese: &'static str,
    pub(super) base: &'static str,
    pub(super) past: &'static str,
    pub(super) aspect: Aspect,
}

/// Whether the verb has a progressive form.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Aspect {
    /// It takes time and can be wanted; with its English form in -ing.
    Action(&'static str),
    /// It happens: see, find. Used in the past only.
    Event,
}

/// A verb that describes a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Like,
    Need,
    Have,
}

/// Nouns that take the same adjectives, verbs and places.
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
    pub(super) senses: Senses,
}

/// Whether the English nouns of a class have other translations in other classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Senses {
    /// This one alone, or this one unless a word of another class decides otherwise.
    Usual,
    /// Others too: a kind or a verb, which no other class of the noun has, must be beside it.
    Marked,
}

/// What a noun may be in a sentence besides an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// It can be owned and bought.
    Goods,
    /// It can be owned but not bought.
    Belonging,
    /// It cannot be owned: a river, a hospital.
    Unowned,
    /// A person.
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
