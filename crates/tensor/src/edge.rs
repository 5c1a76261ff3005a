//! Nodes and edges of the autograd tape, and the gradients that flow along them.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::Array;

type Backward = Box<dyn FnOnce(Array, &mut Gradients) + Send>;

/// One recorded operation. [`Edge`] points to it.
pub(crate) struct Node {
    pub(crate) order: u64,
    /// `None` for a leaf, whose gradient is the result, and after the closure has run.
    pub(crate) backward: Mutex<Option<Backward>>,
    pub(crate) is_leaf: bool,
}

/// The path of a gradient to one input; empty if that input requires no gradient.
#[derive(Clone)]
pub struct Edge(pub(crate) Option<Arc<Node>>);

/// Gradients that still flow along the tape, and in the end those of the leaves.
pub struct Gradients {
    pub(crate) pending: BTreeMap<u64, (Arc<Node>, Array)>,
}

impl Gradients {
    /// Adds `gradient` to the gradient that has already arrived at `edge`.
    pub fn add(&mut self, edge: &Edge, gradient: Array) {
        let Some(node) = &edge.0 else { return };
        match self.pending.get_mut(&node.order) {
            Some((_, sum)) => sum.add(&gradient),
            None => drop(self.pending.insert(node.order, (node.clone(), gradient))),
        }
    }

    /// Takes the gradient that has arrived at `edge`, for an operation whose kernel accumulates into it;
    /// return it with [`Self::add`].
    pub fn take(&mut self, edge: &Edge) -> Option<Array> {
        let node = edge.0.as_ref()?;
        self.pending.remove(&node.order).map(|(_, gradient)| gradient)
    }
}

impl Edge {
    /// True if this input requires a gradient; otherwise an operation can skip the work.
    #[inline]
    pub fn requires_grad(&self) -> bool {
        self.0.is_some()
    }

    /// The edge of a tensor without gradient.
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

    /// True if both lead to the same tensor.
    pub(crate) fn same(&self, other: &Edge) -> bool {
        matches!((&self.0, &other.0), (Some(a), Some(b)) if Arc::ptr_eq(a, b))
    }
}

/// Runs `work` without recording operations: inference, validation.
#[inline]
pub fn no_grad<R>(work: impl FnOnce() -> R) -> R {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            RECORDING.set(self.0);
        }
    }
    let _restore = Restore(RECORDING.replace(false));
    work()
}

/// True if operations on this thread are recorded.
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
