//! `heedful explain`: what a model attends to, as pictures, tables and numbers.

mod sentence;

mod example;

mod heads;
mod prune;

mod pictures;

mod input;
pub(in crate::commands) mod output;

use anyhow::Result;

/// Show what a model attends to: one sentence as a page, a picture or numbers, or its heads over a corpus
///
/// `heedful explain MODEL TEXT` translates a text and shows its attention weights: on the terminal, or with -o in a file.
/// Layers and heads count from 0, as in the names of parameters. A model folder with the name of a subcommand is written
/// with a slash: ./heads. All weights of a text are kept, layers × heads × the square of its tokens: a text of more tokens
/// than --max-tokens is refused.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    sentence: sentence::SentenceArguments,
}

const EXAMPLES: &str = "\
Examples:
  heedful explain run 'A dog runs.'
      the cross attention, drawn on the terminal

  heedful explain run 'A dog runs.' -o dog.html
      an interactive page with every layer and head

  heedful explain run 'A dog runs.' -o dog.svg --view grid
  heedful explain run 'A dog runs.' -o dog.png --layer encoder.0 --head 3
      pictures for a paper

  heedful explain heads run --src valid.en --tgt valid.de
  heedful explain prune run --src valid.en --ref valid.de
      what each head does, and the BLEU that it is worth";

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
