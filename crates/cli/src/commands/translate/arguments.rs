//! What `heedful translate` can be asked for.

use std::path::PathBuf;

use heedful::decode::{MaxLength, Sampling, SearchOptions};
use heedful::tensor::DType;
use heedful::transformer::HeadName;

/// Translate text: one line in, one line out, in order
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The folder of a model or of a training run
    pub(crate) model: PathBuf,
    /// A text file, one sentence a line, which may be compressed [default: standard input]
    pub(crate) file: Option<PathBuf>,
    /// Translate this text instead of a file; may be given several times
    #[arg(long, value_name = "TEXT", conflicts_with = "file")]
    pub(crate) text: Vec<String>,
    /// Write the translations to this file, which appears when all are there [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Hypotheses that are followed at a time; 1 is greedy
    #[arg(long, default_value_t = 4, value_name = "N", help_heading = "Search")]
    beam: usize,
    /// α of the length penalty ((5 + length) / 6)^α: 0 favours short translations
    #[arg(long, default_value_t = 0.6, value_name = "X", help_heading = "Search")]
    length_penalty: f64,
    /// The most tokens of a translation [default: as many as the source has and 50 more]
    #[arg(long, value_name = "N", help_heading = "Search")]
    max_length: Option<usize>,
    /// The fewest tokens of a translation
    #[arg(long, default_value_t = 0, value_name = "N", help_heading = "Search")]
    min_length: usize,
    /// No sequence of N tokens occurs twice in a translation
    #[arg(long, value_name = "N", help_heading = "Search")]
    no_repeat_ngram: Option<usize>,
    /// So many translations of each line, best first
    #[arg(long, default_value_t = 1, value_name = "N", help_heading = "Search")]
    pub(crate) n_best: usize,

    /// Leave this head out, such as enc.0.3, dec.0.3 or cross.0.3 (layer and head counted from 0); may be given several
    /// times
    #[arg(long, value_name = "HEAD", help_heading = "Search")]
    pub(crate) without_head: Vec<HeadName>,

    /// Draw translations at random instead of searching for the best
    #[arg(long, help_heading = "Sampling")]
    sample: bool,
    /// Draw from the K most probable tokens only
    #[arg(long, value_name = "K", requires = "sample", help_heading = "Sampling")]
    top_k: Option<usize>,
    /// Draw from the most probable tokens that have this probability together
    #[arg(long, value_name = "P", requires = "sample", help_heading = "Sampling")]
    top_p: Option<f32>,
    /// Below 1 bolder, above 1 more even
    #[arg(long, default_value_t = 1.0, value_name = "T", requires = "sample", help_heading = "Sampling")]
    temperature: f32,
    /// Decides the draws: the same seed gives the same translation of a line in any company
    #[arg(long, default_value_t = 1, value_name = "N", requires = "sample", help_heading = "Sampling")]
    seed: u64,

    /// Add the score of each translation: log-probability with the length penalty
    #[arg(long, help_heading = "Output")]
    pub(crate) scores: bool,
    /// Add word alignments as source-target, counted from 0 (Pharaoh format)
    #[arg(long, help_heading = "Output")]
    pub(crate) align: bool,
    /// Write the attention weights of every layer and head to this file: .json or .safetensors
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) attention: Option<PathBuf>,
    /// Write one JSON object a line instead of text
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Say nothing but errors
    #[arg(long, help_heading = "Output")]
    pub(crate) quiet: bool,

    /// Type of the matrix products: bf16 or f32
    #[arg(long, default_value = "bf16", value_name = "TYPE", value_parser = compute, help_heading = "Machine")]
    compute: DType,
    /// How many tokens are worked on side by side; changes speed and memory, never a translation
    #[arg(long, default_value_t = 8192, value_name = "N", help_heading = "Machine")]
    batch_tokens: usize,
    /// How many threads compute [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), help_heading = "Machine")]
    pub(crate) threads: Option<u16>,
}

impl Arguments {
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
            no_repeat_ngram: self.no_repeat_ngram,
            compute: self.compute,
            batch_tokens: self.batch_tokens,
            ..defaults
        }
    }
}

/// `bf16` or `f32`.
pub(crate) fn compute(text: &str) -> Result<DType, String> {
    match text {
        "bf16" => Ok(DType::Bf16),
        "f32" => Ok(DType::F32),
        _ => Err("it is bf16 or f32".to_owned()),
    }
}
