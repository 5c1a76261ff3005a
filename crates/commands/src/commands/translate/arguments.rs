//! The arguments of `heedful translate`.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail, ensure};
use heedful::decode::{MaxLength, OutputScores, Sampling, SearchOptions};
use heedful::models::HeadName;
use heedful::tasks::folder::is_package;

use crate::attention_file::AttentionArguments;
use crate::long_text::{Long, MaxTokens};
use crate::machine::Machine;
use crate::output::Force;
use crate::progress::Quiet;

/// Translate text: one line in, one line out, in order
///
/// Each line of the input is a sentence. Translations are written as soon as they and all lines before them
/// are done, so a program may send a line, read its translation and send the next one. A blank line stays
/// blank. Several models form an ensemble, which averages their log-probabilities; they must have the same
/// vocabulary.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Folder of a translator or of its training run, or its package (`heedful pack`)
    model: PathBuf,
    /// Folders of more models for an ensemble; then a text file, one sentence per line, which may be
    /// compressed (.gz, .xz, .zst) [default: standard input]
    #[arg(value_name = "MODEL|FILE")]
    more: Vec<PathBuf>,
    /// Translate this text instead of a file; repeatable
    #[arg(long, value_name = "TEXT")]
    pub(crate) text: Vec<String>,

    /// Beam size: hypotheses kept at every step, at most 1000; 1 is greedy
    #[arg(long, default_value_t = 4, value_name = "N", help_heading = "Search")]
    beam: usize,
    /// α of the length penalty: scores are log p / ((5 + length) / 6)^α; 0 favours short translations
    #[arg(long, default_value_t = 0.6, value_name = "X", help_heading = "Search")]
    length_penalty: f64,
    /// Maximum length of a translation in tokens [default: length of the source + 50]
    #[arg(long, value_name = "N", help_heading = "Search")]
    max_length: Option<usize>,
    /// Minimum length of a translation in tokens
    #[arg(long, default_value_t = 0, value_name = "N", help_heading = "Search")]
    min_length: usize,
    /// Never generate the same n-gram of N tokens twice in a translation
    #[arg(long, value_name = "N", help_heading = "Search")]
    no_repeat_ngram: Option<usize>,
    /// Number of translations for each line, best first; at most the beam size
    #[arg(long, default_value_t = 1, value_name = "N", help_heading = "Search")]
    pub(crate) n_best: usize,
    /// File of target prefixes, which the translations must begin with: one line for each line of the text,
    /// blank for no prefix
    #[arg(long, value_name = "FILE", help_heading = "Search")]
    pub(crate) prefix: Option<PathBuf>,
    /// File of terms, one per line: source term, tab, target term. If a line contains the source term (whole
    /// words, same spelling), its translation contains the target term; a wider beam finds better positions
    /// for it
    #[arg(long, value_name = "FILE", conflicts_with = "sample", help_heading = "Search")]
    pub(crate) terms: Option<PathBuf>,
    /// Restrict the target tokens to the model's shortlist for each line (`heedful shortlist` learns it):
    /// faster with large vocabularies; a few translations change
    #[arg(long, help_heading = "Search")]
    pub(crate) shortlist: bool,
    /// Prune an attention head, for example encoder.0.self.3 or decoder.0.cross.3 (layers and heads
    /// count from 0); repeatable
    #[arg(long, value_name = "HEAD", help_heading = "Search")]
    pub(crate) without_head: Vec<HeadName>,

    /// Draw translations at random instead of searching for the most probable ones
    #[arg(long, help_heading = "Sampling")]
    sample: bool,
    /// Top-k sampling: draw from the K most probable tokens
    #[arg(long, value_name = "K", requires = "sample", help_heading = "Sampling")]
    top_k: Option<usize>,
    /// Top-p (nucleus) sampling: draw from the fewest tokens whose probabilities sum to at least P
    #[arg(long, value_name = "P", requires = "sample", help_heading = "Sampling")]
    top_p: Option<f32>,
    /// Softmax temperature: below 1 sharpens the distribution, above 1 flattens it
    #[arg(long, default_value_t = 1.0, value_name = "T", requires = "sample", help_heading = "Sampling")]
    temperature: f32,
    /// Random seed: with the same seed, a line has the same translation regardless of the other lines
    #[arg(long, default_value_t = 1, value_name = "N", requires = "sample", help_heading = "Sampling")]
    seed: u64,

    /// What to do with a line of more tokens than --max-tokens [default: split; error with --attention]
    #[arg(long, value_enum, value_name = "WHAT", help_heading = "Long text")]
    long: Option<Long>,
    #[command(flatten)]
    pub(crate) max_tokens: MaxTokens,

    /// Write the translations to this file, once all of them are done [default: standard output]
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,
    /// Add the score of each translation: log-probability divided by the length penalty
    #[arg(long, help_heading = "Output")]
    pub(crate) scores: bool,
    /// Add word alignments as source-target pairs (Pharaoh format); words are separated by white
    /// space and count from 0
    #[arg(long, help_heading = "Output")]
    pub(crate) align: bool,
    #[command(flatten)]
    pub(crate) attention: AttentionArguments,
    /// Write one JSON object per line instead of text
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) quiet: Quiet,

    #[command(flatten)]
    pub(crate) force: Force,
    #[command(flatten)]
    pub(crate) machine: Machine,
    /// Source tokens (times hypotheses) decoded in one batch; affects speed and memory, never a translation
    /// [default: 1024 to 4096 for each thread, by the size of the model; on a GPU up to 262144, limited by its memory]
    #[arg(long, value_name = "N", help_heading = "Machine")]
    batch_tokens: Option<usize>,
}

