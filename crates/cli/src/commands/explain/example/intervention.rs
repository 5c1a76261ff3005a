//! Proof by intervention: without the head that the picture points at, the word changes.

use std::fmt;
use std::io::Write;

use anyhow::Result;
use heedful::decode::SearchOptions;
use heedful::explain::experiments::{Experiment, removals};
use heedful::models::HeadName;
use heedful::tasks::translate::Translator;
use heedful_grammar::{Grammar, Phrase};

use crate::commands::demo::{Dependency, Direction};
use crate::progress::{Bar, Verbosity};

/// Of the phrases that heads are removed for: other draws than those of any demo.
const SEED: u64 = 0x5eed;

/// How many phrases may be drawn for each that is translated correctly. A model below that knows too little.
const DRAWS: usize = 3;

/// A model that translates too few phrases correctly to say what its heads are for.
pub(super) struct TooYoung {
    drawn: usize,
    correct: usize,
}

impl fmt::Display for TooYoung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TooYoung { drawn, correct } = self;
        write!(f, "The model is too young: it translates {correct} of {drawn} unseen phrases correctly")
    }
}

/// Translates the example without a head, and says what became of the word.
pub(super) fn show(
    translator: &Translator,
    dependency: &Dependency,
    head: HeadName,
    options: &SearchOptions,
    out: &mut impl Write,
) -> Result<()> {
    let translated = |without_heads: Vec<HeadName>| -> Result<String> {
        let options = SearchOptions { without_heads, ..options.clone() };
        Ok(translator.translate(&[dependency.source], &options)?.remove(0).best().to_owned())
    };
    let (whole, without) = (translated(Vec::new())?, translated(vec![head])?);
    let direction = Direction::of_text(dependency.source)?;
    let (before, after) = (decided(direction, &whole), decided(direction, &without));
    write!(out, "Without {head} the output is “{without}”: ")?;
    Ok(match (before == after, whole == without) {
        (false, _) => writeln!(out, "“{before}” becomes “{after}”."),
        (_, true) => writeln!(out, "nothing changes, so other heads know it too."),
        (true, false) => writeln!(out, "“{before}” stays."),
    }?)
}

/// Removes each head in turn, for so many phrases that the model translates correctly.
pub(super) fn measure(
    translator: &Translator,
    (direction, named): (Direction, HeadName),
    count: usize,
    options: &SearchOptions,
    model: &str,
) -> Result<Result<Experiment, TooYoung>> {
    let phrases = match probes(translator, direction, count, options)? {
        Ok(phrases) => phrases,
        Err(young) => return Ok(Err(young)),
    };
    let sources: Vec<&str> = phrases.iter().map(String::as_str).collect();
    let bar = Bar::with_time_left(Verbosity::Normal, translator.model().heads().len());
    let found = removals(
        translator,
        &sources,
        options,
        |output| decided(direction, output),
        |done, head| bar.show(done, 0.0, || format!("without {head}")),
    );
    bar.finish();
    let word = match direction {
        Direction::ChineseToEnglish => "the article",
        Direction::EnglishToChinese => "the measure word",
    };
    Ok(Ok(found?.experiment(named, word, model)))
}

/// The word of a translation that its other words decide: the article, or the measure word after 一.
fn decided(direction: Direction, output: &str) -> String {
    match direction {
        Direction::ChineseToEnglish => output.split(' ').next().unwrap_or_default().to_owned(),
        Direction::EnglishToChinese => output.chars().nth(1).map(String::from).unwrap_or_default(),
    }
}

/// Unseen phrases that begin with *an*, or with 一 and a measure word that is not the usual 个, and that the model translates
/// correctly: what changes in them is due to the head.
fn probes(
    translator: &Translator,
    direction: Direction,
    count: usize,
    options: &SearchOptions,
) -> Result<Result<Vec<String>, TooYoung>> {
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
    let grammar = Grammar::new();
    let drawn: Vec<Phrase> = grammar.phrases(SEED).filter(is_probe).take(count * DRAWS).collect();
    let pairs: Vec<[&str; 2]> = drawn.iter().map(|phrase| direction.pair(phrase)).collect();
    let mut probes = Vec::new();
    for some in pairs.chunks(count) {
        let sources: Vec<&str> = some.iter().map(|[source, _]| *source).collect();
        let outputs = translator.translate(&sources, options)?;
        let correct = some.iter().zip(&outputs).filter(|([_, target], output)| output.best() == *target);
        probes.extend(correct.map(|([source, _], _)| (*source).to_owned()));
        if probes.len() >= count {
            probes.truncate(count);
            return Ok(Ok(probes));
        }
    }
    Ok(Err(TooYoung { drawn: pairs.len(), correct: probes.len() }))
}
