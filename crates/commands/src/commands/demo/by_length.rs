//! Compares two recurrent networks, with and without attention: exact match by phrase length.

use std::path::{Path, PathBuf};

use anyhow::Result;
use heedful::decode::SearchOptions;
use heedful::explain::experiments::Experiment;
use heedful::models::DeviceChoice;
use heedful::plot::{Highlight, LineChart, Series, Table};
use heedful::tasks::translate::Translator;
use heedful_grammar::Phrase;
use serde_json::json;

use super::direction::Direction;
use super::evaluation::{ExactMatch, TestResult};
use super::model::DemoModel;
use super::phrases::TextFiles;
use super::plan::BOTTLENECK;
use super::{folder, train};
use crate::interrupt::Interrupt;

/// Without attention (one vector for the whole phrase), and with attention.
const MODELS: [DemoModel; 2] = [DemoModel::Rnn, DemoModel::RnnAttention];

/// Number of phrase lengths that form one point of a curve.
const LENGTHS: usize = 2;

/// Groups with fewer phrases are merged with a neighbouring group.
const MIN_PHRASES: usize = 20;

/// The exact match of one model.
struct Curve {
    model: DemoModel,
    points: Vec<Point>,
}

/// Phrases of neighbouring lengths.
#[derive(Clone, Copy)]
struct Point {
    shortest: usize,
    longest: usize,
    /// Mean number of words.
    words: f64,
    found: ExactMatch,
}

/// Trains both networks in a folder and evaluates them. The folder of an earlier demo is replaced.
pub(in crate::commands) fn bottleneck(out: &Path, seed: u64) -> Result<Experiment> {
    folder::claim(out)?;
    let interrupt = Interrupt::hold();
    let text = TextFiles::new(&out.join("data"));
    let phrases = text.write(&BOTTLENECK, seed)?;
    let direction = Direction::ChineseToEnglish;
    let mut curves = Vec::new();
    for model in MODELS {
        let folder: PathBuf = out.join(model.name());
        let mut recipe = BOTTLENECK.recipe(direction, &text, &folder, seed);
        model.adapt(&mut recipe);
        eprintln!("training {model}");
        train(DeviceChoice::Cpu, &recipe, interrupt.clone())?;
        let translator = Translator::open(&folder)?;
        let compute = Some(recipe.training.compute.into());
        let options = SearchOptions { beam: 1, compute, ..SearchOptions::default() };
        let result = TestResult::evaluate(&translator, direction, &phrases, &options)?;
        curves.push(Curve { model, points: points(&phrases, &result) });
    }
    Ok(experiment(&curves, phrases.len(), seed))
}

/// Exact match by length, from short to long.
fn points(phrases: &[Phrase], result: &TestResult) -> Vec<Point> {
    let mut rated: Vec<(usize, bool)> = phrases
        .iter()
        .zip(&result.translations)
        .map(|(phrase, translation)| (phrase.chinese_words.len(), translation.is_correct()))
        .collect();
    rated.sort_unstable();
    let mut groups: Vec<Vec<(usize, bool)>> = Vec::new();
    for same in rated.chunk_by(|a, b| a.0.div_ceil(LENGTHS) == b.0.div_ceil(LENGTHS)) {
        match groups.last_mut() {
            Some(before) if same.len() < MIN_PHRASES || before.len() < MIN_PHRASES => before.extend(same),
            _ => groups.push(same.to_vec()),
        }
    }
    groups.iter().map(|group| Point::of(group)).collect()
}

impl Point {
    fn of(group: &[(usize, bool)]) -> Point {
        let lengths = || group.iter().map(|(words, _)| *words);
        Point {
            shortest: lengths().min().unwrap_or(0),
            longest: lengths().max().unwrap_or(0),
            words: lengths().sum::<usize>() as f64 / group.len().max(1) as f64,
            found: ExactMatch {
                correct: group.iter().filter(|(_, is_correct)| *is_correct).count(),
                total: group.len(),
            },
        }
    }

    fn lengths(&self) -> String {
        if self.shortest == self.longest {
            self.shortest.to_string()
        } else {
            format!("{}–{}", self.shortest, self.longest)
        }
    }
}

