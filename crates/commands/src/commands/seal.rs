//! `heedful seal`: records the checksums of a model folder's files.

use std::path::PathBuf;

use anyhow::Result;
use heedful::tasks::folder::ModelFolder;

use crate::progress::{Quiet, Verbosity};

/// Record new checksums of a model folder, after you edited one of its files on purpose
///
/// The weights file records the sizes and hashes of the configuration, vocabulary and labels. Every command
/// refuses a folder in which one of these files is damaged, missing or from another model. This command
/// accepts the files as they are now, and weights written by another program or an earlier heedful. It
/// refuses weights that are damaged or do not fit the configuration.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Folder of a model or of a training run
    model: PathBuf,
    #[command(flatten)]
    quiet: Quiet,
}

const EXAMPLES: &str = "\
Examples:
  heedful seal run
      after an edit of run/config.json, or of the names in run/labels.json";

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let folder = ModelFolder::seal(&arguments.model)?;
    if arguments.quiet.verbosity() == Verbosity::Normal {
        let name = arguments.model.display();
        eprintln!("{name} is sealed: {}, with {}", folder.config.summary(), folder.names().join(", "));
    }
    Ok(())
}
