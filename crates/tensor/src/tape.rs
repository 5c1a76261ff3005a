//! The tape: how a tensor was made, walked backwards.
//!
//! Every operation that has a gradient leaves a node behind: the nodes of its inputs and a closure that turns
//! the gradient of its output into gradients of its inputs. Nodes are numbered in the order of their making, so an
//! output's number is always above its inputs' numbers: going through the nodes from the highest number down meets
//! each one after everything that used it. That is all of [`backward`].
//!
//! A node holds its inputs' nodes, not their numbers: what a gradient does not need is back in the pool as soon as
//! the forward pass drops it. The closure is consumed, so what it kept returns to the pool on the way down.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::ops::elementwise::add_in_place;
use crate::{Array, Tensor};

type Backward = Box<dyn FnOnce(Array, &mut Gradients) + Send>;

/// One operation that was done. [`Edge`] is how others point to it.
pub(crate) struct Node {
    order: u64,
    /// None for a leaf, whose gradient is the result; taken when it has run.
    backward: Mutex<Option<Backward>>,
    is_leaf: bool,
}

/// The way a gradient takes to one input; empty when that input needs none.
#[derive(Clone)]
pub struct Edge(Option<Arc<Node>>);

/// Gradients that are on their way, and in the end those of the leaves.
pub struct Gradients {
    pending: BTreeMap<u64, (Arc<Node>, Array)>,
}

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
    /// Adds `gradient` to what has already arrived at `edge`.
    pub fn add(&mut self, edge: &Edge, gradient: Array) {
        let Some(node) = &edge.0 else { return };
        match self.pending.get_mut(&node.order) {
            Some((_, sum)) => add_in_place(sum, &gradient),
            None => drop(self.pending.insert(node.order, (node.clone(), gradient))),
        }
    }

    /// Takes what has arrived at `edge`, for an operation whose kernel adds to it; give it back with [`Self::add`].
    pub fn take(&mut self, edge: &Edge) -> Option<Array> {
        let node = edge.0.as_ref()?;
        self.pending.remove(&node.order).map(|(_, gradient)| gradient)
    }

    /// After [`backward`]: the gradient of a variable, if the loss depends on it.
    #[inline]
    pub fn of(&self, variable: &Tensor) -> Option<&Array> {
        let edge = variable.edge();
        let node = edge.0.as_ref()?;
        self.pending.get(&node.order).map(|(_, gradient)| gradient)
    }
}

impl Edge {
    /// True when a gradient is wanted here; false lets an operation skip the work.
    #[inline]
    pub fn is_wanted(&self) -> bool {
        self.0.is_some()
    }

    /// The edge of something without gradient.
    pub(crate) const NONE: Edge = Edge(None);

    pub(crate) fn leaf() -> Edge {
        Edge(Some(Arc::new(Node { order: next_order(), backward: Mutex::new(None), is_leaf: true })))
    }

    pub(crate) fn operation(backward: impl FnOnce(Array, &mut Gradients) + Send + 'static) -> Edge {
        let backward: Backward = Box::new(backward);
        Edge(Some(Arc::new(Node {
            order: next_order(),
            backward: Mutex::new(Some(backward)),
            is_leaf: false,
        })))
    }

    /// True when both lead to the same tensor.
    pub(crate) fn same(&self, other: &Edge) -> bool {
        matches!((&self.0, &other.0), (Some(a), Some(b)) if Arc::ptr_eq(a, b))
    }
}

/// Runs `work` without recording anything: inference, validation.
#[inline]
pub fn paused<R>(work: impl FnOnce() -> R) -> R {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            RECORDING.set(self.0);
        }
    }
    let _restore = Restore(RECORDING.replace(false));
    work()
}

/// True when operations on this thread leave nodes behind.
#[inline]
pub fn is_recording() -> bool {
    RECORDING.get()
}

thread_local! {
    static RECORDING: Cell<bool> = const { Cell::new(true) };
}

fn next_order() -> u64 {
    static ORDER: AtomicU64 = AtomicU64::new(0);
    ORDER.fetch_add(1, Ordering::Relaxed)
}
