//! The arguments of `heedful train`: a recipe, and what is done with it.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};
use heedful::recipe::Recipe;

use super::recipe::RecipeArguments;

/// What `heedful train` was asked for.
pub(crate) struct Arguments {
    recipe: RecipeArguments,
    /// Go on with the run in this folder.
    pub(crate) resume: Option<PathBuf>,
    /// Write the complete recipe to standard output instead of training.
    pub(crate) print_recipe: bool,
    /// Show the run in a page on this port while it goes on.
    pub(crate) dashboard: Option<u16>,
    /// How many threads compute; none for all cores.
    pub(crate) threads: Option<u16>,
    /// Whether to say nothing but errors.
    pub(crate) quiet: bool,
    /// Whether standard output gets the outcome as JSON.
    pub(crate) json: bool,
}

impl Arguments {
    /// The recipe: preset, then file, then flags, then `--set`, and the last word counts. A run that goes on has its
    /// recipe in its folder, and stays in that folder.
    pub(crate) fn recipe(&self) -> Result<Recipe> {
        let of_run = self.resume.as_ref().map(|run| run.join("recipe.toml"));
        let mut recipe = self.recipe.recipe(of_run.as_deref())?;
        if self.resume.is_some() {
            recipe.output.out = self.resume.clone();
        }
        Ok(recipe)
    }
}

impl Args for Arguments {
    fn augment_args(command: Command) -> Command {
        let command = command
            .about("Train a model from text files")
            .long_about(
                "Train a translator from text files, or with --task a classifier or a language model.\n\nWhat is trained, and how, is in a recipe: a TOML file whose keys \
                 are the flags below. A value comes from the preset, else from the recipe, else from its flag, else from \
                 --set, and the last word counts.",
            )
            .args([
                Arg::new("resume")
                    .long("resume")
                    .value_name("RUN")
                    .help("Go on with a run that was stopped, as if it never had been")
                    .value_parser(value_parser!(PathBuf)),
                Arg::new("print-recipe")
                    .long("print-recipe")
                    .help("Write the complete recipe to standard output instead of training")
                    .action(ArgAction::SetTrue),
                Arg::new("dashboard")
                    .long("dashboard")
                    .value_name("PORT")
                    .help("Show curves, samples and attention in a page while the run goes on [default port: 5000; 0: any]")
                    .num_args(0..=1)
                    .require_equals(true)
                    .default_missing_value("5000")
                    .value_parser(value_parser!(u16)),
                Arg::new("threads")
                    .long("threads")
                    .value_name("N")
                    .help("How many threads compute [default: all cores]")
                    .value_parser(value_parser!(u16).range(1..)),
                Arg::new("quiet").long("quiet").help("Say nothing but errors").action(ArgAction::SetTrue),
                Arg::new("json")
                    .long("json")
                    .help("Write how the run ended to standard output, as one line of JSON")
                    .action(ArgAction::SetTrue),
            ]);
        RecipeArguments::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Arguments::augment_args(command)
    }
}

impl FromArgMatches for Arguments {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Arguments, clap::Error> {
        Ok(Arguments {
            recipe: RecipeArguments::from_arg_matches(matches)?,
            resume: matches.get_one("resume").cloned(),
            print_recipe: matches.get_flag("print-recipe"),
            dashboard: matches.get_one("dashboard").copied(),
            threads: matches.get_one("threads").copied(),
            quiet: matches.get_flag("quiet"),
            json: matches.get_flag("json"),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Arguments::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &[&str]) -> Result<Arguments, clap::Error> {
        let command = Arguments::augment_args(Command::new("train")).no_binary_name(true);
        Arguments::from_arg_matches(&command.try_get_matches_from(line)?)
    }

    fn recipe(line: &[&str]) -> Recipe {
        parsed(line).expect("good arguments").recipe().expect("a good recipe")
    }

    #[test]
    fn the_command_line_is_sound() {
        Arguments::augment_args(Command::new("train")).debug_assert();
    }

    #[test]
    fn flags_set_keys_and_set_comes_last() {
        let line =
            ["--src", "a", "--tgt", "b", "--preset", "tiny", "--dropout", "0.3", "--batch-tokens", "512"];
        let trained = recipe(&[&line[..], &["--time", "30m", "--set", "dropout=0.4"]].concat());
        assert_eq!((trained.model.d_model, trained.training.batch_tokens), (64, 512));
        assert_eq!(trained.training.dropout, 0.4);
        assert_eq!(trained.training.time.map(|time| time.as_secs()), Some(1800));
    }

    #[test]
    fn several_files_may_follow_one_flag_or_several() {
        let together = recipe(&["--src", "a", "b", "--tgt", "c", "d"]);
        let apart = recipe(&["--src", "a", "--src", "b", "--tgt", "c", "--tgt", "d"]);
        assert_eq!(together, apart);
        assert_eq!(together.data.src.len(), 2);
    }

    #[test]
    fn a_run_that_goes_on_has_its_own_recipe() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        let first = recipe(&["--dropout", "0.35", "--out", "elsewhere"]);
        std::fs::write(folder.join("recipe.toml"), first.to_toml()).expect("room enough");
        let resumed = recipe(&["--resume", folder.to_str().expect("a plain name"), "--steps", "9"]);
        assert_eq!((resumed.training.dropout, resumed.training.steps), (0.35, Some(9)));
        assert_eq!(resumed.output.out, Some(folder.to_owned()));
    }

    #[test]
    fn help_says_every_default() {
        let help = Arguments::augment_args(Command::new("train")).render_long_help().to_string();
        for key in Recipe::keys() {
            assert!(help.contains(&format!("--{}", key.flag())), "{}", key.path());
        }
        assert!(help.contains("[default: 0.1]") && help.contains("[default: bf16]"), "{help}");
    }

    #[test]
    fn bad_values_are_refused_with_the_name_of_the_flag() {
        let error = parsed(&["--dropout", "2"]).expect("clap takes any text").recipe().expect_err("too much");
        assert_eq!(error.to_string(), "--dropout: training.dropout must be at least 0 and below 1, not 2");
        let error = parsed(&["--seed", "-1"]).expect("clap takes any text").recipe().expect_err("negative");
        assert_eq!(error.to_string(), "--seed: training.seed must be a whole number, not -1");
        assert!(parsed(&["--droput", "0.3"]).is_err());
    }
}
