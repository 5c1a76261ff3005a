//! `heedful seal`: records that the files of a folder are one model.

use std::path::PathBuf;

use anyhow::Result;
use heedful::tasks::folder::ModelFolder;

use crate::progress::{Quiet, Verbosity};

/// Record that the files of a folder are one model, after you changed one of them on purpose
///
/// A model's weights say which configuration, vocabulary and labels belong to them, by size and hash. A folder in which one of
/// these files is damaged, missing or another model's is refused by every command. This command accepts them as they are. It
/// is also for weights that another program or an earlier heedful wrote. Weights that are damaged, or do not fit the
/// configuration, are not sealed.
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
