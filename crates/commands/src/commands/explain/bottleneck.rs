//! `heedful explain bottleneck`: one vector against attention, as phrases grow.

use std::path::PathBuf;

use anyhow::Result;

use super::experiment::ExperimentOutput;
use crate::commands::demo::bottleneck;
use crate::machine::Threads;

/// Train two recurrent networks, without attention and with it, and compare them as phrases grow
///
/// Both are encoder-decoders of GRU cells that see the same phrases in the same order. Without attention, the decoder gets one vector
/// for the whole phrase, however long it is; with attention it looks at every word. It takes about a minute.
#[derive(clap::Args)]
#[command(after_long_help = "Example:\n  heedful explain bottleneck -o bottleneck.svg")]
pub(super) struct Bottleneck {
    /// Folder for phrases and models; that of an earlier run is replaced
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
