//! `heedful`: trains, runs, measures and explains attention models.

#![forbid(unsafe_code)]

mod machine;
mod progress;

mod interrupt;

mod heatmap;

mod commands;

use std::io;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Train, run, measure and explain attention models
///
/// Two aligned text files in, a translator out. The same program scores it, serves it over HTTP and shows where every
/// attention head looks.
#[derive(Parser)]
#[command(name = "heedful", version, arg_required_else_help = true, after_long_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  heedful demo
      train a small Chinese–English Transformer, without any data of your own

  heedful train --src train.en --tgt train.de --valid-src valid.en --valid-tgt valid.de --out run
  heedful translate run news.en -o news.de
  heedful evaluate news.de --ref news.ref.de
      train a translator, use it, and measure its BLEU

`heedful COMMAND --help` explains a command with examples; `-h` is the short form.";

#[derive(Subcommand)]
enum Command {
    Demo(commands::demo::Arguments),
    Train(Box<commands::train::Arguments>),
    Translate(Box<commands::translate::Arguments>),
    Classify(commands::classify::Arguments),
    Generate(commands::generate::Arguments),
    Fill(commands::fill::Arguments),
    Score(commands::score::Arguments),
    Evaluate(commands::evaluate::Arguments),
    Explain(Box<commands::explain::Arguments>),
    Compare(Box<commands::compare::Arguments>),
    Serve(Box<commands::serve::Arguments>),
    Average(commands::average::Arguments),
    Vocab(commands::vocab::Arguments),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Demo(arguments) => commands::demo::run(&arguments),
        Command::Train(arguments) => commands::train::run(&arguments),
        Command::Translate(arguments) => commands::translate::run(&arguments),
        Command::Classify(arguments) => commands::classify::run(&arguments),
        Command::Generate(arguments) => commands::generate::run(&arguments),
        Command::Fill(arguments) => commands::fill::run(&arguments),
        Command::Score(arguments) => commands::score::run(&arguments),
        Command::Evaluate(arguments) => commands::evaluate::run(&arguments),
        Command::Explain(arguments) => commands::explain::run(&arguments),
        Command::Compare(arguments) => commands::compare::run(&arguments),
        Command::Serve(arguments) => commands::serve::run(&arguments),
        Command::Average(arguments) => commands::average::run(&arguments),
        Command::Vocab(arguments) => commands::vocab::run(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        // A reader that has seen enough, as in `heedful demo | head`, is no error.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("heedful: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
