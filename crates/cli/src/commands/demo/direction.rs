//! From which language into which.

use std::fmt;

use anyhow::{Result, bail};
use clap::ValueEnum;
use heedful::metrics::Tokenize;
use heedful_grammar::{EXAMPLE, Phrase};

/// From which language into which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) enum Direction {
    ChineseToEnglish,
    EnglishToChinese,
}

/// What the user asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::commands) enum Wanted {
    /// Chinese to English
    ZhEn,
    /// English to Chinese
    EnZh,
    /// One model for each, one after the other
    Both,
}

/// A word of a phrase whose choice depends on another word of the source, far away or not.
pub(in crate::commands) struct Lesson {
    /// The phrase that is translated.
    pub(in crate::commands) source: &'static str,
    /// What is said.
    pub(in crate::commands) word: &'static str,
    /// What one must have read to say it.
    pub(in crate::commands) looks_at: &'static str,
    pub(in crate::commands) why: &'static str,
}

impl Wanted {
    pub(in crate::commands) fn directions(self) -> &'static [Direction] {
        match self {
            Wanted::ZhEn => &[Direction::ChineseToEnglish],
            Wanted::EnZh => &[Direction::EnglishToChinese],
            Wanted::Both => &Direction::BOTH,
        }
    }
}

impl Direction {
    pub(in crate::commands) const BOTH: [Direction; 2] =
        [Direction::ChineseToEnglish, Direction::EnglishToChinese];

    /// For file names: `zh-en`.
    pub(in crate::commands) fn name(self) -> &'static str {
        match self {
            Direction::ChineseToEnglish => "zh-en",
            Direction::EnglishToChinese => "en-zh",
        }
    }

    /// The endings of the files of source and target.
    pub(in crate::commands) fn endings(self) -> [&'static str; 2] {
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

    /// How BLEU counts the words of the target.
    pub(in crate::commands) fn tokenize(self) -> Tokenize {
        match self {
            Direction::ChineseToEnglish => Tokenize::V13a,
            Direction::EnglishToChinese => Tokenize::Chinese,
        }
    }

    /// What the example teaches.
    pub(in crate::commands) fn lesson(self) -> Lesson {
        let source = self.example()[0];
        match self {
            Direction::ChineseToEnglish => Lesson {
                source,
                word: "an",
                looks_at: "自动驾驶",
                why: "whether English says a or an depends on the word that follows, which 自动驾驶 decides",
            },
            Direction::EnglishToChinese => Lesson {
                source,
                word: "套",
                looks_at: "solution",
                why: "a solution is counted by 套, a car by 辆, a book by 本: the noun at the end decides",
            },
        }
    }

    /// The example, and a phrase beside it in which one word decides otherwise.
    pub(in crate::commands) fn lessons(self) -> [Lesson; 2] {
        let contrast = match self {
            Direction::ChineseToEnglish => Lesson {
                source: "一套新解决方案",
                word: "a",
                looks_at: "新",
                why: "the same 一, but new begins with a consonant",
            },
            Direction::EnglishToChinese => Lesson {
                source: "an autonomous driving car",
                word: "辆",
                looks_at: "car",
                why: "the same words up to the last one: a car is counted by 辆",
            },
        };
        [self.lesson(), contrast]
    }

    /// The direction that reads `text`.
    pub(in crate::commands) fn of_text(text: &str) -> Result<Direction> {
        if text.trim().is_empty() {
            bail!("--text is empty: give it a phrase such as {}", EXAMPLE.0);
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
    fn text_tells_its_direction() {
        let direction = |text| Direction::of_text(text).ok();
        assert_eq!(direction("一辆 SUV"), Some(Direction::ChineseToEnglish));
        assert_eq!(direction("a red car"), Some(Direction::EnglishToChinese));
        assert_eq!(direction(" \t"), None);
    }

    #[test]
    fn lessons_are_about_the_example() {
        for direction in Wanted::Both.directions() {
            let ([_, target], lesson) = (direction.example(), direction.lesson());
            assert!(lesson.source.contains(lesson.looks_at) && target.contains(lesson.word), "{direction}");
        }
    }
}
