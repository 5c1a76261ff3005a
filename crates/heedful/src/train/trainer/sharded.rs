//! Steps computed by the ranks of a team: each rank computes some of the batches and owns a shard of the
//! optimizer state.

use heedful_tensor::collective::Failure;
use heedful_tensor::ops::{BatchLoss, MovingAverage, PendingStep};
use heedful_tensor::{Device, OutOfMemory, flops};

use super::{Command, StepTrainer, TrainError, TrainerOptions};
use crate::data::batch::Batch;
use crate::layers::Pass;
use crate::models::Model;
use crate::recipe::Recipe;
use crate::tasks::ModelConfig;
use crate::train::team::{RankDevice, Team, TrainerSetup, gather_losses};

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
    /// The leader's trainer: the whole team computes its steps.
    pub(crate) fn leading(
        team: &Team,
        device: Device,
        model: M,
        config: &ModelConfig,
        recipe: &Recipe,
    ) -> Result<StepTrainer<M>, JoinError> {
        let (config, recipe_text) = (config.clone(), recipe.to_toml());
        let setup = TrainerSetup { config, recipe: recipe_text, device: device.into() };
        team.announce(&Command::Begin(Box::new(setup)))?;
        StepTrainer::in_team(model, recipe.trainer_options(), team.clone(), device.into())
    }

    /// A trainer on one rank of a team, with the leader's parameters. The optimizer state is sharded over CPU
    /// ranks and replicated on GPUs.
    pub(crate) fn in_team(
        model: M,
        options: TrainerOptions,
        team: Team,
        device: RankDevice,
    ) -> Result<StepTrainer<M>, JoinError> {
        let params = model.params();
        params.set_from_first(team.group())?;
        if device == RankDevice::Gpu {
            team.join_gpus()?;
            params.move_to(device.into())?;
            return Ok(StepTrainer { team: Some(team), ..StepTrainer::new(model, options) });
        }
        let average = options.average_decay.map(|decay| MovingAverage::sharded(params, decay, team.group()));
        let mut trainer = StepTrainer::new(model, TrainerOptions { average_decay: None, ..options });
        trainer.optimizer.divide(trainer.model.params(), options.adam, team.group());
        trainer.average = average;
        trainer.team = Some(team);
        Ok(trainer)
    }

    pub(super) fn compute_sharded(
        &mut self,
        team: &Team,
        batches: &[Batch],
        tokens: usize,
        pass: &mut Pass,
    ) -> Result<(f32, PendingStep), Failure> {
        let (group, own) = (team.group(), team.own(batches.len()));
        let (computed, operations) = flops::counted(|| self.gradients(batches, own, tokens, pass));
        let (losses, gradients) = computed?;
        let losses: Vec<BatchLoss> = losses.iter().map(|(loss, share)| BatchLoss::of(loss, *share)).collect();
        let (losses, statistics) = gather_losses(group, &losses, pass.take_statistics(), operations)?;
        statistics.into_iter().for_each(|statistics| pass.record_statistics(statistics));
        let (params, average) = (self.model.params(), self.average.as_mut());
        self.optimizer.submit_sharded(params, &mut self.guard, &losses, average, (group, gradients))
    }

    /// Executes the leader's command on a follower.
    pub(crate) fn execute(&mut self, command: Command<'_>) -> Result<(), Failure> {
        match command {
            Command::Step(batches) => match self.step_over(&batches) {
                // The leader reports the divergence and decides how to continue.
                Ok(_) | Err(TrainError::Diverged { .. }) => Ok(()),
                Err(TrainError::Ranks(failure)) => Err(failure),
                Err(error) => Err(Failure { call: "step", error: error.to_string() }),
            },
            Command::State => self.gathered_state().map(drop),
            Command::Average => self.gathered_average().map(drop),
            Command::Restore { step, norms } => self.restore_sharded(step, &norms, None),
            Command::Begin(_) | Command::End => unreachable!("handled by the follower"),
        }
    }
}
