//! `heedful classify`: prints for each line its label, the probability, and the words with the most
//! attention.
//!
//! ```text
//! label<TAB>probability<TAB>word word …        a blank line stays blank
//! ```

mod texts;

mod report;

use std::io::{self, Write};
use std::iter;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use heedful::tasks::classify::{Classified, Classifier, Word};
use serde_json::{Value, json};

use self::report::{ReportFile, Tally};
use self::texts::Texts;
use crate::attention_file::{AttendedTokens, AttentionArguments, AttentionFile};
use crate::long_text::{Long, LongTexts, MaxTokens, refused};
use crate::machine::Machine;
use crate::output::Force;
use crate::progress::{Bar, Quiet, line_count};
use crate::results::Results;
use crate::text_input;

/// Classify texts: one line in, one label out, in order
///
/// A line of output consists of the label, its probability and the words with the most attention, separated
/// by tabs. A blank line stays blank.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Folder of a classifier or of its training run, or its package
    model: PathBuf,
    /// Text file, one text per line; may be compressed (.gz, .xz, .zst) [default: standard input]
    file: Option<PathBuf>,
    /// Classify this text instead of a file; repeatable
    #[arg(long, value_name = "TEXT", conflicts_with = "file")]
    text: Vec<String>,
    /// Classify the labelled texts of this file (label, tab, text on each line) and report accuracy, F1 of
    /// each label and the confusion matrix. The predicted labels are written only with -o
    #[arg(long, value_name = "FILE", conflicts_with_all = ["file", "text"])]
    label_text: Option<PathBuf>,
    /// Also write the report of --label-text to this file: .html, .json or .md
    #[arg(long, value_name = "FILE", requires = "label_text", help_heading = "Output")]
    report: Option<PathBuf>,
    /// What to do with a text of more tokens than --max-tokens; split takes the mean of the
    /// parts' probabilities
    #[arg(long, value_enum, value_name = "WHAT", default_value = "cut", help_heading = "Long text")]
    long: Long,
    #[command(flatten)]
    max_tokens: MaxTokens,
    /// Write the labels to this file, once all of them are computed [default: standard output]
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
    /// Write one JSON object per line, with the probability of every label
    #[arg(long, help_heading = "Output")]
    json: bool,
    #[command(flatten)]
    attention: AttentionArguments,
    #[command(flatten)]
    quiet: Quiet,
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
  heedful classify news --text 'shares fell' --attention weights.json
  heedful classify news --label-text valid.tsv --report valid.html

Train a classifier with: heedful train --task classify --label-text train.tsv --out news";

/// Maximum tokens of a batch, unless a single text has more.
const CHUNK_TOKENS: usize = 16 * 1024;

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    // clap ignores `requires` for an argument that is in a conflict.
    if arguments.report.is_some() && arguments.label_text.is_none() {
        anyhow::bail!("--report needs labelled texts: add --label-text FILE");
    }
    let verbosity = arguments.quiet.verbosity();
    if arguments.text.is_empty() && arguments.label_text.is_none() {
        text_input::check(arguments.file.as_deref(), verbosity)?;
    }
    arguments.machine.set_up(verbosity)?;
    let inputs: Vec<&Path> =
        iter::once(&arguments.model).chain(&arguments.file).map(PathBuf::as_path).collect();
    let inputs: Vec<&Path> = inputs.into_iter().chain(arguments.label_text.as_deref()).collect();
    let mut results = Results::open(arguments.output.as_deref(), &arguments.force, &inputs)?;
    let report_file =
        arguments.report.as_deref().map(|path| ReportFile::open(path, arguments, &inputs)).transpose()?;
    let mut attention = arguments.attention.create(arguments.output.as_deref(), &arguments.force, &inputs)?;
    if attention.is_some() && arguments.long == Long::Split {
        bail!(
            "--attention writes one set of weights per text, but --long split runs the model several times: use --long cut or error"
        );
    }
    let mut classifier = Classifier::open_with(&arguments.model, &arguments.machine.opening())?;
    arguments.max_tokens.tokens.map_or(Ok(()), |tokens| classifier.set_max_tokens(tokens))?;
    let mut reader = TextReader::new(&classifier, arguments.long);
    let mut tally = arguments.label_text.is_some().then(|| Tally::new(&classifier));
    let mut texts = Texts::open(arguments, &classifier)?;
    let mut line = 0;
    let read = arguments.file.as_deref().or(arguments.label_text.as_deref());
    let count = if arguments.text.is_empty() { line_count(read) } else { 0 };
    let bar = Bar::for_streamed_results(verbosity, count, arguments.output.as_deref());
    while let Some(chunk) = texts.next_chunk()? {
        let read = |(index, text): (usize, &String)| reader.parts(text, || texts.place(line + index + 1));
        let chunk: Vec<Vec<Vec<u32>>> = chunk.iter().enumerate().map(read).collect::<Result<_>>()?;
        let (lines, found) = label(&classifier, &chunk, line, arguments)
            .with_context(|| format!("from {} on", texts.place(line + 1)))?;
        if let Some(file) = &mut attention {
            for (index, parts) in chunk.iter().enumerate() {
                attend(&classifier, parts, line + index, file, arguments)
                    .with_context(|| texts.place(line + index + 1))?;
            }
        }
        if let Some(tally) = &mut tally {
            tally.add(&texts.take_labels(), &found);
        }
        line += chunk.len();
        bar.show(line, 0.0, || format!("{line} texts classified"));
        // With --label-text, standard output is for the report.
        if tally.is_none() || arguments.output.is_some() {
            results.add(&lines)?;
            results.flush()?;
        }
    }
    bar.finish();
    reader.long_texts.finish();
    attention.map_or(Ok(()), AttentionFile::finish)?;
    results.finish("labels")?;
    if let Some(tally) = tally {
        let report = tally.report(&texts.name)?;
        report_file.map_or(Ok(()), |file| file.finish(&report, &arguments.model))?;
        let text = if arguments.json { format!("{}\n", report.to_json(2)) } else { report.to_text(2) };
        let mut out = io::stdout();
        out.write_all(text.as_bytes())?;
        out.flush()?;
    }
    Ok(())
}

