//! The states of a batch, and their way into the order of a schedule and back.

use super::Cell;
use crate::cpu::number::{self, Numbers};
use crate::tape::Edge;
use crate::{Array, DType, Tensor};

/// What a recurrent network remembers, one row for each sequence.
#[derive(Clone, Debug)]
pub struct RecurrentState {
    /// rows × d.
    pub h: Tensor,
    /// rows × d: the LSTM's second state; `None` for the others.
    pub c: Option<Tensor>,
}

impl RecurrentState {
    /// Nothing remembered yet.
    pub fn zeros(cell: Cell, rows: usize, d: usize) -> RecurrentState {
        let zeros = || Tensor::new(Array::zeros(DType::F32, rows, d));
        RecurrentState { h: zeros(), c: cell.has_memory().then(zeros) }
    }

    /// The same change to every state: `map(h)`, and `map(c)` if there is one.
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

    /// Where gradients of h, then c, go.
    pub(crate) fn edges(&self) -> Vec<(Edge, DType)> {
        let states = [Some(&self.h), self.c.as_ref()].into_iter().flatten();
        states.map(|state| (state.edge(), state.dtype())).collect()
    }
}

/// Row `order[i]` of a state as row i, in f32; zeros if there is no state.
pub(crate) fn gather(state: Option<&Tensor>, order: &[usize], width: usize) -> Array {
    let Some(state) = state else { return Array::zeros(DType::F32, order.len(), width) };
    let mut sorted = Array::scratch(DType::F32, order.len(), width);
    let from = Numbers::of(state.array());
    for (&row, to) in order.iter().zip(sorted.f32_mut().chunks_exact_mut(width.max(1))) {
        match from.part(row * width..(row + 1) * width) {
            Numbers::F32(from) => number::copy(from, to),
            Numbers::Bf16(from) => number::copy(from, to),
        }
    }
    sorted
}

/// Row i of `sorted` as row `order[i]`.
pub(crate) fn scatter(sorted: &Array, order: &[usize]) -> Array {
    let width = sorted.width();
    let mut state = Array::scratch(DType::F32, sorted.rows(), width);
    let to = state.f32_mut();
    for (&row, from) in order.iter().zip(sorted.f32().chunks_exact(width.max(1))) {
        to[row * width..(row + 1) * width].copy_from_slice(from);
    }
    state
}
