//! The command `heedful`: trains, runs, measures and explains attention models.

#![forbid(unsafe_code)]

mod command_line;

mod ineffective_flags;
mod machine;
mod progress;

mod interrupt;
mod output;

mod results;
mod text_input;

mod long_text;

mod attention_file;

mod heatmap;

mod commands;

use std::io;
use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand};

use crate::interrupt::Interrupted;

/// Train, run, measure and explain attention models
///
/// Two aligned text files in, a translator out. The same program evaluates it, serves it over HTTP and shows
/// what every attention head attends to.
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

  heedful train --src train.en --tgt train.de --valid-src valid.en --valid-tgt valid.de --time 20m --out run
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
    Attend(commands::attend::Arguments),
    Compare(Box<commands::compare::Arguments>),
    Serve(Box<commands::serve::Arguments>),
    Average(commands::average::Arguments),
    Import(commands::import::Arguments),
    Export(commands::export::Arguments),
    Models(commands::models::Arguments),
    Quantize(commands::quantize::Arguments),
    Pack(commands::pack::Arguments),
    Shortlist(commands::shortlist::Arguments),
    Seal(commands::seal::Arguments),
    Vocab(commands::vocab::Arguments),
    Doctor(commands::doctor::Arguments),
    Completions(commands::completions::Arguments),
}

/// All commands with their arguments, for tests and generated documentation.
pub fn command_line() -> clap::Command {
    command_line::with_rules(Arguments::command())
}

/// Runs the command named by this process's arguments. `commit` is the commit the program was built from, if
/// known.
pub fn main(commit: Option<&str>) -> ExitCode {
    match run(command_line::parse::<Arguments>(|| long_version(commit)).command) {
        Ok(()) => ExitCode::SUCCESS,
        // A closed pipe, as in `heedful demo | head`, is not an error.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => match error.downcast_ref::<Interrupted>() {
            Some(interrupted) => {
                if let Some(message) = interrupted.message() {
                    eprintln!("heedful: {message}");
                }
                Interrupted::status()
            }
            None => {
                eprintln!("heedful: {error:#}");
                ExitCode::FAILURE
            }
        },
    }
}

/// The lines of `--version`: the version with its commit, the features and the instruction set in use.
fn long_version(commit: Option<&str>) -> String {
    let features =
        [("cuda", cfg!(feature = "cuda")), ("mpi", cfg!(feature = "mpi")), ("png", cfg!(feature = "png"))];
    let features: Vec<&str> = features.iter().filter(|(_, is_in)| *is_in).map(|(name, _)| *name).collect();
    let commit = commit.map(|commit| format!(" ({commit})")).unwrap_or_default();
    let features = if features.is_empty() { "none".to_owned() } else { features.join(", ") };
    let isa = heedful::tensor::cpu::isa::current();
    format!("{}{commit}\nfeatures: {features}\ninstruction set: {isa}", env!("CARGO_PKG_VERSION"))
}

fn run(command: Command) -> Result<()> {
    // The server handles signals itself: SIGHUP reloads its models.
    if !matches!(command, Command::Serve(_)) {
        interrupt::handle_signals()?;
    }
    match command {
        Command::Demo(arguments) => commands::demo::run(&arguments),
        Command::Train(arguments) => commands::train::run(&arguments),
        Command::Translate(arguments) => commands::translate::run(&arguments),
        Command::Classify(arguments) => commands::classify::run(&arguments),
        Command::Generate(arguments) => commands::generate::run(&arguments),
        Command::Fill(arguments) => commands::fill::run(&arguments),
        Command::Score(arguments) => commands::score::run(&arguments),
        Command::Evaluate(arguments) => commands::evaluate::run(&arguments),
        Command::Explain(arguments) => commands::explain::run(&arguments),
        Command::Attend(arguments) => commands::attend::run(&arguments),
        Command::Compare(arguments) => commands::compare::run(&arguments),
        Command::Serve(arguments) => commands::serve::run(&arguments),
        Command::Average(arguments) => commands::average::run(&arguments),
        Command::Import(arguments) => commands::import::run(&arguments),
        Command::Export(arguments) => commands::export::run(&arguments),
        Command::Models(arguments) => commands::models::run(&arguments),
        Command::Quantize(arguments) => commands::quantize::run(&arguments),
        Command::Pack(arguments) => commands::pack::run(&arguments),
        Command::Shortlist(arguments) => commands::shortlist::run(&arguments),
        Command::Seal(arguments) => commands::seal::run(&arguments),
        Command::Vocab(arguments) => commands::vocab::run(&arguments),
        Command::Doctor(arguments) => commands::doctor::run(&arguments),
        Command::Completions(arguments) => commands::completions::run(&arguments),
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every command and subcommand that runs something, with its path.
    fn commands() -> Vec<(String, clap::Command)> {
        fn walk(path: &str, command: &clap::Command, found: &mut Vec<(String, clap::Command)>) {
            for child in command.get_subcommands().filter(|child| child.get_name() != "help") {
                let path = format!("{path} {}", child.get_name());
                walk(&path, child, found);
                found.push((path, child.clone()));
            }
        }
        let mut found = Vec::new();
        walk("heedful", &Arguments::command(), &mut found);
        found
    }

    #[test]
    fn the_command_line_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn every_command_has_a_summary_of_one_line_and_an_example_of_itself() {
        for (path, command) in commands() {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            assert!(!about.is_empty() && !about.contains('\n') && !about.ends_with('.'), "{path}: {about:?}");
            let examples = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
            assert!(examples.contains(&path), "{path}: {examples:?}");
        }
    }

    #[test]
    fn machine_flags_are_the_same_in_every_command() {
        let mut seen = std::collections::BTreeMap::new();
        for (path, command) in commands() {
            let machine = command.get_arguments().filter(|flag| {
                flag.get_help_heading() == Some("Machine")
                    && ["compute", "device", "threads"].contains(&flag.get_id().as_str())
            });
            for flag in machine {
                let description = format!("{:?} {:?}", flag.get_help(), flag.get_default_values());
                let first = seen.entry(flag.get_id().to_string()).or_insert_with(|| description.clone());
                assert_eq!(&description, first, "{path}");
            }
        }
        assert_eq!(seen.len(), 3);
    }
}
