//! The direction of translation, and the words of the example that depend on each other.

use std::fmt;

use anyhow::{Result, bail};
use clap::ValueEnum;
use heedful::metrics::BleuTokenizer;
use heedful_grammar::{EXAMPLE, Phrase};

/// The direction of translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) enum Direction {
    ChineseToEnglish,
    EnglishToChinese,
}

/// The directions of `--direction`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::commands) enum DirectionChoice {
    /// Chinese to English
    ZhEn,
    /// English to Chinese
    EnZh,
    /// One model for each direction, one after the other
    Both,
}

/// A word of a translation that depends on a certain word of the source, near or far.
pub(in crate::commands) struct Dependency {
    /// The phrase to translate.
    pub(in crate::commands) source: &'static str,
    /// The word of the translation.
    pub(in crate::commands) word: &'static str,
    /// The word of the source that decides it.
    pub(in crate::commands) depends_on: &'static str,
    pub(in crate::commands) why: &'static str,
}

impl DirectionChoice {
    pub(in crate::commands) fn directions(self) -> &'static [Direction] {
        match self {
            DirectionChoice::ZhEn => &[Direction::ChineseToEnglish],
            DirectionChoice::EnZh => &[Direction::EnglishToChinese],
            DirectionChoice::Both => &Direction::BOTH,
        }
    }
}

impl Direction {
    pub(in crate::commands) const BOTH: [Direction; 2] =
        [Direction::ChineseToEnglish, Direction::EnglishToChinese];

    /// Name of the word class that depends on another word of the phrase.
    pub(in crate::commands) fn decided(self) -> &'static str {
        match self {
            Direction::ChineseToEnglish => "the article",
            Direction::EnglishToChinese => "the measure word",
        }
    }

    /// For file names: `zh-en`.
    pub(in crate::commands) fn name(self) -> &'static str {
        match self {
            Direction::ChineseToEnglish => "zh-en",
            Direction::EnglishToChinese => "en-zh",
        }
    }

    /// The file extensions of source and target.
    pub(in crate::commands) fn extensions(self) -> [&'static str; 2] {
        self.ordered("zh", "en")
    }

    pub(in crate::commands) fn pair(self, phrase: &Phrase) -> [&str; 2] {
        self.ordered(&phrase.chinese, &phrase.english)
    }

    /// The running example.
    pub(in crate::commands) fn example(self) -> [&'static str; 2] {
        self.ordered(EXAMPLE.0, EXAMPLE.1)
    }

    fn ordered<T>(self, chinese: T, english: T) -> [T; 2] {
        match self {
            Direction::ChineseToEnglish => [chinese, english],
            Direction::EnglishToChinese => [english, chinese],
        }
    }

    /// The tokenizer of BLEU for the target language.
    pub(in crate::commands) fn tokenize(self) -> BleuTokenizer {
        match self {
            Direction::ChineseToEnglish => BleuTokenizer::V13a,
            Direction::EnglishToChinese => BleuTokenizer::Chinese,
        }
    }

    /// The dependency in the running example.
    pub(in crate::commands) fn dependency(self) -> Dependency {
        let source = self.example()[0];
        match self {
            Direction::ChineseToEnglish => Dependency {
                source,
                word: "an",
                depends_on: "自动驾驶",
                why: "“an” stands before a vowel: the next word, the translation of 自动驾驶, decides",
            },
            Direction::EnglishToChinese => Dependency {
                source,
                word: "套",
                depends_on: "solution",
                why: "the measure word is 套 for a solution, 辆 for a car, 本 for a book: the noun at the end decides",
            },
        }
    }

    /// The running example, and a phrase that differs in the deciding word.
    pub(in crate::commands) fn contrast(self) -> [Dependency; 2] {
        let other = match self {
            Direction::ChineseToEnglish => Dependency {
                source: "一套新解决方案",
                word: "a",
                depends_on: "新",
                why: "the same 一, but new begins with a consonant",
            },
            Direction::EnglishToChinese => Dependency {
                source: "an autonomous driving car",
                word: "辆",
                depends_on: "car",
                why: "the same words up to the last one: the measure word of a car is 辆",
            },
        };
        [self.dependency(), other]
    }

    /// The direction whose source language `text` is written in.
    pub(in crate::commands) fn of_text(text: &str) -> Result<Direction> {
        if text.trim().is_empty() {
            bail!("--text is empty: give a phrase such as {}", EXAMPLE.0);
        }
        let is_chinese = |c: char| matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}');
        Ok(match text.chars().any(is_chinese) {
            true => Direction::ChineseToEnglish,
            false => Direction::EnglishToChinese,
        })
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [source, target] = self.ordered("Chinese", "English");
        write!(f, "{source} → {target}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_of_a_text_decides_its_direction() {
        let direction = |text| Direction::of_text(text).ok();
        assert_eq!(direction("一辆 SUV"), Some(Direction::ChineseToEnglish));
        assert_eq!(direction("a red car"), Some(Direction::EnglishToChinese));
        assert_eq!(direction(" \t"), None);
    }

    #[test]
    fn dependencies_are_between_words_of_the_example() {
        for direction in DirectionChoice::Both.directions() {
            let ([_, target], dependency) = (direction.example(), direction.dependency());
            let Dependency { source, word, depends_on, .. } = dependency;
            assert!(source.contains(depends_on) && target.contains(word), "{direction}");
        }
    }
}