fn experiment(curves: &[Curve], phrases: usize, seed: u64) -> Experiment {
    let fall = |curve: &Curve| match (curve.points.first(), curve.points.last()) {
        (Some(first), Some(last)) => format!(
            "{} translates {} of the phrases with {} words exactly, and {} of those with {}.",
            capital(&curve.model.to_string()),
            first.found.percent(),
            first.lengths(),
            last.found.percent(),
            last.lengths()
        ),
        _ => String::new(),
    };
    let series = |curve: &Curve| Series {
        name: curve.model.name().to_owned(),
        points: curve.points.iter().map(|point| (point.words, 100.0 * point.found.share())).collect(),
        highlight: Highlight::None,
    };
    let json = |curve: &Curve| {
        let point = |point: &Point| {
            let Point { shortest, longest, words, found } = *point;
            json!({ "shortest": shortest, "longest": longest, "words": words, "correct": found.correct, "total": found.total })
        };
        json!({ "model": curve.model.name(), "points": curve.points.iter().map(point).collect::<Vec<_>>() })
    };
    Experiment {
        title: "Why is one vector not enough?".to_owned(),
        setting: format!(
            "two GRU networks of width {} after {} steps each, {phrases} unseen phrases, Chinese to English, seed {seed}",
            BOTTLENECK.width(),
            BOTTLENECK.steps()
        ),
        findings: curves.iter().map(fall).collect(),
        tables: vec![table(curves)],
        curves: vec![LineChart {
            title: "exact match (%) by length".to_owned(),
            x_label: "Chinese words of the phrase".to_owned(),
            series: curves.iter().map(series).collect(),
            ..LineChart::default()
        }],
        pictures: Vec::new(),
        json: json!({ "seed": seed, "models": curves.iter().map(json).collect::<Vec<_>>() }),
    }
}

fn table(curves: &[Curve]) -> Table {
    let row = |number: usize, point: &Point| {
        let shares = curves.iter().filter_map(|curve| curve.points.get(number));
        [point.lengths(), point.found.total.to_string()]
            .into_iter()
            .chain(shares.map(|point| point.found.percent()))
            .collect()
    };
    let names = curves.iter().map(|curve| curve.model.name().to_owned());
    Table {
        title: "Exact match by length".to_owned(),
        columns: ["words", "phrases"].map(str::to_owned).into_iter().chain(names).collect(),
        rows: curves[0].points.iter().enumerate().map(|(number, point)| row(number, point)).collect(),
    }
}

fn capital(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map(|first| first.to_uppercase().to_string() + rest.as_str()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_lengths_join_their_neighbours() {
        let group = |words: usize, count: usize| (0..count).map(move |number| (words, number % 2 == 0));
        let all: Vec<(usize, bool)> = group(1, 2)
            .chain(group(3, 30))
            .chain(group(4, 20))
            .chain(group(5, 4))
            .chain(group(7, 40))
            .collect();
        let result = TestResult {
            translations: all
                .iter()
                .map(|&(_, is_correct)| super::super::evaluation::TestTranslation {
                    source: String::new(),
                    reference: "a".to_owned(),
                    output: if is_correct { "a" } else { "b" }.to_owned(),
                    length: heedful_grammar::LengthClass::Short,
                })
                .collect(),
            bleu: heedful::metrics::corpus_bleu(
                &["a".to_owned()],
                &[vec!["a".to_owned()]],
                &heedful::metrics::BleuOptions::default(),
            ),
        };
        let phrases: Vec<Phrase> = all
            .iter()
            .map(|&(words, _)| Phrase {
                chinese: String::new(),
                english: String::new(),
                chinese_words: vec!["一"; words],
            })
            .collect();
        let points = points(&phrases, &result);
        let found: Vec<(String, usize, usize)> =
            points.iter().map(|point| (point.lengths(), point.found.correct, point.found.total)).collect();
        assert_eq!(found, [("1–5".to_owned(), 28, 56), ("7".to_owned(), 20, 40)]);
    }
}
