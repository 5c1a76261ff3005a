//! A recipe on the command line: a file, a flag for every key of one, and `--set`.
//!
//! Flags are made from the table of keys, so `--help` says of each what the recipe's comment says.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Arg, ArgAction, ArgMatches, Command, FromArgMatches, value_parser};
use heedful::recipe::{Key, Layers, Recipe, SECTIONS};

/// What was said of the recipe.
pub(crate) struct RecipeArguments {
    file: Option<PathBuf>,
    flags: Vec<(&'static Key, Vec<String>)>,
    sets: Vec<String>,
}

impl RecipeArguments {
    /// The recipe: preset, then the file (or else `usual`, if there is one), then flags, then `--set`, and the last word
    /// counts.
    pub(crate) fn recipe(&self, usual: Option<&Path>) -> Result<Recipe> {
        let mut layers = Layers::new();
        if let Some(path) = self.file.as_deref().or(usual) {
            layers.file(path)?;
        }
        for (key, values) in &self.flags {
            layers.flag(key, values);
        }
        self.sets.iter().try_for_each(|set| layers.set(set))?;
        Ok(layers.resolve()?)
    }
}

impl clap::Args for RecipeArguments {
    fn augment_args(command: Command) -> Command {
        let command = command.args([
            Arg::new("RECIPE")
                .help("A TOML file; without one, name at least --src and --tgt (or --label-text, or --text, with --task)")
                .value_parser(value_parser!(PathBuf)),
            Arg::new("set")
                .long("set")
                .value_name("KEY=VALUE")
                .help("Set a key of the recipe, training.dropout=0.3, or dropout=0.3 where that is clear")
                .action(ArgAction::Append),
        ]);
        let usual = Recipe::default();
        let flags = SECTIONS.iter().flat_map(|section| {
            let heading = format!("[{}] {}", section.name, section.help);
            section.keys.iter().map(move |key| (heading.clone(), key))
        });
        command.args(flags.map(|(heading, key)| flag(key, &usual).help_heading(heading)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        RecipeArguments::augment_args(command)
    }
}

impl FromArgMatches for RecipeArguments {
    fn from_arg_matches(matches: &ArgMatches) -> Result<RecipeArguments, clap::Error> {
        let typed = |key: &'static Key| {
            let values = matches.get_many::<String>(&key.flag())?.cloned().collect();
            Some((key, values))
        };
        Ok(RecipeArguments {
            file: matches.get_one("RECIPE").cloned(),
            flags: Recipe::keys().filter_map(typed).collect(),
            sets: matches.get_many("set").into_iter().flatten().cloned().collect(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = RecipeArguments::from_arg_matches(matches)?;
        Ok(())
    }
}

fn flag(key: &'static Key, usual: &Recipe) -> Arg {
    let usual = match key.value(usual).to_string() {
        // Files have no usual name.
        empty if empty == "[]" => String::new(),
        usual => format!(" [default: {}]", usual.trim_matches('"')),
    };
    let action = if key.many { ArgAction::Append } else { ArgAction::Set };
    let argument = Arg::new(key.flag())
        .long(key.flag())
        .value_name(value_name(key))
        .help(format!("{}{usual}", key.help))
        .allow_negative_numbers(true)
        .action(action);
    if key.many { argument.num_args(1..) } else { argument }
}

fn value_name(key: &Key) -> &'static str {
    match key.expects {
        "a whole number" => "N",
        "a number" => "X",
        "true or false" => "true|false",
        "a path or a list of paths" => "FILE",
        "a path" => "PATH",
        expects if expects.starts_with("a time") => "TIME",
        _ => "NAME",
    }
}
