//! `heedful classify`: a label for each line, how sure the model is, and the words that it looked at.
//!
//! ```text
//! label<TAB>probability<TAB>word word …        a blank line stays blank
//! ```

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
use heedful::data::Input;
use heedful::data::corpus::Lines;
use heedful::store::durable;
use heedful::tasks::classify::{Classified, Classifier, Word};
use heedful::tensor::DType;
use heedful::tensor::cpu::threads;
use serde_json::{Value, json};

use super::translate::compute;

/// Give texts a label: one line in, one label out, in order
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The folder of a classifier or of its training run
    model: PathBuf,
    /// A text file, one text a line, which may be compressed [default: standard input]
    file: Option<PathBuf>,
    /// Classify this text instead of a file; may be given several times
    #[arg(long, value_name = "TEXT", conflicts_with = "file")]
    text: Vec<String>,
    /// Write the labels to this file, which appears when all are there [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write one JSON object a line, with the probability of every label
    #[arg(long)]
    json: bool,
    /// Name the N words of each text that got most of the attention
    #[arg(long, default_value_t = 3, value_name = "N")]
    words: usize,
    /// Type of the matrix products: bf16 or f32
    #[arg(long, default_value = "bf16", value_name = "TYPE", value_parser = compute)]
    compute: DType,
    /// How many threads compute [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
}

/// Texts that are read side by side.
const CHUNK: usize = 64;

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if let Some(count) = arguments.threads {
        threads::set_thread_count(count.into());
    }
    let classifier = Classifier::open(&arguments.model)?;
    let mut labelled = Vec::new();
    let mut out = BufWriter::new(io::stdout());
    let mut texts = Texts::open(arguments)?;
    let mut line = 0;
    while let Some(chunk) = texts.next_chunk()? {
        let lines = label(&classifier, &chunk, line, arguments)
            .with_context(|| format!("{}, lines {} to {}", texts.name, line + 1, line + chunk.len()))?;
        line += chunk.len();
        if arguments.output.is_some() {
            labelled.extend_from_slice(lines.as_bytes());
        } else {
            out.write_all(lines.as_bytes())?;
            out.flush()?;
        }
    }
    match &arguments.output {
        Some(path) => durable::write_bytes(path, &labelled).context("the labels are lost"),
        None => Ok(()),
    }
}

/// Where texts come from, some at a time.
struct Texts {
    name: String,
    source: Source,
}

enum Source {
    Given(Vec<String>),
    Lines(Lines),
}

impl Texts {
    fn open(arguments: &Arguments) -> Result<Texts> {
        if !arguments.text.is_empty() {
            return Ok(Texts { name: "--text".to_owned(), source: Source::Given(arguments.text.clone()) });
        }
        let input = arguments.file.as_ref().map_or(Input::Standard, Input::new);
        Ok(Texts { name: input.to_string(), source: Source::Lines(Lines::open(&input)?) })
    }

    fn next_chunk(&mut self) -> Result<Option<Vec<String>>> {
        let chunk = match &mut self.source {
            Source::Given(texts) => std::mem::take(texts),
            Source::Lines(lines) => {
                // Who types at a terminal, or pipes line by line, wants an answer to each.
                let most = if lines.input() == &Input::Standard { 1 } else { CHUNK };
                let mut chunk = Vec::new();
                while chunk.len() < most
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

/// The lines that are written for some texts.
fn label(classifier: &Classifier, texts: &[String], first: usize, arguments: &Arguments) -> Result<String> {
    let spoken: Vec<&str> = texts.iter().map(String::as_str).filter(|text| !text.trim().is_empty()).collect();
    let found =
        if spoken.is_empty() { Vec::new() } else { classifier.classify(&spoken, arguments.compute)? };
    let mut found = found.into_iter();
    let mut lines = String::new();
    for (index, text) in texts.iter().enumerate() {
        let found = if text.trim().is_empty() { None } else { found.next() };
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
    let words: Vec<&str> = most_looked_at(found, words).iter().map(|word| word.text.as_str()).collect();
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
    let words: Vec<Value> = most_looked_at(found, words)
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

/// The words with most of the attention, most first; of equal ones the earlier.
fn most_looked_at(found: &Classified, count: usize) -> Vec<&Word> {
    let mut words: Vec<&Word> = found.words.iter().collect();
    words.sort_by(|a, b| b.attention.total_cmp(&a.attention));
    words.truncate(count);
    words
}
