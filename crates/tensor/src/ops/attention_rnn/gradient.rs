//! The decoder's node on the tape, and its gradients.

use std::sync::{Arc, Mutex};

use super::{AttentionRnnWeights, Decoder, DecoderGradients, ResultGradients, SavedForBackward, cpu, cuda};
use crate::ops::recurrent::{self, state, states_before};
use crate::ops::{AttentionScore, linear};
use crate::tape::{Edge, Gradients};
use crate::{Array, DType, Device, Param, Ragged};

/// Gradients of the other outputs, which arrive before that of the states.
#[derive(Default)]
pub(super) struct LateGradients {
    pub(super) contexts: Option<Array>,
    pub(super) choices: Option<Array>,
}

/// The parameters, owned by the tape.
pub(super) struct Parameters {
    pub(super) hidden: Param,
    pub(super) bias: Option<Param>,
    pub(super) context: Param,
    pub(super) query: Option<Param>,
    pub(super) score: AttentionScore,
    pub(super) score_weight: Option<Param>,
}

impl Parameters {
    pub(super) fn of(weights: AttentionRnnWeights<'_>) -> Parameters {
        Parameters {
            hidden: weights.hidden.clone(),
            bias: weights.bias.cloned(),
            context: weights.context.clone(),
            query: weights.query.cloned(),
            score: weights.score,
            score_weight: weights.score_weight.cloned(),
        }
    }
}

/// The decoder's node on the tape.
pub(super) struct Backward {
    pub(super) decoder: Decoder,
    pub(super) x: (Edge, DType),
    pub(super) keys: (Edge, DType),
    pub(super) values: (Edge, DType),
    pub(super) initial: Vec<(Edge, DType)>,
    pub(super) targets: Ragged,
    pub(super) saved: SavedForBackward,
    /// In the compute type.
    pub(super) contexts: Arc<Array>,
    pub(super) late: Arc<Mutex<LateGradients>>,
}

impl Backward {
    pub(super) fn run(self, d_states: &Array, gradients: &mut Gradients) {
        let LateGradients { contexts, choices } = std::mem::take(&mut *self.late.lock().expect("tape lock"));
        let (decoder, saved) = (&self.decoder, &self.saved);
        let Decoder { weights, schedule, dtype, .. } = decoder;
        let outputs =
            ResultGradients { states: d_states, contexts: contexts.as_ref(), choices: choices.as_ref() };
        let DecoderGradients { dx, da, dq, dk, dv, d_score_weight, dh, dc } = match d_states.device() {
            Device::Cpu => cpu::backward(decoder, saved, &outputs),
            Device::Cuda => cuda::backward(decoder, &self.targets, saved, &outputs),
        };
        // hidden side = h_{t−1} W_h + b,   q = h_{t−1} W_q,   input side = x + context W_c
        let SavedForBackward { h, states, .. } = saved;
        let before = match d_states.device() {
            Device::Cpu => states_before(schedule, h, states, *dtype),
            Device::Cuda => {
                recurrent::cuda::states_before(&self.targets, false, Some(h.pointer()), states, *dtype)
            }
        };
        let d_hidden = da.as_ref().unwrap_or(&dx);
        linear::map_gradient(&before, d_hidden, &weights.hidden, weights.bias.as_ref());
        if let Some(query) = &weights.query {
            linear::weight_gradient(&before, &dq, query);
        }
        linear::weight_gradient(&self.contexts, &dx, &weights.context);
        if let Some(weight) = &weights.score_weight {
            linear::bias_gradient(&d_score_weight, weight);
        }
        let by_sequence = |state: Array| match state.device() {
            Device::Cpu => state::scatter(&state, schedule.order()),
            Device::Cuda => state,
        };
        let mut give = |edge: &Edge, dtype: DType, gradient: Array| {
            if edge.requires_grad() {
                gradients.add(edge, gradient.into_dtype(dtype));
            }
        };
        for ((edge, dtype), state) in self.initial.iter().zip([dh, dc]) {
            give(edge, *dtype, by_sequence(state));
        }
        give(&self.x.0, self.x.1, dx);
        give(&self.keys.0, self.keys.1, dk);
        give(&self.values.0, self.values.1, dv);
    }
}
