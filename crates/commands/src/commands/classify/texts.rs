//! The texts to classify.

use anyhow::Result;
use heedful::data::corpus::{Lines, LongLines, Pairs};
use heedful::data::labels::Labels;
use heedful::data::{CorpusFiles, Input};
use heedful::tasks::classify::Classifier;

use super::Arguments;
use crate::long_text::{LONGEST_LINE, Long};

/// Texts read and classified in one chunk.
const CHUNK: usize = 64;
/// A chunk ends with the text that reaches this number of bytes.
const CHUNK_BYTES: usize = 1 << 20;

/// Texts to classify, read a chunk at a time.
pub(super) struct Texts {
    pub(super) name: String,
    /// `None` for the texts of `--text`.
    input: Option<Input>,
    source: Source,
    /// The labels of the latest chunk, if the texts are labelled; `None` for an empty line.
    labels: Vec<Option<u32>>,
}

enum Source {
    Arguments(Vec<String>),
    Lines(Lines),
    Labelled(Box<Pairs>, Labels),
}

impl Texts {
    /// Opens the texts. A line is read only up to the model's limit.
    pub(super) fn open(arguments: &Arguments, classifier: &Classifier) -> Result<Texts> {
        let limit = classifier.limit();
        if let Some(file) = &arguments.label_text {
            let input = Input::new(file);
            let pairs = CorpusFiles::labelled(std::slice::from_ref(&input))?.pairs();
            let source = Source::Labelled(Box::new(pairs), classifier.labels().clone());
            return Ok(Texts { name: input.to_string(), input: Some(input), source, labels: Vec::new() });
        }
        if !arguments.text.is_empty() {
            return Ok(Texts {
                name: "--text".to_owned(),
                input: None,
                source: Source::Arguments(arguments.text.clone()),
                labels: Vec::new(),
            });
        }
        let input = Input::of(arguments.file.as_deref());
        let (most_bytes, long) = match arguments.long {
            Long::Error | Long::Cut => (limit.bytes_to_read(), LongLines::Cut),
            Long::Split => (LONGEST_LINE, LongLines::Refused),
        };
        let lines = Lines::open(&input)?.bounded(most_bytes, long);
        let (name, source) = (input.to_string(), Source::Lines(lines));
        Ok(Texts { name, input: Some(input), source, labels: Vec::new() })
    }

    /// Location of text number `line`, for messages.
    pub(super) fn place(&self, line: usize) -> String {
        match &self.input {
            Some(input) => input.location(line as u64),
            None => format!("{}, line {line}", self.name),
        }
    }

    pub(super) fn next_chunk(&mut self) -> Result<Option<Vec<String>>> {
        let chunk = match &mut self.source {
            Source::Arguments(texts) => std::mem::take(texts),
            Source::Lines(lines) => {
                // Interactive use: every line of standard input is classified at once.
                let chunk_size = if lines.input() == &Input::Standard { 1 } else { CHUNK };
                let (mut chunk, mut bytes) = (Vec::new(), 0);
                while chunk.len() < chunk_size
                    && bytes < CHUNK_BYTES
                    && let Some(line) = lines.next()?
                {
                    bytes += line.len();
                    chunk.push(line.to_owned());
                }
                chunk
            }
            Source::Labelled(pairs, labels) => {
                let (mut chunk, mut bytes) = (Vec::new(), 0);
                while chunk.len() < CHUNK
                    && bytes < CHUNK_BYTES
                    && let Some(pair) = pairs.next()
                {
                    let pair = pair?;
                    // An empty line has no label and no text.
                    self.labels.push(match pair.source.is_empty() {
                        true => None,
                        false => Some(labels.require(&pair.target, || pairs.location())?),
                    });
                    bytes += pair.source.len();
                    chunk.push(pair.source);
                }
                chunk
            }
        };
        Ok((!chunk.is_empty()).then_some(chunk))
    }

    /// The labels of the latest chunk.
    pub(super) fn take_labels(&mut self) -> Vec<Option<u32>> {
        std::mem::take(&mut self.labels)
    }
}
