//! `heedful explain`: where a model looks, as pictures, tables and numbers, without a server.

mod example;
mod heads;
mod input;
mod output;
mod pictures;
mod prune;
mod sentence;

use anyhow::Result;

/// Show where a model looks: one sentence as a page, a picture or numbers; or what its heads do over a corpus
///
/// `heedful explain MODEL TEXT -o out.html` shows a sentence; without -o it is drawn on the terminal. A folder that is
/// called like one of the commands below is named ./heads. Layers and heads are counted from 0, as in the names of
/// parameters.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    sentence: sentence::Sentence,
}

#[derive(clap::Subcommand)]
enum Command {
    Heads(heads::Arguments),
    Prune(prune::Arguments),
    Example(example::Arguments),
    Positions(pictures::Positions),
    Schedule(pictures::Schedule),
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    match &arguments.command {
        None => sentence::run(&arguments.sentence),
        Some(Command::Heads(arguments)) => heads::run(arguments),
        Some(Command::Prune(arguments)) => prune::run(arguments),
        Some(Command::Example(arguments)) => example::run(arguments),
        Some(Command::Positions(arguments)) => arguments.run(),
        Some(Command::Schedule(arguments)) => arguments.run(),
    }
}
