//! The tape: how a tensor was made, walked backwards.
//!
//! Every operation that has a gradient leaves a node behind: the nodes of its inputs and a closure that turns
//! the gradient of its output into gradients of its inputs. Nodes are numbered in the order of their making, so an
//! output's number is always above its inputs' numbers: going through the nodes from the highest number down meets
//! each one after everything that used it. That is all of [`backward`].
//!
//! A node holds its inputs' nodes, not their numbers: what a gradient does not need is back in the pool as soon as
//! the forward pass drops it. The closure is consumed, so what it kept returns to the pool on the way down.

use std::collections::BTreeMap;

pub use crate::edge::{Edge, Gradients, is_recording, paused};
use crate::{Array, Tensor};

/// Fills the gradients of all parameters that `loss` (one number) depends on, and returns those of its
/// [`Tensor::variable`]s.
pub fn backward(loss: &Tensor) -> Gradients {
    assert_eq!(loss.shape(), [1, 1], "backward: the loss must be one number, not {:?}", loss.shape());
    backward_from(loss, Array::from_f32_on(loss.device(), 1, 1, &[1.0]))
}

/// As [`backward`] for a tensor of any shape, given the gradient of something with respect to it.
pub fn backward_from(output: &Tensor, gradient: Array) -> Gradients {
    let shape = [gradient.rows(), gradient.width()];
    assert_eq!(
        shape,
        output.shape(),
        "backward: a gradient of {shape:?} for an output of {:?}",
        output.shape()
    );
    let gradient = gradient.into_dtype(output.dtype());
    let mut gradients = Gradients { pending: BTreeMap::new() };
    let mut leaves = BTreeMap::new();
    gradients.add(&output.edge(), gradient);
    while let Some((order, (node, gradient))) = gradients.pending.pop_last() {
        if node.is_leaf {
            leaves.insert(order, (node, gradient));
            continue;
        }
        let step = node.backward.lock().expect("tape lock").take();
        let step = step.expect("backward: this graph was already walked; compute the loss anew");
        step(gradient, &mut gradients);
    }
    Gradients { pending: leaves }
}

impl Gradients {
    /// After [`backward`]: the gradient of a variable, if the loss depends on it.
    #[inline]
    pub fn of(&self, variable: &Tensor) -> Option<&Array> {
        let edge = variable.edge();
        let node = edge.0.as_ref()?;
        self.pending.get(&node.order).map(|(_, gradient)| gradient)
    }
}
