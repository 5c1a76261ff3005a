//! A follower rank, which executes the leader's commands.

use std::fmt::Display;
use std::path::Path;

use heedful_tensor::collective::Failure;
use heedful_tensor::{Device, OutOfMemory};

use super::frozen::freeze;
use crate::models::ConfigError;
use crate::recipe::{Author, Overrides, RecipeError};
use crate::tasks;
use crate::train::team::{Command, Team};
use crate::train::{JoinError, StepTrainer};
use crate::{Error, Result};

/// Executes the leader's commands until the run ends.
pub fn follow(team: &Team) -> Result<()> {
    let unreachable = |failure: Failure| Error::new(format!("the other ranks cannot be reached: {failure}"));
    let other = |what: &str, why: &dyn Display| {
        Error::new(format!("the leader's {what} here ({why}): start the same heedful everywhere"))
    };
    let unreadable = |why: RecipeError| other("recipe cannot be read", &why);
    let unbuildable = |why: ConfigError| other("model cannot be built", &why);
    let large = |why: OutOfMemory| {
        let what = "the model with its optimizer does not fit into the memory of this rank's GPU";
        Error::new(format!("{what} ({why})"))
    };
    let mut trainer = None;
    loop {
        match (team.next_command().map_err(unreachable)?, &mut trainer) {
            (Command::End, _) => return Ok(()),
            (Command::Begin(setup), _) => {
                let mut overrides = Overrides::new();
                overrides.written_by(Author::Program);
                overrides.text(&setup.recipe, Path::new("recipe.toml")).map_err(unreadable)?;
                let recipe = tasks::resolve(overrides).map_err(unreadable)?;
                let model = setup.config.build(recipe.training.seed).map_err(unbuildable)?;
                freeze(&recipe, model.params());
                let options = recipe.trainer_options();
                let device = setup.device;
                let build = || StepTrainer::in_team(model, options, team.clone(), device);
                let built = Device::from(device).catch_oom(build).map_err(JoinError::from).flatten();
                trainer = Some(built.map_err(|error| match error {
                    JoinError::Ranks(failure) => unreachable(failure),
                    JoinError::OutOfMemory(full) => large(full),
                })?);
            }
            (command, Some(trainer)) => trainer.execute(command).map_err(unreachable)?,
            (command, None) => unreachable!("no trainer for {command:?}"),
        }
    }
}
