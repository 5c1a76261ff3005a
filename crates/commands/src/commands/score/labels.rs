//! Scores labels with a classifier.

use anyhow::{Context, Result};
use heedful::data::{CorpusFiles, Input};
use heedful::tasks::classify::Classifier;
use serde_json::json;

use super::Arguments;
use crate::attention_file::{AttendedTokens, AttentionFile};
use crate::long_text::LongTexts;
use crate::progress::{Bar, line_count};
use crate::results::Results;

/// Maximum texts of a chunk, and the number of tokens at which a chunk ends.
const CHUNK: usize = 64;
const CHUNK_TOKENS: usize = 8192;

pub(super) fn run(arguments: &Arguments, mut results: Results) -> Result<()> {
    let file = arguments.label_text.as_ref().expect("it was checked");
    let mut attention =
        arguments.attention.create(arguments.output.as_deref(), &arguments.force, &arguments.inputs())?;
    let mut classifier = Classifier::open_with(&arguments.model, &arguments.machine.opening())?;
    arguments.max_tokens.tokens.map_or(Ok(()), |tokens| classifier.set_max_tokens(tokens))?;
    let files = CorpusFiles::labelled(&[Input::new(file)])?;
    let mut pairs = files.pairs();
    let count = line_count(Some(file));
    let bar = Bar::for_streamed_results(arguments.quiet.verbosity(), count, arguments.output.as_deref());
    let mut long_texts = LongTexts::new("cut", classifier.limit());
    let mut number = 0;
    loop {
        let (mut chunk, mut tokens) = (Vec::new(), 0);
        while chunk.len() < CHUNK
            && tokens < CHUNK_TOKENS
            && let Some(pair) = pairs.next()
        {
            let pair = pair?;
            // An empty line has no label and no text.
            let label = match pair.source.is_empty() {
                true => None,
                false => Some(classifier.labels().require(&pair.target, || pairs.location())?),
            };
            let encode = |text: &str| classifier.encode(text);
            let ids = long_texts.read(&pair.source, encode, arguments.long, || pairs.location())?;
            tokens += ids.len();
            chunk.push((label, ids));
        }
        if chunk.is_empty() {
            break;
        }
        let texts: Vec<Vec<u32>> =
            chunk.iter().map(|(_, ids)| ids.clone()).filter(|ids| !ids.is_empty()).collect();
        let found = if texts.is_empty() { Vec::new() } else { classifier.classify_tokens(&texts)? };
        let mut found = found.into_iter();
        for (label, ids) in &chunk {
            let line = match (label, if ids.is_empty() { None } else { found.next() }) {
                (Some(label), Some(found)) => {
                    score_line(&classifier, *label, &found.probabilities, arguments)
                }
                _ => blank_line(arguments),
            };
            results.add(format!("{line}\n"))?;
            if let Some(file) = attention.as_mut().filter(|_| !ids.is_empty()) {
                attend(&classifier, ids, *label, number, file, arguments)
                    .with_context(|| format!("line {}", number + 1))?;
            }
            number += 1;
        }
        results.flush()?;
        bar.show(number, 0.0, || format!("{number} labels scored"));
    }
    bar.finish();
    long_texts.finish();
    attention.map_or(Ok(()), AttentionFile::finish)?;
    results.finish("scores")
}

fn score_line(classifier: &Classifier, label: u32, probabilities: &[f32], arguments: &Arguments) -> String {
    let log = |probability: f32| f64::from(probability).ln();
    let log_probability = log(probabilities[label as usize]);
    if !arguments.json {
        return format!("{log_probability:.6}");
    }
    let names = classifier.labels().names();
    let all: serde_json::Map<String, serde_json::Value> =
        names.iter().zip(probabilities).map(|(name, p)| (name.clone(), json!(log(*p)))).collect();
    json!({ "label": names[label as usize], "log_probability": log_probability, "labels": all }).to_string()
}

fn blank_line(arguments: &Arguments) -> String {
    match arguments.json {
        true => json!({ "label": null, "log_probability": 0.0, "labels": {} }).to_string(),
        false => format!("{:.6}", 0.0),
    }
}

fn attend(
    classifier: &Classifier,
    ids: &[u32],
    label: Option<u32>,
    number: usize,
    file: &mut AttentionFile,
    arguments: &Arguments,
) -> Result<()> {
    let mut pass = arguments.attention.pass(classifier.compute());
    let (_, maps) = classifier.attend_in(&mut pass, ids)?;
    let label = label.map_or_else(String::new, |label| classifier.labels().name(label).to_owned());
    file.add(number, &AttendedTokens::of_text(classifier, ids, label), &maps)
}
