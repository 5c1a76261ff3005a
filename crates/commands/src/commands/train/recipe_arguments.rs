//! A recipe on the command line: a file, a flag for every key, and `--set`.
//!
//! Flags are generated from the table of keys, so `--help` describes each flag with the text of the recipe's
//! comments.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Arg, ArgAction, ArgMatches, Command, FromArgMatches, value_parser};
use heedful::recipe::{Author, Key, Literal, Overrides, Recipe, SECTIONS, find_key};
use heedful::tasks;

/// How values override each other, for the help of every command that takes a recipe.
pub(crate) const PRECEDENCE: &str = "\
A recipe is a TOML file; every key of it is also a flag. Values start from the preset (--preset); the recipe file overrides \
the preset, a flag overrides the file, and --set overrides all. The defaults below are those of the preset small.";

/// The arguments that define a recipe.
pub(crate) struct RecipeArguments {
    file: Option<PathBuf>,
    flags: Vec<(&'static Key, Vec<String>)>,
    sets: Vec<String>,
}

impl RecipeArguments {
    /// The recipe: the preset, overridden by the file, by flags, by `--set`. When a run is resumed, `resumed`
    /// is its recipe and replaces the file.
    pub(crate) fn recipe(&self, resumed: Option<&Path>) -> Result<Recipe> {
        let mut overrides = Overrides::new();
        if let Some(path) = &self.file {
            overrides.file(path)?;
        } else if let Some(path) = resumed {
            overrides.written_by(Author::Program);
            overrides.file(path)?;
            overrides.written_by(Author::User);
        }
        for (key, values) in &self.flags {
            overrides.flag(key, values);
        }
        self.sets.iter().try_for_each(|set| overrides.set(set))?;
        Ok(tasks::resolve(overrides)?)
    }

    /// The recipe `base` of the program, overridden by flags and by `--set`.
    pub(crate) fn recipe_over(&self, base: &Recipe) -> Result<Recipe> {
        let mut overrides = Overrides::new();
        overrides.written_by(Author::Program);
        overrides.text(&base.to_toml(), Path::new("recipe.toml"))?;
        overrides.written_by(Author::User);
        for (key, values) in &self.flags {
            overrides.flag(key, values);
        }
        self.sets.iter().try_for_each(|set| overrides.set(set))?;
        Ok(tasks::resolve(overrides)?)
    }

    /// The same arguments with another recipe file, or none.
    pub(crate) fn with_file(self, file: Option<PathBuf>) -> RecipeArguments {
        RecipeArguments { file, ..self }
    }

    /// The last value that flags or `--set` give a key, as written.
    pub(crate) fn value(&self, path: &str) -> Option<String> {
        let is_it = |key: &Key| key.path() == path;
        let flag =
            self.flags.iter().find(|(key, _)| is_it(key)).and_then(|(_, values)| values.last().cloned());
        let set = self.sets.iter().rev().find_map(|set| {
            let (name, value) = set.split_once('=')?;
            find_key(name.trim())
                .ok()
                .filter(|key| is_it(key))
                .map(|_| value.trim().trim_matches('"').to_owned())
        });
        set.or(flag)
    }

    /// Whether the recipe file or a flag may name training text.
    pub(crate) fn names_text(&self) -> bool {
        let is_text = |key: &Key| key.section == "data" && key.many;
        let named = |set: &String| set.split_once('=').and_then(|(name, _)| find_key(name.trim()).ok());
        self.file.is_some()
            || self.flags.iter().any(|(key, _)| is_text(key))
            || self.sets.iter().filter_map(named).any(is_text)
    }
}

impl RecipeArguments {
    /// Whether flags or `--set` set a key.
    pub(crate) fn sets(&self, path: &str) -> bool {
        let is_it = |key: &Key| key.path() == path;
        let named = |set: &String| set.split_once('=').and_then(|(name, _)| find_key(name.trim()).ok());
        self.flags.iter().any(|(key, _)| is_it(key)) || self.sets.iter().filter_map(named).any(is_it)
    }
}

impl clap::Args for RecipeArguments {
    fn augment_args(command: Command) -> Command {
        let command = command.args([
            Arg::new("RECIPE")
                .help("Recipe, a TOML file [default: only the preset and the flags]")
                .value_parser(value_parser!(PathBuf)),
            Arg::new("set")
                .long("set")
                .value_name("KEY=VALUE")
                .help("Override a key of the recipe: training.dropout=0.3, or dropout=0.3 if the name is unique; repeatable")
                .action(ArgAction::Append),
        ]);
        let defaults = Recipe::default();
        let flags = SECTIONS.iter().flat_map(|section| {
            let heading = format!("[{}] {}", section.name, section.help);
            section.keys.iter().map(move |key| (heading.clone(), key))
        });
        command.args(flags.map(|(heading, key)| flag(key, &defaults).help_heading(heading)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        RecipeArguments::augment_args(command)
    }
}

impl FromArgMatches for RecipeArguments {
    fn from_arg_matches(matches: &ArgMatches) -> Result<RecipeArguments, clap::Error> {
        let given = |key: &'static Key| {
            let values = matches.get_many::<String>(&key.flag())?.cloned().collect();
            Some((key, values))
        };
        Ok(RecipeArguments {
            file: matches.get_one("RECIPE").cloned(),
            flags: Recipe::keys().filter_map(given).collect(),
            sets: matches.get_many("set").into_iter().flatten().cloned().collect(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = RecipeArguments::from_arg_matches(matches)?;
        Ok(())
    }
}

fn flag(key: &'static Key, defaults: &Recipe) -> Arg {
    let default = match key.value(defaults) {
        // Lists are of files, which have no default.
        Literal::List(_) => String::new(),
        Literal::Text(text) => format!(" [default: {text}]"),
        value => format!(" [default: {value}]"),
    };
    let action = if key.many { ArgAction::Append } else { ArgAction::Set };
    let argument = Arg::new(key.flag())
        .long(key.flag())
        .value_name(key.value_name)
        .help(format!("{}{default}", key.help))
        .allow_negative_numbers(true)
        .action(action);
    let argument = match key.former_name() {
        Some(former) => argument.alias(former),
        None => argument,
    };
    let argument = if key.name == "lr" { argument.alias("learning-rate") } else { argument };
    if key.many {
        argument.num_args(1..)
    } else if key.value_name == "true|false" {
        // The flag without a value means true.
        argument.num_args(0..=1).default_missing_value("true")
    } else {
        argument
    }
}
