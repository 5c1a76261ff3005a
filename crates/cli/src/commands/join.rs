//! `heedful join`: the results of all shards as one file.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::output::Force;
use crate::progress::{Quiet, Verbosity};
use crate::results::Results;
use crate::shard::{Begun, Whole};

/// Join the shards that `--shard` wrote into a folder: all of them, in order, or none
///
/// It is what `cat FOLDER/*.txt` writes, after a check: every shard is there, all have the same input, model and options, and no
/// file was changed since it was written.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Folder of the shards
    folder: PathBuf,
    /// Write to this file [default: standard output]
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
    #[command(flatten)]
    quiet: Quiet,
    #[command(flatten)]
    force: Force,
}

const EXAMPLES: &str = "\
Examples:
  heedful translate run news.en --shard 1/2 -o parts
  heedful translate run news.en --shard 2/2 -o parts
  heedful join parts -o news.de";

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let whole = Whole::find(&arguments.folder)?;
    let inputs: Vec<_> = whole.files.iter().map(PathBuf::as_path).collect();
    let opened = Results::open(Begun::Undivided, arguments.output.as_deref(), &arguments.force, &inputs)?;
    let Some(mut results) = opened else { return Ok(()) };
    let mut buffer = vec![0; 1 << 16];
    for path in &whole.files {
        let unreadable = || format!("cannot read {}", path.display());
        let mut file = File::open(path).with_context(unreadable)?;
        loop {
            match file.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => results.add(&buffer[..count])?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error).with_context(unreadable),
            }
        }
    }
    results.finish("results")?;
    if arguments.quiet.verbosity() == Verbosity::Normal {
        eprintln!("heedful: {} shards, {} lines", whole.files.len(), whole.lines);
        if whole.instruction_sets.len() > 1 {
            eprintln!(
                "heedful: they were computed with several instruction sets ({}): each shard has the bits of its own",
                whole.instruction_sets.join(", ")
            );
        }
    }
    Ok(())
}
