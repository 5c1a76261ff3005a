//! Steps that the ranks of a team compute together: each has some of the batches and owns a part of the optimizer's state.

use heedful_tensor::collective::Failure;
use heedful_tensor::ops::{BatchLoss, MovingAverage, PendingStep};
use heedful_tensor::{Device, OutOfMemory, flops};

use super::{Order, StepTrainer, TrainError, TrainerOptions};
use crate::data::batch::Batch;
use crate::layers::Pass;
use crate::models::Model;
use crate::recipe::Recipe;
use crate::tasks::ModelConfig;
use crate::train::team::{Beginning, Place, Team, gather_losses};

/// Why a trainer cannot join a team.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JoinError {
    /// The other ranks cannot be reached.
    #[error(transparent)]
    Ranks(#[from] Failure),
    /// The device has no memory for the model with its optimizer.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
}

impl<M: Model> StepTrainer<M> {
    /// The leader's trainer of a model that this recipe trains: its steps are computed by the whole team.
    pub(crate) fn leading(
        team: &Team,
        device: Device,
        model: M,
        config: &ModelConfig,
        recipe: &Recipe,
    ) -> Result<StepTrainer<M>, JoinError> {
        let (config, recipe_text) = (config.clone(), recipe.to_toml());
        let beginning = Beginning { config, recipe: recipe_text, place: device.into() };
        team.announce(&Order::Begin(Box::new(beginning)))?;
        StepTrainer::in_team(model, recipe.trainer_options(), team.clone(), device.into())
    }

    /// A trainer whose steps a team computes; all get the leader's parameters. CPUs own a part of the optimizer's state
    /// each, GPUs have all of it.
    pub(crate) fn in_team(
        model: M,
        options: TrainerOptions,
        team: Team,
        place: Place,
    ) -> Result<StepTrainer<M>, JoinError> {
        let params = model.params();
        params.set_from_first(team.group())?;
        if place == Place::Gpu {
            team.join_gpus()?;
            params.move_to(place.into())?;
            return Ok(StepTrainer { team: Some(team), ..StepTrainer::new(model, options) });
        }
        let average = options.average_decay.map(|decay| MovingAverage::divided(params, decay, team.group()));
        let mut trainer = StepTrainer::new(model, TrainerOptions { average_decay: None, ..options });
        trainer.optimizer.divide(trainer.model.params(), options.adam, team.group());
        trainer.average = average;
        trainer.team = Some(team);
        Ok(trainer)
    }

    pub(super) fn compute_divided(
        &mut self,
        team: &Team,
        batches: &[Batch],
        tokens: usize,
        pass: &mut Pass,
    ) -> Result<(f32, PendingStep), Failure> {
        let (group, own) = (team.group(), team.own(batches.len()));
        let (computed, operations) = flops::counted(|| self.gradients(batches, own, tokens, pass));
        let (losses, gradients) = computed?;
        let losses: Vec<BatchLoss> =
            losses.iter().map(|(found, share)| BatchLoss::of(found, *share)).collect();
        let (losses, statistics) = gather_losses(group, &losses, pass.take_statistics(), operations)?;
        statistics.into_iter().for_each(|statistics| pass.note(statistics));
        let (params, average) = (self.model.params(), self.average.as_mut());
        self.optimizer.submit_divided(params, &mut self.guard, &losses, average, (group, gradients))
    }

    /// Does a follower's part of what the leader does.
    pub(crate) fn obey(&mut self, order: Order<'_>) -> Result<(), Failure> {
        match order {
            Order::Step(batches) => match self.step_over(&batches) {
                // The leader tells why, and what comes of it.
                Ok(_) | Err(TrainError::Diverged { .. }) => Ok(()),
                Err(TrainError::Ranks(failure)) => Err(failure),
                Err(error) => Err(Failure { call: "step", error: error.to_string() }),
            },
            Order::State => self.gathered_state().map(drop),
            Order::Average => self.gathered_average().map(drop),
            Order::Restore { step, norms } => self.restore_divided(step, &norms, None),
            Order::Begin(_) | Order::End => unreachable!("not for a trainer"),
        }
    }
}
