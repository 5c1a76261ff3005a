//! The states of a batch, and their permutation into the order of a schedule and back.

use super::{Cell, cpu};
use crate::tape::Edge;
use crate::{Array, DType, Device, Tensor};

/// The state of a recurrent network, one row for each sequence.
#[derive(Clone, Debug)]
pub struct RecurrentState {
    /// rows × d.
    pub h: Tensor,
    /// rows × d: the LSTM's second state; `None` for the others.
    pub c: Option<Tensor>,
}

impl RecurrentState {
    /// Zero states.
    pub fn zeros(device: Device, cell: Cell, rows: usize, d: usize) -> RecurrentState {
        let zeros = || Tensor::new(Array::zeros_on(device, DType::F32, rows, d));
        RecurrentState { h: zeros(), c: cell.has_memory().then(zeros) }
    }

    /// Applies a function to every state: `map(h)`, and `map(c)` if there is one.
    #[inline]
    pub fn map(&self, map: impl Fn(&Tensor) -> Tensor) -> RecurrentState {
        RecurrentState { h: map(&self.h), c: self.c.as_ref().map(map) }
    }

    pub(crate) fn check(&self, rows: usize, d: usize, cell: Cell) {
        assert_eq!(self.c.is_some(), cell.has_memory(), "recurrent: {cell:?} and a state c do not agree");
        for state in [Some(&self.h), self.c.as_ref()].into_iter().flatten() {
            assert_eq!(
                state.shape(),
                [rows, d],
                "recurrent: a state of {:?} for {:?}",
                state.shape(),
                [rows, d]
            );
        }
    }

    /// The tape edges of h, then c.
    pub(crate) fn edges(&self) -> Vec<(Edge, DType)> {
        let states = [Some(&self.h), self.c.as_ref()].into_iter().flatten();
        states.map(|state| (state.edge(), state.dtype())).collect()
    }
}

/// Row `order[i]` of a state as row i, in f32. Only on the CPU, like the two below: the GPU kernels apply the
/// order.
pub(crate) fn gather(state: &Array, order: &[usize]) -> Array {
    cpu::gather(state, order)
}

/// [`gather`], or zeros on `device` if there is no state.
pub(crate) fn gather_or_zeros(state: Option<&Array>, order: &[usize], width: usize, device: Device) -> Array {
    match state {
        Some(state) => gather(state, order),
        None => Array::zeros_on(device, DType::F32, order.len(), width),
    }
}

/// Row i of `sorted` as row `order[i]`.
pub(crate) fn scatter(sorted: &Array, order: &[usize]) -> Array {
    cpu::scatter(sorted, order)
}
