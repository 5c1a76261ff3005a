//! A rank that follows: it builds what the leader says and computes its part.

use std::path::Path;

use heedful_tensor::collective::Failure;
use heedful_tensor::{Device, OutOfMemory};

use super::frozen::freeze;
use crate::models::ConfigError;
use crate::recipe::{Author, Overrides, RecipeError};
use crate::tasks;
use crate::train::Trainer;
use crate::train::team::{Order, Team};

/// Why a follower cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// The others cannot be reached.
    #[error("the other ranks cannot be reached: {0}")]
    Ranks(#[from] Failure),
    /// The model with what its optimizer keeps does not fit on this rank's card.
    #[error("the model with its optimizer does not fit into the memory of this rank's card ({0})")]
    DoesNotFit(#[from] OutOfMemory),
    /// The leader's recipe cannot be read: it is another version of the program.
    #[error("the leader's recipe cannot be read here ({0}): start the same heedful everywhere")]
    Recipe(#[from] RecipeError),
    /// The leader's model cannot be built: it is another version of the program.
    #[error("the leader's model cannot be built here ({0}): start the same heedful everywhere")]
    Model(#[from] ConfigError),
}

/// Does what the leader says until there is nothing more to do.
pub fn follow(team: &Team) -> Result<(), FollowError> {
    let mut trainer = None;
    loop {
        match (team.next_order()?, &mut trainer) {
            (Order::End, _) => return Ok(()),
            (Order::Begin(beginning), _) => {
                let mut overrides = Overrides::new();
                overrides.written_by(Author::Program);
                overrides.text(&beginning.recipe, Path::new("recipe.toml"))?;
                let recipe = tasks::resolve(overrides)?;
                let model = beginning.config.build(recipe.training.seed)?;
                freeze(&recipe, model.params());
                let options = recipe.trainer_options();
                let place = beginning.place;
                let build = || Trainer::in_team::<FollowError>(model, options, team.clone(), place);
                trainer = Some(Device::from(place).fitting(build)??);
            }
            (order, Some(trainer)) => trainer.obey(order)?,
            (order, None) => unreachable!("a trainer comes before {order:?}"),
        }
    }
}
