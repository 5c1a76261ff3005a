//! `heedful classify`: for each line a label, its probability, and the words with the most attention.
//!
//! ```text
//! label<TAB>probability<TAB>word word …        a blank line stays blank
//! ```

use std::io::{self, BufWriter, Write};
use std::iter;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use heedful::data::Input;
use heedful::data::corpus::Lines;
use heedful::tasks::classify::{Classified, Classifier, Word};
use serde_json::{Value, json};

use crate::machine::Machine;
use crate::output::Force;
use crate::progress::Verbosity;

/// Classify texts: one line in, one label out, in order
///
/// A line of output has the label, its probability and the words with the most attention, separated by tabs. A blank line
/// stays blank.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Folder of a classifier or of its training run
    model: PathBuf,
    /// Text file, one text per line; may be compressed (.gz, .xz, .zst) [default: standard input]
    file: Option<PathBuf>,
    /// Classify this text instead of a file; repeatable
    #[arg(long, value_name = "TEXT", conflicts_with = "file")]
    text: Vec<String>,
    /// Write the labels to this file, once all of them are computed [default: standard output]
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
    /// Write one JSON object per line, with the probability of every label
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// List the N words of each text that received the most attention
    #[arg(long, default_value_t = 3, value_name = "N", help_heading = "Output")]
    words: usize,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    machine: Machine,
}

const EXAMPLES: &str = "\
Examples:
  heedful classify news articles.txt
  echo 'shares fell after the report' | heedful classify news --json

Train a classifier with: heedful train --task classify --label-text train.tsv --out news";

/// Texts that are classified side by side.
const CHUNK: usize = 64;

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    arguments.machine.set_up("classification", Verbosity::Normal)?;
    let inputs: Vec<&Path> =
        iter::once(&arguments.model).chain(&arguments.file).map(PathBuf::as_path).collect();
    let mut file = arguments.force.open_if_named(arguments.output.as_deref(), &inputs)?;
    let classifier = Classifier::open(&arguments.model)?;
    let mut out = BufWriter::new(io::stdout());
    let mut texts = Texts::open(arguments)?;
    let mut line = 0;
    while let Some(chunk) = texts.next_chunk()? {
        let lines = label(&classifier, &chunk, line, arguments)
            .with_context(|| format!("{}, lines {} to {}", texts.name, line + 1, line + chunk.len()))?;
        line += chunk.len();
        match &mut file {
            Some(file) => file.add(lines.as_bytes())?,
            None => {
                out.write_all(lines.as_bytes())?;
                out.flush()?;
            }
        }
    }
    file.map_or(Ok(()), |file| file.finish().context("the labels could not be saved"))
}

/// Texts to classify, read a chunk at a time.
struct Texts {
    name: String,
    source: Source,
}

enum Source {
    Arguments(Vec<String>),
    Lines(Lines),
}

impl Texts {
    fn open(arguments: &Arguments) -> Result<Texts> {
        if !arguments.text.is_empty() {
            return Ok(Texts {
                name: "--text".to_owned(),
                source: Source::Arguments(arguments.text.clone()),
            });
        }
        let input = arguments.file.as_ref().map_or(Input::Standard, Input::new);
        Ok(Texts { name: input.to_string(), source: Source::Lines(Lines::open(&input)?) })
    }

    fn next_chunk(&mut self) -> Result<Option<Vec<String>>> {
        let chunk = match &mut self.source {
            Source::Arguments(texts) => std::mem::take(texts),
            Source::Lines(lines) => {
                // Interactive use: every line of standard input is answered at once.
                let chunk_size = if lines.input() == &Input::Standard { 1 } else { CHUNK };
                let mut chunk = Vec::new();
                while chunk.len() < chunk_size
                    && let Some(line) = lines.next()?
                {
                    chunk.push(line.to_owned());
                }
                chunk
            }
        };
        Ok((!chunk.is_empty()).then_some(chunk))
    }
}

/// The lines of output for a chunk of texts.
fn label(classifier: &Classifier, texts: &[String], first: usize, arguments: &Arguments) -> Result<String> {
    let filled: Vec<&str> = texts.iter().map(String::as_str).filter(|text| !text.trim().is_empty()).collect();
    let classified = if filled.is_empty() {
        Vec::new()
    } else {
        classifier.classify(&filled, arguments.machine.compute())?
    };
    let mut classified = classified.into_iter();
    let mut lines = String::new();
    for (index, text) in texts.iter().enumerate() {
        let found = if text.trim().is_empty() { None } else { classified.next() };
        lines += &match (found, arguments.json) {
            (None, false) => String::new(),
            (None, true) => json!({ "line": first + index + 1, "label": null }).to_string(),
            (Some(found), false) => plain(classifier, &found, arguments.words),
            (Some(found), true) => object(classifier, &found, first + index + 1, arguments.words).to_string(),
        };
        lines.push('\n');
    }
    Ok(lines)
}

fn plain(classifier: &Classifier, found: &Classified, words: usize) -> String {
    let label = classifier.labels().name(found.label());
    let words: Vec<&str> = most_attended(found, words).iter().map(|word| word.text.as_str()).collect();
    let mut line = format!("{label}\t{:.4}", found.probability());
    if !words.is_empty() {
        line += &format!("\t{}", words.join(" "));
    }
    line
}

fn object(classifier: &Classifier, found: &Classified, line: usize, words: usize) -> Value {
    let names = classifier.labels().names();
    let probabilities: serde_json::Map<String, Value> =
        names.iter().zip(&found.probabilities).map(|(name, p)| (name.clone(), json!(p))).collect();
    let words: Vec<Value> = most_attended(found, words)
        .iter()
        .map(|word| json!({ "word": word.text, "attention": word.attention }))
        .collect();
    json!({
        "line": line,
        "label": classifier.labels().name(found.label()),
        "probability": found.probability(),
        "probabilities": probabilities,
        "words": words,
    })
}

/// The words with the most attention, in decreasing order; equal ones in the order of the text.
fn most_attended(found: &Classified, count: usize) -> Vec<&Word> {
    let mut words: Vec<&Word> = found.words.iter().collect();
    words.sort_by(|a, b| b.attention.total_cmp(&a.attention));
    words.truncate(count);
    words
}
