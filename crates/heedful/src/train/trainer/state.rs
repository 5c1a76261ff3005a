//! The complete state of a trainer: copied, and restored.

use heedful_tensor::collective::Failure;

use super::{Order, StepTrainer};
use crate::models::Model;
use crate::store::weights::Weights;
use crate::train::team::Team;
use crate::train::{StateError, TrainerState};

impl<M: Model> StepTrainer<M> {
    /// A copy of the complete state.
    ///
    /// # Panics
    /// If reports of submitted steps have not arrived: see [`StepTrainer::drain`]. If several ranks compute the steps: see
    /// [`StepTrainer::gathered_state`].
    pub fn state(&self) -> TrainerState {
        assert!(self.divided().is_none(), "StepTrainer::state: other ranks have a part of it");
        let (mean, square) = self.optimizer.moments_to_vec();
        let average = self.average.as_ref().map(|average| average.to_vec());
        self.state_with([mean, square], average)
    }

    /// A copy of the complete state, to which every rank gives its part; only the leader gets it.
    ///
    /// # Panics
    /// If reports of submitted steps have not arrived: see [`StepTrainer::drain`].
    pub(crate) fn gathered_state(&self) -> Result<Option<TrainerState>, Failure> {
        let Some(team) = self.divided() else { return Ok(Some(self.state())) };
        team.announce(&Order::State)?;
        let moments = self.optimizer.gathered_moments(team.group())?;
        let average = self.average.as_ref().map(|average| average.gathered(team.group())).transpose()?;
        Ok(moments.map(|moments| self.state_with(moments, average.flatten())))
    }

    /// The team, if each of its ranks has a part of the state.
    fn divided(&self) -> Option<&Team> {
        self.team.as_ref().filter(|team| team.gpus().is_none())
    }

    fn state_with(&self, [mean, square]: [Vec<f32>; 2], average: Option<Vec<f32>>) -> TrainerState {
        assert!(self.pending.is_empty(), "StepTrainer::state: steps are on their way; drain them first");
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

    /// Restores `state`; training continues bit for bit as in the trainer that it was taken from. On an error nothing has
    /// changed.
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
            let parts = Parts { moments: [&mean, &square], average: average.as_deref() };
            return Ok(self.restore_divided(state.step, &state.norms, Some(parts))?);
        }
        params.clear_gradients();
        if let (Some(ours), Some(theirs)) = (&mut self.average, &average) {
            ours.restore(state.step, theirs);
        }
        self.optimizer.restore(state.step, &mean, &square);
        self.guard.restore(&state.norms);
        Ok(())
    }

    /// Every rank takes its part of what the leader has, beside the parameters.
    pub(super) fn restore_divided(
        &mut self,
        step: u64,
        norms: &[f32],
        parts: Option<Parts<'_>>,
    ) -> Result<(), Failure> {
        let team = self.team.clone().expect("a divided state belongs to a team");
        team.announce(&Order::Restore { step, norms: norms.to_vec() })?;
        let (group, params) = (team.group(), self.model.params());
        params.set_from_first(group)?;
        params.clear_gradients();
        let moments = parts.as_ref().map(|parts| parts.moments);
        let average = parts.and_then(|parts| parts.average);
        if team.gpus().is_some() {
            let [mean, square] =
                [0, 1].map(|moment| group.broadcast_numbers(moments.map(|both| both[moment])));
            self.optimizer.restore(step, &mean?, &square?);
            if let Some(ours) = &mut self.average {
                ours.restore(step, &group.broadcast_numbers(average)?);
            }
        } else {
            self.optimizer.restore_divided(step, group, moments)?;
            if let Some(ours) = &mut self.average {
                ours.restore_divided(step, group, average)?;
            }
        }
        self.guard.restore(norms);
        Ok(())
    }

    /// Runs `work` on the model with its averaged parameters, if there is an average.
    ///
    /// # Panics
    /// If several ranks compute the steps: see [`StepTrainer::with_gathered_average`].
    pub fn with_average<R>(&mut self, work: impl FnOnce(&M) -> R) -> R {
        assert!(self.divided().is_none(), "StepTrainer::with_average: other ranks have a part of it");
        let Some(average) = &mut self.average else { return work(&self.model) };
        average.swap(self.model.params());
        let result = work(&self.model);
        average.swap(self.model.params());
        result
    }

    /// As [`StepTrainer::with_average`] at the leader, to which every rank gives its part.
    pub(crate) fn with_gathered_average<R>(&mut self, work: impl FnOnce(&M) -> R) -> Result<R, Failure> {
        if self.divided().is_none() {
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

    /// The moving average at the leader of a team, if there is one.
    pub(super) fn gathered_average(&self) -> Result<Option<Vec<f32>>, Failure> {
        let (Some(team), Some(average)) = (self.divided(), &self.average) else { return Ok(None) };
        team.announce(&Order::Average)?;
        average.gathered(team.group())
    }
}

/// What the leader has of a state, beside the parameters: the means of gradients and of their squares, and the moving average.
pub(super) struct Parts<'a> {
    moments: [&'a [f32]; 2],
    average: Option<&'a [f32]>,
}
