//! The autograd tape: how a tensor was computed, walked backwards.
//!
//! Every differentiable operation records a node: the nodes of its inputs and a closure that turns the
//! gradient of its output into gradients of its inputs. Nodes are numbered in the order of creation, so an
//! output's number is always above its inputs' numbers: visiting the nodes from the highest number down meets
//! each one after everything that used it. That is all of [`backward`].
//!
//! A node holds its inputs' nodes, not their arrays: memory that no gradient needs returns to the pool as
//! soon as the forward pass drops it. The closure is consumed, so the arrays that it saved return to the pool
//! during the backward pass.

use std::collections::BTreeMap;

pub use crate::edge::{Edge, Gradients, is_recording, no_grad};
use crate::{Array, Tensor};

/// Fills the gradients of all parameters that `loss` (a scalar) depends on, and returns those of its
/// [`Tensor::variable`]s.
pub fn backward(loss: &Tensor) -> Gradients {
    assert_eq!(loss.shape(), [1, 1], "backward: the loss must be a scalar, not {:?}", loss.shape());
    backward_from(loss, Array::from_f32_on(loss.device(), 1, 1, &[1.0]))
}

/// As [`backward`] for a tensor of any shape, given the gradient with respect to it.
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
        let step = step
            .expect("backward: the graph was already freed by an earlier backward pass; recompute the loss");
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
