//! The arguments of `heedful train`: a recipe, and what to do with it.
//!
//! They are built by hand because the flags of the recipe come from a table ([`RecipeArguments`]).
//! `--compute` is a key of the recipe, because it affects the trained weights, so `train` takes only
//! [`DeviceName`] and [`Threads`].

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};
use heedful::recipe::Recipe;
use heedful::tasks::folder::is_package;
use heedful::train::run::not_a_run;

use super::distributed::Distributed;
use super::recipe_arguments::{PRECEDENCE, RecipeArguments};
use crate::machine::{DeviceName, Threads};
use crate::output::Force;
use crate::progress::Quiet;

/// The arguments of `heedful train`.
pub(crate) struct Arguments {
    recipe: RecipeArguments,
    /// The run to resume.
    pub(crate) resume: Option<PathBuf>,
    pub(crate) print_recipe: bool,
    /// The port of the dashboard.
    pub(crate) dashboard: Option<u16>,
    pub(crate) json: bool,
    pub(crate) force: Force,
    pub(crate) quiet: Quiet,
    pub(crate) device: DeviceName,
    pub(crate) threads: Threads,
    /// How the processes of a run connect to each other.
    pub(crate) distributed: Option<Distributed>,
}

const EXAMPLES: &str = "\
Examples:
  heedful train --src train.en --tgt train.de --valid-src valid.en --valid-tgt valid.de --time 20m --out run
      a translator in twenty minutes: its size and its training are chosen for text, time and machine

  heedful train recipe.toml --dropout 0.3 --dashboard
      a recipe with a different dropout, and a web page with the training curves

  heedful train --resume run --steps 100000
      resume a stopped run, and train longer

  heedful train --preset base --print-recipe > recipe.toml
      write a recipe with every key, its default and its description

  mpirun -n 4 heedful train recipe.toml --accumulate 8 --distributed mpi
      train on four machines or sockets; one or two would give the same weights";

impl Arguments {
    /// The recipe to train. A resumed run uses the recipe in its folder, and stays in that folder.
    pub(crate) fn recipe(&self) -> Result<Recipe> {
        let of_run = self.resume.as_ref().map(|run| run.join("recipe.toml"));
        if let (Some(folder), Some(file)) = (&self.resume, &of_run)
            && !file.exists()
        {
            if is_package(folder) {
                let file = folder.display();
                bail!(
                    "{file} is a packed model without checkpoints, which cannot be resumed: give the folder of its run, or fine-tune \
                     its weights with --init-from {file} --out FOLDER"
                );
            }
            return Err(not_a_run(folder).into());
        }
        if let Some(run) = self.resume.as_ref().filter(|_| self.recipe.sets("output.out")) {
            bail!("--resume {} continues in that folder: remove --out", run.display());
        }
        let mut recipe = self.recipe.recipe(of_run.as_deref())?;
        if self.resume.is_some() {
            recipe.output.out = self.resume.clone();
        }
        Ok(recipe)
    }
}

impl Args for Arguments {
    fn augment_args(command: Command) -> Command {
        let command = command.args([
                Arg::new("resume")
                    .long("resume")
                    .value_name("RUN")
                    .help("Resume the run in this folder from its newest checkpoint")
                    .value_parser(value_parser!(PathBuf)),
                Arg::new("print-recipe")
                    .long("print-recipe")
                    .help("Print the complete recipe, every key with its description, instead of training")
                    .conflicts_with_all(["dashboard", "json"])
                    .action(ArgAction::SetTrue),
                Arg::new("dashboard")
                    .long("dashboard")
                    .value_name("PORT")
                    .help(
                        "Serve a web page with curves, samples and attention during the run; PORT 0 takes any free port \
                         [default port: 5000]",
                    )
                    .num_args(0..=1)
                    .require_equals(true)
                    .default_missing_value("5000")
                    .value_parser(value_parser!(u16))
                    .help_heading("Output"),
                Arg::new("distributed")
                    .long("distributed")
                    .value_name("WAY")
                    .help(
                        "Train with all processes started by a launcher, as in `mpirun -n 4 heedful train … --distributed mpi`: \
                         each computes some of the batches of a step (--accumulate), on its CPU or GPU; the weights have the same bits for any number of processes",
                    )
                    .value_parser(value_parser!(Distributed))
                    .help_heading("Machine"),
                Arg::new("json")
                    .long("json")
                    .help("Print the result of the run as one line of JSON")
                    .action(ArgAction::SetTrue)
                    .help_heading("Output"),
            ]);
        let command = Threads::augment_args(DeviceName::augment_args(Quiet::augment_args(
            Force::augment_args(command),
        )));
        let about =
            "Train a model from text files: a translator, or with --task a classifier or a language model";
        // Last, because each flattened struct above overwrites the command's description.
        RecipeArguments::augment_args(command)
            .about(about)
            .long_about(format!(
                "{about}.\n\n{PRECEDENCE}\n\nText comes from --src and --tgt (translator), --label-text (classifier) or \
                 --text (language models). The run's folder (--out) is a model's folder, with checkpoints, metrics and \
                 report.html. Ctrl-C saves and ends the run; --resume continues it, and the final weights are those of a \
                 run that never stopped."
            ))
            .after_long_help(EXAMPLES)
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
            json: matches.get_flag("json"),
            force: Force::from_arg_matches(matches)?,
            quiet: Quiet::from_arg_matches(matches)?,
            device: DeviceName::from_arg_matches(matches)?,
            threads: Threads::from_arg_matches(matches)?,
            distributed: matches.get_one("distributed").copied(),
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
        let separate = recipe(&["--src", "a", "--src", "b", "--tgt", "c", "--tgt", "d"]);
        assert_eq!(together, separate);
        assert_eq!(together.data.src.len(), 2);
    }

    #[test]
    fn a_resumed_run_has_its_own_recipe() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        let first = recipe(&["--dropout", "0.35", "--out", "elsewhere"]);
        std::fs::write(folder.join("recipe.toml"), first.to_toml()).expect("enough space");
        let resumed = recipe(&["--resume", folder.to_str().expect("a plain name"), "--steps", "9"]);
        assert_eq!((resumed.training.dropout, resumed.training.steps), (0.35, Some(9)));
        assert_eq!(resumed.output.out, Some(folder.to_owned()));
    }

    #[test]
    fn help_shows_every_default() {
        let help = Arguments::augment_args(Command::new("train")).render_long_help().to_string();
        // Without line breaks, which depend on the width of the terminal.
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
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
