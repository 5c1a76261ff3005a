//! A rank that follows: it builds what the leader says and computes its part.

use std::fmt::Display;
use std::path::Path;

use heedful_tensor::collective::Failure;
use heedful_tensor::{Device, OutOfMemory};

use super::frozen::freeze;
use crate::models::ConfigError;
use crate::recipe::{Author, Overrides, RecipeError};
use crate::tasks;
use crate::train::team::{Order, Team};
use crate::train::{JoinError, StepTrainer};
use crate::{Error, Result};

/// Does what the leader says until there is nothing more to do.
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
        match (team.next_order().map_err(unreachable)?, &mut trainer) {
            (Order::End, _) => return Ok(()),
            (Order::Begin(beginning), _) => {
                let mut overrides = Overrides::new();
                overrides.written_by(Author::Program);
                overrides.text(&beginning.recipe, Path::new("recipe.toml")).map_err(unreadable)?;
                let recipe = tasks::resolve(overrides).map_err(unreadable)?;
                let model = beginning.config.build(recipe.training.seed).map_err(unbuildable)?;
                freeze(&recipe, model.params());
                let options = recipe.trainer_options();
                let place = beginning.place;
                let build = || StepTrainer::in_team(model, options, team.clone(), place);
                let built = Device::from(place).fitting(build).map_err(JoinError::from).flatten();
                trainer = Some(built.map_err(|error| match error {
                    JoinError::Ranks(failure) => unreachable(failure),
                    JoinError::OutOfMemory(full) => large(full),
                })?);
            }
            (order, Some(trainer)) => trainer.obey(order).map_err(unreachable)?,
            (order, None) => unreachable!("a trainer comes before {order:?}"),
        }
    }
}
