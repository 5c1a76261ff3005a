//! `heedful explain scaling` and `heedful explain order`: two experiments that need no corpus.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use heedful::explain::experiments::{
    OrderSettings, Permutation, ScalingSettings, order_of_model, order_of_random_model, scaling,
};

use super::experiment::ExperimentOutput;
use crate::machine::Threads;

/// Measure why scores are divided by √d_k: variance, saturation and gradient of the softmax as d_k grows
///
/// Computes attention of random queries and keys with components of unit variance, with and without the
/// factor 1/√d_k. It takes a second.
#[derive(clap::Args)]
#[command(after_long_help = "Example:\n  heedful explain scaling -o scaling.svg")]
pub(super) struct Scaling {
    /// Largest d_k: all powers of two up to it are measured
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(8..=4096))]
    widest: u32,
    /// Number of keys
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(2..=1024))]
    keys: u32,
    /// Number of queries to average over
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=16384))]
    queries: u32,
    /// Random seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    output: ExperimentOutput,
    #[command(flatten)]
    threads: Threads,
}

/// Show why positions are added: without them, the encoder states of a permuted sentence are the same states,
/// permuted
///
/// Encodes a sentence and a permutation of it, with and without the model's positions. MODEL is the folder of
/// a translation Transformer; without one, a randomly initialized Transformer is used, whose tokens are the
/// words of the text.
#[derive(clap::Args)]
#[command(after_long_help = ORDER_EXAMPLES)]
pub(super) struct Order {
    /// Folder of a Transformer or of its training run [default: a random model]
    model: Option<PathBuf>,
    /// Sentence to permute [default, without a model: the dog bites the man]
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
    /// Random seed of the permutation [default: reverse the sentence]
    #[arg(long, value_name = "SEED")]
    shuffle: Option<u64>,
    /// Random seed of the random model
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "model")]
    seed: u64,
    #[command(flatten)]
    output: ExperimentOutput,
    #[command(flatten)]
    threads: Threads,
}

const ORDER_EXAMPLES: &str = "\
Examples:
  heedful explain order
  heedful explain order heedful-demo --text 一套自动驾驶解决方案 -o order.html";

/// Default sentence without a model.
const SENTENCE: &str = "the dog bites the man";

impl Scaling {
    pub(super) fn run(&self) -> Result<()> {
        self.threads.set_up();
        let output = self.output.open(&[])?;
        let [widest, keys, queries] = [self.widest, self.keys, self.queries].map(|size| size as usize);
        output.finish(&scaling(&ScalingSettings { widest, keys, queries, seed: self.seed }))
    }
}

impl Order {
    pub(super) fn run(&self) -> Result<()> {
        self.threads.set_up();
        let inputs: Vec<&Path> = self.model.iter().map(PathBuf::as_path).collect();
        let output = self.output.open(&inputs)?;
        let text = match (&self.text, &self.model) {
            (Some(text), _) => text.clone(),
            (None, None) => SENTENCE.to_owned(),
            (None, Some(model)) => bail!("give a sentence for {}: --text TEXT", model.display()),
        };
        let permutation = self.shuffle.map_or(Permutation::Reversed, Permutation::Random);
        let settings = OrderSettings { text, permutation };
        output.finish(&match &self.model {
            Some(folder) => order_of_model(folder, &settings)?,
            None => order_of_random_model(&settings, self.seed)?,
        })
    }
}
