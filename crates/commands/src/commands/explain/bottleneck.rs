//! `heedful explain bottleneck`: accuracy by phrase length, with and without attention.

use std::path::PathBuf;

use anyhow::Result;

use super::experiment::ExperimentOutput;
use crate::commands::demo::bottleneck;
use crate::machine::Threads;

/// Train two recurrent networks, with and without attention, and compare them by phrase length
///
/// Both are GRU encoder-decoders trained on the same phrases in the same order. Without attention, the
/// decoder gets one vector for the whole phrase, whatever its length; with attention it can attend to every
/// word. It takes about a minute.
#[derive(clap::Args)]
#[command(after_long_help = "Example:\n  heedful explain bottleneck -o bottleneck.svg")]
pub(super) struct Bottleneck {
    /// Folder for phrases and models; the folder of an earlier run is replaced
    #[arg(long, value_name = "FOLDER", default_value = "heedful-bottleneck")]
    out: PathBuf,
    /// Random seed of the phrases and of the training
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    output: ExperimentOutput,
    #[command(flatten)]
    threads: Threads,
}

impl Bottleneck {
    pub(super) fn run(&self) -> Result<()> {
        self.threads.set_up();
        let output = self.output.open(&[])?;
        output.finish(&bottleneck(&self.out, self.seed)?)
    }
}