/// Writes the attention weights of a text in one part; nothing for a blank text.
fn attend(
    classifier: &Classifier,
    parts: &[Vec<u32>],
    number: usize,
    file: &mut AttentionFile,
    arguments: &Arguments,
) -> Result<()> {
    let Some(tokens) = parts.first() else { return Ok(()) };
    let mut pass = arguments.attention.pass(classifier.compute());
    let (probabilities, maps) = classifier.attend_in(&mut pass, tokens)?;
    let found = Classified { probabilities, words: Vec::new() };
    let label = classifier.labels().name(found.label()).to_owned();
    file.add(number, &AttendedTokens::of_text(classifier, tokens, label), &maps)
}

/// Encodes texts to tokens, cut or split to the model's limit.
struct TextReader<'c> {
    classifier: &'c Classifier,
    long: Long,
    long_texts: LongTexts,
}

impl<'c> TextReader<'c> {
    fn new(classifier: &'c Classifier, long: Long) -> TextReader<'c> {
        let what = if long == Long::Cut { "cut" } else { "split" };
        TextReader { classifier, long, long_texts: LongTexts::new(what, classifier.limit()) }
    }

    /// The tokens of the parts of a text: one unless it is split; none if it is blank.
    fn parts(&mut self, text: &str, place: impl Fn() -> String) -> Result<Vec<Vec<u32>>> {
        let limit = self.classifier.limit();
        let encode = |text: &str| self.classifier.encode(text);
        let parts = match limit.encode(text, encode) {
            Ok(tokens) => vec![tokens],
            Err(error) if self.long == Long::Error => {
                return Err(refused(place(), error, "--long cut, --long split or --max-tokens N"));
            }
            Err(_) => {
                self.long_texts.add_at(place);
                match self.long {
                    Long::Split => limit.split(text, encode).into_iter().map(|part| part.tokens).collect(),
                    Long::Cut | Long::Error => vec![limit.first(text, encode).tokens],
                }
            }
        };
        Ok(parts.into_iter().filter(|tokens| !tokens.is_empty()).collect())
    }
}

/// The lines of output for a chunk of texts, each given as its parts, and the predicted labels; `None` for a
/// blank text.
fn label(
    classifier: &Classifier,
    texts: &[Vec<Vec<u32>>],
    first: usize,
    arguments: &Arguments,
) -> Result<(String, Vec<Option<u32>>)> {
    let parts: Vec<Vec<u32>> = texts.iter().flatten().cloned().collect();
    let mut classified = classify(classifier, &parts)?.into_iter();
    let (mut lines, mut labels) = (String::new(), Vec::new());
    for (index, parts) in texts.iter().enumerate() {
        let found: Vec<Classified> = classified.by_ref().take(parts.len()).collect();
        let found = Classified::mean(found.into_iter().zip(parts.iter().map(Vec::len)));
        labels.push(found.as_ref().map(Classified::label));
        lines += &match (found, arguments.json) {
            (None, false) => String::new(),
            (None, true) => json!({ "line": first + index + 1, "label": null }).to_string(),
            (Some(found), false) => plain(classifier, &found, arguments.words),
            (Some(found), true) => object(classifier, &found, first + index + 1, arguments.words).to_string(),
        };
        lines.push('\n');
    }
    Ok((lines, labels))
}

/// Classifies texts in batches of at most [`CHUNK_TOKENS`]. A text's result does not depend on the other
/// texts.
fn classify(classifier: &Classifier, texts: &[Vec<u32>]) -> Result<Vec<Classified>> {
    let mut found = Vec::new();
    while found.len() < texts.len() {
        let rest = &texts[found.len()..];
        let mut tokens = 0;
        let fits = |text: &&Vec<u32>| -> bool {
            tokens += text.len();
            tokens <= CHUNK_TOKENS
        };
        let count = rest.iter().take_while(fits).count().max(1);
        found.extend(classifier.classify_tokens(&rest[..count])?);
    }
    Ok(found)
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

/// The words with the most attention, in decreasing order; ties in the order of the text.
fn most_attended(found: &Classified, count: usize) -> Vec<&Word> {
    let mut words: Vec<&Word> = found.words.iter().collect();
    words.sort_by(|a, b| b.attention.total_cmp(&a.attention));
    words.truncate(count);
    words
}