const EXAMPLES: &str = "\
Examples:
  heedful translate run news.en -o news.de
  echo 'A dog runs.' | heedful translate run --beam 8 --n-best 3
  heedful translate run --text 'A dog runs.' --align --scores
  heedful translate run1 run2 run3 news.en -o news.de
  heedful translate run news.en --terms terms.tsv --beam 12

Lines of output:
  translation                                  as it is
  translation ||| score ||| alignment          with --scores, --align
  line ||| translation ||| score ||| …         with --n-best N; lines count from 0, as in Moses
  {\"line\": 1, …}                               with --json; lines count from 1, as in error messages";

impl Arguments {
    /// All files and folders that the command reads.
    pub(crate) fn inputs(&self) -> Vec<&Path> {
        let files = self.more.iter().chain(&self.prefix).chain(&self.terms);
        std::iter::once(&self.model).chain(files).map(PathBuf::as_path).collect()
    }

    /// The folders of the models.
    pub(crate) fn models(&self) -> Vec<&Path> {
        let more = &self.more[..self.more.len() - usize::from(self.file().is_some())];
        std::iter::once(&self.model).chain(more).map(PathBuf::as_path).collect()
    }

    /// The text file: the last path, unless it is a folder or a packed model.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.more.last().map(PathBuf::as_path).filter(|last| !last.is_dir() && !is_package(last))
    }

    /// Checks that the arguments can be combined.
    pub(crate) fn check(&self) -> Result<()> {
        if let (Some(file), false) = (self.file(), self.text.is_empty()) {
            bail!("{} and --text: translate a file or texts, not both", file.display());
        }
        ensure!(
            self.models().len() == 1 || self.without_head.is_empty(),
            "--without-head is for one model: the models of an ensemble have different heads"
        );
        ensure!(
            self.models().len() == 1 || !self.shortlist,
            "--shortlist is for one model: leave it out for an ensemble"
        );
        Ok(())
    }

    /// Handling of long lines.
    pub(crate) fn long(&self) -> Result<Long> {
        match (self.long, &self.attention.file) {
            (Some(Long::Split), Some(_)) => bail!(
                "--attention writes one set of weights per line, but --long split runs the model several times: use --long cut or error"
            ),
            (Some(long), _) => Ok(long),
            (None, Some(_)) => Ok(Long::Error),
            (None, None) => Ok(Long::Split),
        }
    }

    /// Whether the output has scores.
    pub(crate) fn prints_scores(&self) -> bool {
        self.scores || self.json || self.n_best > 1
    }

    pub(crate) fn search_options(&self) -> SearchOptions {
        let defaults = SearchOptions::default();
        let sampling =
            Sampling { temperature: self.temperature, top_k: self.top_k, top_p: self.top_p, seed: self.seed };
        SearchOptions {
            beam: self.beam,
            length_penalty: self.length_penalty,
            max_length: self.max_length.map_or(defaults.max_length, MaxLength::Absolute),
            min_length: self.min_length,
            n_best: self.n_best,
            sampling: self.sample.then_some(sampling),
            scores: match self.prints_scores() {
                true => OutputScores::Used,
                false => OutputScores::Unused,
            },
            no_repeat_ngram: self.no_repeat_ngram,
            compute: self.machine.precision(),
            batch_tokens: self.batch_tokens,
            without_heads: self.without_head.clone(),
            ..defaults
        }
    }
}
