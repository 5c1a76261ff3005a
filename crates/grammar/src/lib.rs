//! A synthetic grammar of aligned Chinese–English phrases, for the demo: it needs no corpus and generates any
//! number of pairs.
//!
//! ```text
//! 一套自动驾驶解决方案           an autonomous driving solution
//! 三辆红色的新车                 three new red cars
//! 我昨天买的那本书很有趣。       The book that I bought yesterday is interesting.
//! ```
//!
//! Translating it requires attention. English chooses a or an by the sound of the next word, wherever that is
//! in the Chinese; Chinese chooses the measure word (套, 辆, 本) by the noun at the other end of the phrase;
//! adjectives and whole relative clauses are reordered. It is also learnable: every word has one translation
//! in its context, and number and tense are always marked, so each direction is a function and a model can be
//! correct on every phrase. One English word is ambiguous: a *solution* is 解决方案, 解 or 溶液, depending on the
//! adjective or verb next to it ([`SENSES`]).
//!
//! Phrases are lower case without a full stop; sentences begin with a capital and end in `.` or `?`, in
//! Chinese in `。` or `？`.

mod article;
mod clause;
mod dice;
mod lexicon;
mod noun_phrase;
mod predicate;
mod relative;
mod split;

use std::collections::HashSet;

use self::clause::{Entry, clause, span};
use self::dice::Dice;
use self::lexicon::LEXICON;
use self::noun_phrase::{Determiner, NounPhrase};
pub use self::split::{LengthClass, Split};

/// The running example. It and every phrase that contains it are excluded from training.
pub const EXAMPLE: (&str, &str) = ("一套自动驾驶解决方案", "an autonomous driving solution");

/// One word in three senses: Chinese, English, the sense, and the words that decide it. Also excluded from
/// training.
pub const SENSES: [Sense; 5] = [
    Sense {
        chinese: EXAMPLE.0, english: EXAMPLE.1, noun: "解决方案", deciding: &["autonomous", "driving"]
    },
    Sense {
        chinese: "一个近似解",
        english: "an approximate solution",
        noun: "解",
        deciding: &["approximate"],
    },
    Sense {
        chinese: "一种酸性溶液", english: "an acidic solution", noun: "溶液", deciding: &["acidic"]
    },
    Sense {
        chinese: "她计算了一个解。",
        english: "She calculated a solution.",
        noun: "解",
        deciding: &["calculated"],
    },
    Sense {
        chinese: "她稀释了一种溶液。",
        english: "She diluted a solution.",
        noun: "溶液",
        deciding: &["diluted"],
    },
];

/// A phrase with *solution*, whose other words decide the sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sense {
    /// The phrase in Chinese.
    pub chinese: &'static str,
    /// The phrase in English.
    pub english: &'static str,
    /// The Chinese translation of *solution*.
    pub noun: &'static str,
    /// The words that decide the sense.
    pub deciding: &'static [&'static str],
}

/// After this many draws in a row without a new phrase, the grammar is exhausted.
const MAX_REPEATED_DRAWS: usize = 10_000;

/// A phrase in both languages.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Phrase {
    /// Without spaces, as Chinese is written.
    pub chinese: String,
    /// The English phrase.
    pub english: String,
    /// The words of `chinese`, with punctuation as separate words.
    pub chinese_words: Vec<&'static str>,
}

/// The grammar.
#[derive(Clone, Debug)]
pub struct Grammar {
    entries: Vec<Entry>,
}

impl Default for Grammar {
    fn default() -> Grammar {
        Grammar::new()
    }
}

impl Grammar {
    /// The built-in grammar.
    pub fn new() -> Grammar {
        let classes = LEXICON.classes.iter().flat_map(|class| std::iter::repeat_n(class, class.times));
        let entries = classes.flat_map(|class| class.nouns.iter().map(move |noun| (class, noun)));
        Grammar { entries: entries.collect() }
    }

    /// Distinct phrases in an order determined by the seed: millions, until hardly any new ones are drawn.
    pub fn phrases(&self, seed: u64) -> impl Iterator<Item = Phrase> + '_ {
        let mut seen = HashSet::new();
        let mut number = 0;
        std::iter::from_fn(move || {
            for _ in 0..MAX_REPEATED_DRAWS {
                number += 1;
                let phrase = self.draw(&mut Dice::new(seed, number));
                if seen.insert(split::fingerprint(&phrase.chinese)) {
                    return Some(phrase);
                }
            }
            None
        })
    }

    fn draw(&self, dice: &mut Dice) -> Phrase {
        match dice.weighted(&[18, 6, 3, 26, 1]) {
            0 => self.noun_phrase(dice),
            1 => self.list(2, dice),
            2 => self.list(3, dice),
            3 => clause(self.entry(dice), dice),
            _ => {
                let (words, english) = span(dice);
                Draft::new().chinese(&words).phrase(english)
            }
        }
        .finish()
    }

    fn entry(&self, dice: &mut Dice) -> Entry {
        self.entries[dice.below(self.entries.len())]
    }

    fn part(&self, dice: &mut Dice) -> NounPhrase {
        let (class, noun) = self.entry(dice);
        match dice.weighted(&[6, 4, 1]) {
            0 => NounPhrase::indefinite(class, noun, dice),
            1 => NounPhrase::definite(class, noun, dice),
            _ => NounPhrase::described(Determiner::Every, class, noun, dice),
        }
    }

    fn noun_phrase(&self, dice: &mut Dice) -> Draft {
        let part = self.part(dice);
        Draft::new().chinese(&part.chinese()).phrase(part.english())
    }

    /// 一辆车、三本书和一把雨伞: a car, three books and an umbrella.
    fn list(&self, parts: usize, dice: &mut Dice) -> Draft {
        let mut draft = Draft::new();
        let mut english = String::new();
        for place in 0..parts {
            let part = self.part(dice);
            let (mark, word) = match parts - place {
                _ if place == 0 => (&[][..], ""),
                1 => (&["和"][..], " and "),
                _ => (&["、"][..], ", "),
            };
            draft = draft.chinese(mark).chinese(&part.chinese());
            english += word;
            english += &part.english();
        }
        draft.phrase(english)
    }
}

/// A phrase under construction.
struct Draft {
    words: Vec<&'static str>,
    english: String,
}

impl Draft {
    fn new() -> Draft {
        Draft { words: Vec::new(), english: String::new() }
    }

    fn chinese(mut self, words: &[&'static str]) -> Draft {
        self.words.extend(words);
        self
    }

    fn phrase(self, english: String) -> Draft {
        Draft { english, ..self }
    }

    fn statement(self, english: String) -> Draft {
        self.chinese(&["。"]).sentence(&english, '.')
    }

    fn question(self, english: String) -> Draft {
        self.chinese(&["吗", "？"]).sentence(&english, '?')
    }

    fn sentence(self, english: &str, mark: char) -> Draft {
        let mut rest = english.chars();
        let first = rest.next().map(|first| first.to_ascii_uppercase());
        Draft { english: first.into_iter().chain(rest).chain([mark]).collect(), ..self }
    }

    fn finish(self) -> Phrase {
        Phrase { chinese: self.words.concat(), english: self.english, chinese_words: self.words }
    }
}

#[cfg(test)]
mod tests;
