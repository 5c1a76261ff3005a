//! Flag parsing shared by all commands.
//!
//! ```text
//! --length-penalty -1     a negative number is a value, as with =
//! --beam 2 --beam 4       the last one counts: scripts append flags to those of other scripts
//! --beam 4 --sample       refused: one of them would be without effect
//! --sorce                 did you mean --src? Flags are found by the word that they stand for, too
//! ```

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory, FromArgMatches};

use crate::ineffective_flags;

mod hints;
mod short_help;

/// Words that flags abbreviate.
const WORDS: [(&str, &str); 5] =
    [("src", "source"), ("tgt", "target"), ("ref", "reference"), ("valid", "validation"), ("out", "output")];

/// Parses the arguments of the program; ends it with a message if they are wrong.
pub(crate) fn parse<A: CommandFactory + FromArgMatches>(long_version: impl Fn() -> String) -> A {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let mut command = A::command();
    // It detects the instruction set, which other commands do only when they compute.
    if arguments.iter().any(|argument| argument == "--version") {
        command = command.long_version(long_version());
    }
    let parsed = parse_from(command, &arguments);
    parsed.unwrap_or_else(|error| error.exit())
}

fn parse_from<A: FromArgMatches>(command: Command, arguments: &[OsString]) -> Result<A, clap::Error> {
    let mut command = with_rules(command);
    let matches = command.try_get_matches_from_mut(arguments).map_err(|error| {
        let (mut error, names) = (error, flags(&command, arguments));
        if let Some(hint) = hints::find(&error, arguments, &names) {
            // Clap's own suggestion stands in both.
            error.remove(ContextKind::SuggestedArg);
            error.remove(ContextKind::Usage);
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint.into()]));
        } else if error.kind() == ErrorKind::UnknownArgument
            && let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg)
            && let Some(meant) = suggestion(unknown, &names)
        {
            error.insert(ContextKind::SuggestedArg, ContextValue::String(format!("--{meant}")));
        }
        error
    })?;
    if let Some(sentence) = ineffective_flags::find(&matches) {
        return Err(command.error(ErrorKind::ArgumentConflict, sentence));
    }
    A::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// The rules for negative numbers, repeated flags, `-o` and the short help, in this command and all below it.
pub(crate) fn with_rules(command: Command) -> Command {
    let takes_values = |argument: &clap::Arg| argument.get_action().takes_values();
    let command = command.args_override_self(true).mut_args(|argument| {
        if takes_values(&argument) { argument.allow_negative_numbers(true) } else { argument }
    });
    let command = short_help::of(with_output_names(command));
    let names: Vec<String> = command.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    names.iter().fold(command, |command, name| command.mut_subcommand(name, with_rules))
}

/// `-o`, `--output` and `--out` are the same in every command that has one output.
fn with_output_names(command: Command) -> Command {
    let has = |name| command.get_arguments().any(|argument| argument.get_long() == Some(name));
    if has("out") && has("output") {
        return command;
    }
    command.mut_args(|argument| match argument.get_long() {
        Some("out") => argument.short('o').visible_alias("output"),
        Some("output") => argument.alias("out"),
        _ => argument,
    })
}

/// The flags of the command that the arguments name.
fn flags(command: &Command, arguments: &[OsString]) -> Vec<String> {
    let mut command = command;
    for argument in arguments.iter().skip(1) {
        match argument.to_str().and_then(|name| command.find_subcommand(name)) {
            Some(found) => command = found,
            None => break,
        }
    }
    command.get_arguments().filter_map(|argument| argument.get_long()).map(str::to_owned).collect()
}

/// The flag that was most likely meant, if one is near: by its name, or by the words that it abbreviates.
fn suggestion<'n>(unknown: &str, names: &'n [String]) -> Option<&'n String> {
    let unknown = unknown.trim_start_matches('-').split('=').next().unwrap_or_default();
    let spelled = |name: &str| {
        let word = |part: &str| {
            WORDS.iter().find(|(short, _)| *short == part).map_or(part.to_owned(), |w| w.1.to_owned())
        };
        name.split('-').map(word).collect::<Vec<_>>().join("-")
    };
    let distance = |name: &&String| {
        strsim::osa_distance(unknown, name).min(strsim::osa_distance(unknown, &spelled(name)))
    };
    // Of two equally near flags, prefer the one with the same first letter.
    let begins_otherwise = |name: &&String| name.chars().next() != unknown.chars().next();
    let nearest = names.iter().min_by_key(|name| (distance(name), begins_otherwise(name)));
    nearest.filter(|name| distance(name) <= unknown.len().div_ceil(3).min(3))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, PartialEq, Parser)]
    struct Program {
        #[command(subcommand)]
        command: Commands,
    }

    #[derive(Debug, PartialEq, clap::Subcommand)]
    enum Commands {
        Search {
            text: Vec<String>,
            #[arg(long, default_value_t = 0.6)]
            length_penalty: f64,
            #[arg(long)]
            src: Option<String>,
            #[arg(long)]
            score: Option<String>,
            #[arg(long)]
            quiet: bool,
        },
    }

    fn parsed(line: &str) -> Result<Program, clap::Error> {
        let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        parse_from(Program::command(), &arguments)
    }

    #[test]
    fn negative_numbers_are_values_and_the_last_flag_counts() {
        let Commands::Search { text, length_penalty, src, quiet, .. } = parsed(
            "program search --length-penalty 1 -3 --quiet --src a --length-penalty -0.5 --quiet --src b",
        )
        .expect("good arguments")
        .command;
        assert_eq!((text, length_penalty), (vec!["-3".to_owned()], -0.5));
        assert_eq!((src.as_deref(), quiet), (Some("b"), true));
    }

    #[test]
    fn a_flag_is_suggested_by_the_word_that_it_stands_for() {
        for (flag, meant) in [("--sorce", "'--src'"), ("--scr=a", "'--src'"), ("--scroe", "'--score'")] {
            let message = parsed(&format!("program search {flag} x")).expect_err("no such flag").to_string();
            assert!(message.contains(&format!("a similar argument exists: {meant}")), "{message}");
        }
        let message = parsed("program search --entirely-different x").expect_err("no such flag").to_string();
        assert!(!message.contains("similar"), "{message}");
    }
}
