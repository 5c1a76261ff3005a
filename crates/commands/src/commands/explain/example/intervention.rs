//! Ablation of the heads that show the dependency: without them, the word changes.

use std::fmt;
use std::io::Write;

use anyhow::Result;
use heedful::decode::SearchOptions;
use heedful::explain::experiments::{Ablation, Experiment, join_head_names};
use heedful::models::HeadName;
use heedful::tasks::translate::Translator;
use heedful_grammar::{Grammar, Phrase};

use crate::commands::demo::{Dependency, Direction};
use crate::progress::{Bar, Verbosity};

/// Seed of the phrases for ablation: different from the seeds of demos.
const SEED: u64 = 0x5eed;

/// Number of phrases used to find the deciding heads.
const FINDING: usize = 100;

/// Maximum number of phrases drawn per correctly translated one. A model that needs more is trained too
/// little.
const DRAWS: usize = 3;

/// A model that translates too few phrases correctly to measure its heads.
pub(super) struct Undertrained {
    drawn: usize,
    correct: usize,
}

impl fmt::Display for Undertrained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Undertrained { drawn, correct } = self;
        write!(
            f,
            "The model is trained too little: it translates {correct} of {drawn} unseen phrases correctly"
        )
    }
}

/// Phrases of a direction that the model translates correctly: some to find the deciding heads, others to
/// measure them.
pub(super) struct Phrases {
    finding: Vec<String>,
    measuring: Vec<String>,
}

/// Ablation experiments on the word that depends on another word of the phrase.
pub(super) struct Intervention<'a> {
    pub(super) translator: &'a Translator,
    pub(super) direction: Direction,
    pub(super) options: &'a SearchOptions,
}

impl Intervention<'_> {
    /// Translates a phrase without some heads, and prints how the word changes.
    pub(super) fn show(
        &self,
        dependency: &Dependency,
        heads: &[HeadName],
        out: &mut impl Write,
    ) -> Result<()> {
        let word = |output: &str| decided(self.direction, output);
        let translated = |without: &[HeadName]| -> Result<String> {
            Ok(self.ablation(&word).translate_without(&[dependency.source], without)?.remove(0))
        };
        let (whole, without) = (translated(&[])?, translated(heads)?);
        let [before, after] = [&whole, &without].map(|output| decided(self.direction, output));
        write!(out, "Without {} the output is “{without}”: ", join_head_names(heads))?;
        Ok(match (before, after) {
            (Some(before), Some(after)) if before != after => {
                writeln!(out, "“{before}” becomes “{after}”.")
            }
            _ if whole == without => writeln!(out, "nothing changes."),
            (Some(before), Some(_)) => writeln!(out, "“{before}” stays."),
            _ => writeln!(out, "the phrase changes."),
        }?)
    }

    /// The heads that together decide the word.
    pub(super) fn deciding(&self, phrases: &Phrases) -> Result<Vec<HeadName>> {
        self.removing(|ablation, bar| ablation.find_deciding_heads(&borrowed(&phrases.finding), bar))
    }

    /// Removes these heads, every single head, and random heads, on phrases that were not used to find them.
    pub(super) fn measure(&self, phrases: &Phrases, heads: &[HeadName], model: &str) -> Result<Experiment> {
        let found = self.removing(|ablation, bar| ablation.run(&borrowed(&phrases.measuring), heads, bar))?;
        Ok(found.experiment(self.direction.decided(), model))
    }

    /// The measure word is predicted after the prefix 一, because without heads a phrase may begin
    /// differently and have none.
    fn ablation<'a>(&'a self, word: &'a dyn Fn(&str) -> Option<String>) -> Ablation<'a> {
        let prefix = match self.direction {
            Direction::ChineseToEnglish => "",
            Direction::EnglishToChinese => "一",
        };
        Ablation { translator: self.translator, options: self.options, prefix, word }
    }

    fn removing<T>(
        &self,
        work: impl FnOnce(&Ablation<'_>, &mut dyn FnMut(&[HeadName])) -> heedful::Result<T>,
    ) -> Result<T> {
        let bar = Bar::with_time_left(Verbosity::Normal, 0);
        let word = |output: &str| decided(self.direction, output);
        let ablation = self.ablation(&word);
        let mut trials = 0;
        let found = work(&ablation, &mut |heads| {
            trials += 1;
            bar.show(trials, 0.0, || format!("without {}", join_head_names(heads)));
        });
        bar.finish();
        Ok(found?)
    }

    /// Unseen phrases that begin with *an*, or with 一 and a measure word other than the common 个, and that
    /// the model translates correctly, so that changes are due to the removed heads.
    pub(super) fn phrases(&self, measured: usize) -> Result<Result<Phrases, Undertrained>> {
        let direction = self.direction;
        let is_probe = |phrase: &Phrase| {
            phrase.is_held_out()
                && match direction {
                    Direction::ChineseToEnglish => phrase.english.starts_with("an "),
                    Direction::EnglishToChinese => {
                        phrase.chinese_words[0] == "一"
                            && phrase.chinese_words[1] != "个"
                            && phrase.english.starts_with("a")
                    }
                }
        };
        let needed = FINDING + measured;
        let grammar = Grammar::new();
        let drawn: Vec<Phrase> = grammar.phrases(SEED).filter(is_probe).take(needed * DRAWS).collect();
        let pairs: Vec<[&str; 2]> = drawn.iter().map(|phrase| direction.pair(phrase)).collect();
        let mut found = Vec::new();
        for some in pairs.chunks(needed) {
            let sources: Vec<&str> = some.iter().map(|[source, _]| *source).collect();
            let outputs = self.translator.translate(&sources, self.options)?;
            let correct = some.iter().zip(&outputs).filter(|([_, target], output)| output.best() == *target);
            found.extend(correct.map(|([source, _], _)| (*source).to_owned()));
            if found.len() >= needed {
                let measuring = found[FINDING..needed].to_vec();
                found.truncate(FINDING);
                return Ok(Ok(Phrases { finding: found, measuring }));
            }
        }
        Ok(Err(Undertrained { drawn: pairs.len(), correct: found.len() }))
    }
}

fn borrowed(texts: &[String]) -> Vec<&str> {
    texts.iter().map(String::as_str).collect()
}

/// The dependent word of a translation: the article, or the measure word after 一.
fn decided(direction: Direction, output: &str) -> Option<String> {
    match direction {
        Direction::ChineseToEnglish => {
            output.split(' ').next().filter(|word| ["a", "an"].contains(word)).map(str::to_owned)
        }
        Direction::EnglishToChinese => output.strip_prefix('一')?.chars().next().map(String::from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_is_found_where_one_of_its_kind_stands() {
        let word = |direction, output| decided(direction, output);
        let english = |output| word(Direction::ChineseToEnglish, output);
        assert_eq!(english("an old car"), Some("an".to_owned()));
        assert_eq!((english("my old car"), english("")), (None, None));
        let chinese = |output| word(Direction::EnglishToChinese, output);
        assert_eq!(chinese("一套解决方案"), Some("套".to_owned()));
        assert_eq!((chinese("我的车"), chinese("一")), (None, None));
    }
}
