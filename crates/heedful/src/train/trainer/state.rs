//! Saves and restores the complete state of a trainer.

use heedful_tensor::collective::Failure;

use super::{Command, StepTrainer};
use crate::models::Model;
use crate::store::weights::Weights;
use crate::train::team::Team;
use crate::train::{StateError, TrainerState};

impl<M: Model> StepTrainer<M> {
    /// A copy of the complete state.
    ///
    /// # Panics
    /// If reports of submitted steps are pending: see [`StepTrainer::drain`]. If the state is sharded over
    /// ranks: see [`StepTrainer::gathered_state`].
    pub fn state(&self) -> TrainerState {
        assert!(self.sharding_team().is_none(), "StepTrainer::state: the state is sharded");
        let (mean, square) = self.optimizer.moments_to_vec();
        let average = self.average.as_ref().map(|average| average.to_vec());
        self.state_with([mean, square], average)
    }

    /// Gathers a copy of the complete state from all ranks; only the leader receives it.
    ///
    /// # Panics
    /// If reports of submitted steps are pending: see [`StepTrainer::drain`].
    pub(crate) fn gathered_state(&self) -> Result<Option<TrainerState>, Failure> {
        let Some(team) = self.sharding_team() else { return Ok(Some(self.state())) };
        team.announce(&Command::State)?;
        let moments = self.optimizer.gathered_moments(team.group())?;
        let average = self.average.as_ref().map(|average| average.gathered(team.group())).transpose()?;
        Ok(moments.map(|moments| self.state_with(moments, average.flatten())))
    }

    /// The team, if the state is sharded over its ranks (not replicated on GPUs).
    fn sharding_team(&self) -> Option<&Team> {
        self.team.as_ref().filter(|team| team.gpus().is_none())
    }

    fn state_with(&self, [mean, square]: [Vec<f32>; 2], average: Option<Vec<f32>>) -> TrainerState {
        assert!(self.pending.is_empty(), "StepTrainer::state: steps are pending; drain them first");
        let params = self.model.params();
        TrainerState {
            step: self.optimizer.steps(),
            parameters: Weights::of(params),
            mean: Weights::from_flat(params, mean),
            square: Weights::from_flat(params, square),
            average: average.map(|average| Weights::from_flat(params, average)),
            norms: self.guard.norms(),
        }
    }

    /// Restores `state`: training continues bit for bit as in the original trainer. On an error nothing
    /// changes.
    pub fn restore(&mut self, state: &TrainerState) -> Result<(), StateError> {
        let params = self.model.params();
        let flat = |weights: &Weights| weights.flat(params).map_err(StateError::Model);
        let parameters = flat(&state.parameters)?;
        let (mean, square) = (flat(&state.mean)?, flat(&state.square)?);
        let average = state.average.as_ref().map(flat).transpose()?;
        match (&self.average, &average) {
            (Some(_), None) => return Err(StateError::MissingAverage),
            (None, Some(_)) => return Err(StateError::UnexpectedAverage),
            (Some(_), Some(_)) | (None, None) => {}
        }
        self.pending.drain(..).for_each(|pending| pending.wait());
        params.set(&parameters);
        if self.team.is_some() {
            let optimizer_state = OptimizerState { moments: [&mean, &square], average: average.as_deref() };
            return Ok(self.restore_sharded(state.step, &state.norms, Some(optimizer_state))?);
        }
        params.clear_gradients();
        if let (Some(ours), Some(theirs)) = (&mut self.average, &average) {
            ours.restore(state.step, theirs);
        }
        self.optimizer.restore(state.step, &mean, &square);
        self.guard.restore(&state.norms);
        Ok(())
    }

    /// Distributes the leader's state over the ranks: parameters to all, the rest sharded or, on GPUs,
    /// replicated.
    pub(super) fn restore_sharded(
        &mut self,
        step: u64,
        norms: &[f32],
        optimizer_state: Option<OptimizerState<'_>>,
    ) -> Result<(), Failure> {
        let team = self.team.clone().expect("a sharded state belongs to a team");
        team.announce(&Command::Restore { step, norms: norms.to_vec() })?;
        let (group, params) = (team.group(), self.model.params());
        params.set_from_first(group)?;
        params.clear_gradients();
        let moments = optimizer_state.as_ref().map(|optimizer_state| optimizer_state.moments);
        let average = optimizer_state.and_then(|optimizer_state| optimizer_state.average);
        if team.gpus().is_some() {
            let [mean, square] =
                [0, 1].map(|moment| group.broadcast_numbers(moments.map(|both| both[moment])));
            self.optimizer.restore(step, &mean?, &square?);
            if let Some(ours) = &mut self.average {
                ours.restore(step, &group.broadcast_numbers(average)?);
            }
        } else {
            self.optimizer.restore_sharded(step, group, moments)?;
            if let Some(ours) = &mut self.average {
                ours.restore_sharded(step, group, average)?;
            }
        }
        self.guard.restore(norms);
        Ok(())
    }

    /// Runs `work` on the model with the averaged parameters, if there is a moving average.
    ///
    /// # Panics
    /// If the state is sharded over ranks: see [`StepTrainer::with_gathered_average`].
    pub fn with_average<R>(&mut self, work: impl FnOnce(&M) -> R) -> R {
        assert!(self.sharding_team().is_none(), "StepTrainer::with_average: the state is sharded");
        let Some(average) = &mut self.average else { return work(&self.model) };
        average.swap(self.model.params());
        let result = work(&self.model);
        average.swap(self.model.params());
        result
    }

    /// As [`StepTrainer::with_average`], on the leader, gathering the average from all ranks.
    pub(crate) fn with_gathered_average<R>(&mut self, work: impl FnOnce(&M) -> R) -> Result<R, Failure> {
        if self.sharding_team().is_none() {
            return Ok(self.with_average(work));
        }
        let Some(average) = self.gathered_average()? else { return Ok(work(&self.model)) };
        let params = self.model.params();
        let trained = params.to_vec();
        params.set(&average);
        let result = work(&self.model);
        params.set(&trained);
        Ok(result)
    }

    /// Gathers the sharded moving average on the leader of a team, if there is one.
    pub(super) fn gathered_average(&self) -> Result<Option<Vec<f32>>, Failure> {
        let (Some(team), Some(average)) = (self.sharding_team(), &self.average) else { return Ok(None) };
        team.announce(&Command::Average)?;
        average.gathered(team.group())
    }
}

/// The optimizer state on the leader, besides the parameters: Adam's moments and the moving average.
pub(super) struct OptimizerState<'a> {
    moments: [&'a [f32]; 2],
    average: Option<&'a [f32]>,
}
