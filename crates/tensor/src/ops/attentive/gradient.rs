//! What the tape keeps of an attentive decoder, and the gradients that it makes of it.

use std::marker::PhantomData;
use std::sync::{Arc, Mutex};

use super::forward::{Kept, Kernels};
use super::look::Looking;
use super::{AttentiveWeights, Looks, RowScore, backward};
use crate::ops::linear;
use crate::ops::recurrent::backward::states_before;
use crate::ops::recurrent::schedule::Schedule;
use crate::ops::recurrent::{Cell, state};
use crate::params::Orientation;
use crate::tape::{Edge, Gradients};
use crate::{Array, Compute, DType, Param, Ragged};

/// Gradients of the other results, which arrive before that of the states.
#[derive(Default)]
pub(super) struct Late {
    pub(super) contexts: Option<Array>,
    pub(super) choices: Option<Array>,
}

/// The weights, to keep.
pub(super) struct Owned {
    hidden: Param,
    bias: Option<Param>,
    context: Param,
    query: Option<Param>,
    /// The additive score's weight, or the dot's scale.
    score: Result<Param, f32>,
}

impl Owned {
    pub(super) fn of(weights: AttentiveWeights<'_>) -> Owned {
        Owned {
            hidden: weights.hidden.clone(),
            bias: weights.bias.cloned(),
            context: weights.context.clone(),
            query: weights.query.cloned(),
            score: match weights.score {
                RowScore::Additive(weight) => Ok(weight.clone()),
                RowScore::Dot { scale } => Err(scale),
            },
        }
    }

    fn score(&self) -> RowScore<'_> {
        match &self.score {
            Ok(weight) => RowScore::Additive(weight),
            Err(scale) => RowScore::Dot { scale: *scale },
        }
    }
}

/// What the tape keeps.
pub(super) struct Backward<T> {
    pub(super) cell: Cell,
    pub(super) looking: Looking,
    pub(super) x: (Edge, DType),
    pub(super) keys: (Edge, DType, Arc<Array>),
    pub(super) values: (Edge, DType, Arc<Array>),
    pub(super) initial: Vec<(Edge, DType)>,
    pub(super) weights: Owned,
    pub(super) schedule: Schedule,
    pub(super) sources: Ragged,
    pub(super) h: Array,
    pub(super) c: Array,
    pub(super) states: Arc<Array>,
    /// In the compute type.
    pub(super) contexts: Arc<Array>,
    pub(super) looks: Looks,
    pub(super) taken: Arc<[Option<usize>]>,
    pub(super) kept: Kept,
    pub(super) late: Arc<Mutex<Late>>,
    pub(super) compute: PhantomData<T>,
}

impl<T: Kernels> Backward<T> {
    pub(super) fn run(self, d_states: &Array, gradients: &mut Gradients) {
        let Late { contexts, choices } = std::mem::take(&mut *self.late.lock().expect("tape lock"));
        let weights = &self.weights;
        let out = {
            let score = weights.score();
            let values = score.values();
            backward::backward::<T>(&backward::Inputs {
                cell: self.cell,
                compare: score.compare(values.as_deref()),
                looking: self.looking,
                schedule: &self.schedule,
                sources: &self.sources,
                keys: &self.keys.2,
                values: &self.values.2,
                hidden: &weights.hidden.packed(Orientation::Transposed, Compute::inference(T::DTYPE)),
                context: &weights.context.packed(Orientation::Transposed, Compute::inference(T::DTYPE)),
                query: weights
                    .query
                    .as_ref()
                    .map(|query| query.packed(Orientation::Transposed, Compute::inference(T::DTYPE)))
                    .as_deref(),
                h: &self.h,
                c: &self.c,
                weight_starts: &self.looks.starts,
                states: &self.states,
                weights: &self.looks.weights,
                taken: &self.taken,
                kept: &self.kept,
                d_states,
                d_contexts: contexts.as_ref(),
                d_choices: choices.as_ref(),
            })
        };
        // hidden side = h_{t−1} W_h + b,   q = h_{t−1} W_q,   input side = x + context W_c
        let before = states_before::<T>(&self.schedule, &self.h, &self.states);
        let d_hidden = out.da.as_ref().unwrap_or(&out.dx);
        linear::map_gradient(&before, d_hidden, &weights.hidden, weights.bias.as_ref());
        if let Some(query) = &weights.query {
            linear::weight_gradient(&before, &out.dq, query);
        }
        linear::weight_gradient(&self.contexts, &out.dx, &weights.context);
        if let Ok(score) = &weights.score {
            linear::bias_gradient(&out.d_compare, score);
        }
        let order = self.schedule.order();
        let mut give = |edge: &Edge, dtype: DType, gradient: Array| {
            if edge.is_wanted() {
                gradients.add(edge, gradient.into_dtype(dtype));
            }
        };
        for ((edge, dtype), state) in self.initial.iter().zip([&out.dh, &out.dc]) {
            give(edge, *dtype, state::scatter(state, order));
        }
        give(&self.x.0, self.x.1, out.dx);
        give(&self.keys.0, self.keys.1, out.dk);
        give(&self.values.0, self.values.1, out.dv);
    }
}
