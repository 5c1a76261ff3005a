//! The lexicon. A word has one translation in every position, so that both directions are functions. The
//! exception is *solution* with three: 解决方案, 解 and 溶液. A word next to it always decides the sense.
//!
//! Nouns are grouped into classes. A class defines which adjectives, verbs and places go with its nouns: an
//! honest doctor, but no honest bicycle.

mod function_words;

use std::sync::LazyLock;

pub(super) use function_words::{
    DURATIONS, Duration, NUMERALS, Numeral, OWNERS, Owner, PASTIMES, SMALL_NUMERALS, SUBJECTS, Subject,
};

/// The words of `words.txt`, which documents its format.
pub(super) static LEXICON: LazyLock<Lexicon> = LazyLock::new(|| {
    let mut lexicon = Lexicon::default();
    for line in include_str!("words.txt").lines() {
        lexicon.read(line);
    }
    lexicon
});

/// Words, and the noun classes that they combine with.
#[derive(Debug, Default)]
pub(super) struct Lexicon {
    opinions: Vec<Opinion>,
    modifiers: Vec<Modifier>,
    verbs: Vec<Verb>,
    pub(super) classes: Vec<Class>,
}

/// A noun with the measure word that counts it.
#[derive(Debug)]
pub(super) struct Noun {
    pub(super) measure: &'static str,
    pub(super) chinese: &'static str,
    /// The form after a modifier of two syllables: 车 alone, 汽车 in 电动汽车.
    pub(super) compound: &'static str,
    pub(super) singular: &'static str,
    pub(super) plural: &'static str,
}

/// An adjective that can also be a predicate: 昂贵的车, 这辆车很贵.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Opinion {
    pub(super) attributive: &'static str,
    pub(super) predicative: &'static str,
    pub(super) english: &'static str,
}

/// A word that only precedes nouns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Modifier {
    pub(super) chinese: &'static str,
    pub(super) english: &'static str,
}

/// A verb whose object is a noun of the class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verb {
    pub(super) chinese: &'static str,
    pub(super) base: &'static str,
    pub(super) past: &'static str,
    pub(super) aspect: Aspect,
}

/// Whether the verb has a progressive form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aspect {
    /// An activity that takes time and can be wanted, with its English -ing form.
    Action(&'static str),
    /// An event, such as see or find. Used in the past only.
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
#[derive(Debug, Default)]
pub(super) struct Class {
    pub(super) nouns: Vec<Noun>,
    pub(super) opinions: Vec<Opinion>,
    /// Sizes and ages; a phrase has at most one of them. One syllable each in Chinese, next to the noun.
    pub(super) statures: Vec<Modifier>,
    pub(super) colours: Vec<Modifier>,
    /// Countries and kinds; a phrase has at most one of them. Part of the name in Chinese, without 的.
    pub(super) kinds: Vec<Modifier>,
    pub(super) verbs: Vec<Verb>,
    pub(super) states: Vec<State>,
    pub(super) places: Vec<Modifier>,
    pub(super) role: Role,
    pub(super) senses: Senses,
    /// The relative frequency with which its nouns are drawn.
    pub(super) times: usize,
}

/// Whether the English nouns of a class have other translations in other classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Senses {
    /// One translation, or the default unless a word of another class decides otherwise.
    #[default]
    Usual,
    /// Several translations: a kind or a verb that only this class of the noun has must be next to it.
    Marked,
}

/// The roles that a noun may have besides object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Role {
    /// It can be owned and bought.
    Goods,
    /// It can be owned but not bought.
    Belonging,
    /// It cannot be owned: a river, a hospital.
    #[default]
    Unowned,
    /// A person.
    Person,
}

impl Class {
    pub(super) fn has_owner(&self) -> bool {
        self.role != Role::Unowned
    }
}

impl Lexicon {
    /// The opinion of this English word.
    pub(super) fn opinion(&self, english: &'static str) -> Opinion {
        chosen(&self.opinions, &[english], |opinion| opinion.english)[0]
    }

    fn read(&mut self, line: &'static str) {
        let (keyword, rest) = line.split_once(' ').unwrap_or_default();
        let words: Vec<&str> = rest.split(',').map(str::trim).collect();
        match (keyword, &words[..]) {
            ("" | "#", _) => {}
            ("opinion", &[chinese, english]) => {
                let (attributive, predicative) = forms(chinese);
                self.opinions.push(Opinion { attributive, predicative, english });
            }
            ("action", &[chinese, base, past, progressive]) => {
                self.verbs.push(Verb { chinese, base, past, aspect: Aspect::Action(progressive) });
            }
            ("event", &[chinese, base, past]) => {
                self.verbs.push(Verb { chinese, base, past, aspect: Aspect::Event });
            }
            ("modifier", &[chinese, english]) => self.modifiers.push(Modifier { chinese, english }),
            ("class", _) => self.classes.push(Class { times: 1, ..Class::default() }),
            (keyword, words) => self.describe_class(keyword, words),
        }
    }

    /// Parses a line below that of its class.
    fn describe_class(&mut self, keyword: &str, words: &[&'static str]) {
        let class = self.classes.last_mut().expect("words.txt describes a class below its name");
        let modifiers = || chosen(&self.modifiers, words, |modifier| modifier.english);
        match (keyword, words) {
            ("noun", &[measure, chinese, singular, plural]) => {
                let (chinese, compound) = forms(chinese);
                class.nouns.push(Noun { measure, chinese, compound, singular, plural });
            }
            ("opinions", _) => class.opinions = chosen(&self.opinions, words, |opinion| opinion.english),
            ("statures", _) => class.statures = modifiers(),
            ("colours", _) => class.colours = modifiers(),
            ("kinds", _) => class.kinds.extend(modifiers()),
            ("places", _) => class.places = modifiers(),
            ("verbs", _) => class.verbs = chosen(&self.verbs, words, |verb| verb.base),
            ("states", _) => class.states = words.iter().map(|word| State::named(word)).collect(),
            ("role", [role]) => class.role = Role::named(role),
            ("senses", ["marked"]) => class.senses = Senses::Marked,
            ("times", [times]) => class.times = times.parse().expect("words.txt has numbers for times"),
            _ => panic!("words.txt has a line that is not understood: {keyword} {words:?}"),
        }
    }
}

impl State {
    fn named(name: &str) -> State {
        match name {
            "like" => State::Like,
            "need" => State::Need,
            "have" => State::Have,
            _ => panic!("words.txt names no state: {name}"),
        }
    }
}

impl Role {
    fn named(name: &str) -> Role {
        match name {
            "goods" => Role::Goods,
            "belonging" => Role::Belonging,
            "unowned" => Role::Unowned,
            "person" => Role::Person,
            _ => panic!("words.txt names no role: {name}"),
        }
    }
}

/// Both forms of a word, separated by a slash if they differ.
fn forms(word: &'static str) -> (&'static str, &'static str) {
    word.split_once('/').unwrap_or((word, word))
}

/// The items of `all` with these names.
fn chosen<T: Copy>(all: &[T], names: &[&str], name_of: impl Fn(&T) -> &str) -> Vec<T> {
    let found = |name: &&str| all.iter().find(|word| name_of(word) == *name).copied();
    names.iter().map(|name| found(name).unwrap_or_else(|| panic!("words.txt has no {name}"))).collect()
}
