//! `heedful`: trains, runs, measures and explains attention models.

#![forbid(unsafe_code)]

mod commands;
mod heatmap;
mod interrupt;

use std::io;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Train, run, measure and explain attention models.
#[derive(Parser)]
#[command(name = "heedful", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Demo(commands::demo::Arguments),
    Train(Box<commands::train::Arguments>),
    Translate(Box<commands::translate::Arguments>),
    Classify(commands::classify::Arguments),
    Generate(commands::generate::Arguments),
    Fill(commands::fill::Arguments),
    Score(commands::score::Arguments),
    Serve(Box<commands::serve::Arguments>),
    Average(commands::average::Arguments),
    Evaluate(commands::evaluate::Arguments),
    Explain(Box<commands::explain::Arguments>),
    Compare(Box<commands::compare::Arguments>),
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
        Command::Serve(arguments) => commands::serve::run(&arguments),
        Command::Average(arguments) => commands::average::run(&arguments),
        Command::Evaluate(arguments) => commands::evaluate::run(&arguments),
        Command::Explain(arguments) => commands::explain::run(&arguments),
        Command::Compare(arguments) => commands::compare::run(&arguments),
        Command::Vocab(arguments) => commands::vocab::run(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        // `heedful demo | head` has seen enough: no error.
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
