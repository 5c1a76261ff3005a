//! Multi-head attention over ragged batches (Vaswani et al. 2017, §3.2).
//!
//! For every sequence and head, with queries `Q (m × d_k)`, keys `K (n × d_k)`, values `V (n × d_v)`:
//!
//! ```text
//! S = scale · Q Kᵀ        hidden keys: −∞                   m × n
//! P = softmax(S)          row by row, hidden: exactly 0     m × n
//! W = dropout(P)                                            m × n
//! O = W V                                                   m × d_v
//! ```
//!
//! Backward, from `dO`:
//!
//! ```text
//! dV = Wᵀ dO              dP = dropout(dO Vᵀ)               the same draws
//! dS = P ∘ (dP − δ)       δ = Σ over a row of P ∘ dP
//! dQ = scale · dS K       dK = scale · dSᵀ Q
//! ```
//!
//! Scores and weights are computed in f32 for 32 queries of one head at a time, whatever the tensors' type
//! (on AMX the factors of the next product, `W` and `dS`, are rounded to bf16: see `cpu::tiles`). Saved for
//! backward: the inputs and, for every row and head, the largest score and the sum of exponentials; the
//! weights are recomputed. Each sum runs in one order that depends on its sequence alone, so results have the
//! same bits in any batch and for any number of threads. Windows bound the keys that a block reads:
//! `O(r·n·d)`.
//!
//! Why the scale is `1/√d_k`: if the elements of `q` and `k` have variance 1, `q · k` has variance `d_k`;
//! such scores saturate softmax: one weight goes to 1 and the gradient to 0.

use std::ops::Range;

use crate::flops;
use crate::random::Dropout;
use crate::tape::{Edge, Gradients};
use crate::{Array, DType, Device, Ragged, Rounding, Tensor};

mod cpu;
pub(crate) mod cuda;
mod mask;

pub use mask::{BoolMask, Mask, MaskError};

/// A view of some columns of a tensor: queries, keys and values may be columns of one fused projection.
#[derive(Clone)]
pub struct ColumnView {
    /// The whole tensor.
    pub tensor: Tensor,
    /// The columns of the view.
    pub columns: Range<usize>,
}

/// The options of [`attention`].
#[derive(Clone)]
pub struct AttentionOptions {
    /// Number of heads; divides the widths of queries, keys and values.
    pub heads: usize,
    /// Scores are multiplied by this: 1/√d_k, or 1 for the plain dot product.
    pub scale: f32,
    /// Which keys a query may attend to.
    pub mask: Mask,
    /// Dropout on the weights.
    pub dropout: Dropout,
    /// Which attention weights are returned.
    pub weights: ReturnWeights,
    /// How sums are rounded.
    pub rounding: Rounding,
}

/// Which attention weights are returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReturnWeights {
    /// None: they never exist all at once.
    #[default]
    None,
    /// The weights of the first query of every sequence, which a classifier shows: they grow with the keys
    /// alone.
    FirstQuery,
    /// All weights of every head.
    All,
    /// All weights, and the scores they are the softmax of.
    WithScores,
}

impl ReturnWeights {
    /// The number of a sequence's queries whose weights are returned.
    fn rows(self, queries: usize) -> usize {
        match self {
            ReturnWeights::None => 0,
            ReturnWeights::FirstQuery => queries.min(1),
            ReturnWeights::All | ReturnWeights::WithScores => queries,
        }
    }
}

/// The result of [`attention`].
pub struct AttentionOutput {
    /// `tokens × value width`, heads concatenated.
    pub context: Tensor,
    /// Per sequence, then head: queries × keys weights (before dropout), row-major, if requested. With
    /// [`ReturnWeights::FirstQuery`] only the first row.
    pub weights: Option<Vec<Vec<Vec<f32>>>>,
    /// `S` in the shape of the weights, −∞ where the mask hides a key, if requested
    /// ([`ReturnWeights::WithScores`]).
    pub scores: Option<Vec<Vec<Vec<f32>>>>,
}

impl ColumnView {
    /// All columns of a tensor.
    #[inline]
    pub fn whole(tensor: Tensor) -> ColumnView {
        let columns = 0..tensor.width();
        ColumnView { tensor, columns }
    }

    fn width(&self) -> usize {
        self.columns.len()
    }
}

/// Multi-head scaled dot product attention over ragged batches: sequence `i` of the queries attends to
/// sequence `i` of the keys and values. The context has the type of the inputs.
///
/// # Panics
/// If shapes, types or sequences do not match, or if a query sees no key (see [`Mask::check`]).
pub fn attention(
    queries: ColumnView,
    keys: ColumnView,
    values: ColumnView,
    query_sequences: &Ragged,
    key_sequences: &Ragged,
    options: &AttentionOptions,
) -> AttentionOutput {
    attend([queries, keys, values], [query_sequences, key_sequences], QueryCount::Any, options)
}

/// [`attention`] with one query per sequence, as in attention pooling. The GPU has kernels of its own for it,
/// which sum in another order.
///
/// # Panics
/// As [`attention`].
pub fn single_query_attention(
    queries: ColumnView,
    keys: ColumnView,
    values: ColumnView,
    key_sequences: &Ragged,
    options: &AttentionOptions,
) -> AttentionOutput {
    let one_each = key_sequences.with_lengths(|_| 1);
    attend([queries, keys, values], [&one_each, key_sequences], QueryCount::One, options)
}

fn attend(
    parts: [ColumnView; 3],
    [query_sequences, key_sequences]: [&Ragged; 2],
    queries: QueryCount,
    options: &AttentionOptions,
) -> AttentionOutput {
    check_shapes(&parts, query_sequences, key_sequences, options.heads);
    if let Err(error) = options.mask.check(query_sequences, key_sequences) {
        panic!("attention: {error}");
    }
    let problem = Problem {
        inputs: parts.each_ref().map(|part| (part.tensor.detached(), part.columns.start)),
        query_sequences: query_sequences.clone(),
        key_sequences: key_sequences.clone(),
        heads: options.heads,
        d_k: parts[0].width() / options.heads,
        d_v: parts[2].width() / options.heads,
        scale: options.scale,
        mask: options.mask.clone(),
        dropout: options.dropout,
        rounding: options.rounding,
        queries,
    };
    let pairs = options.mask.pairs(query_sequences, key_sequences);
    flops::add(2 * pairs * (parts[0].width() + parts[2].width()) as u64);
    let Forward { context, stats, weights, scores } = match problem.inputs[0].0.device() {
        Device::Cpu => cpu::forward(&problem, options.weights),
        Device::Cuda => cuda::forward(&problem, options.weights),
    };
    let weights = weights.map(|mut weights| {
        // The GPU kernels return all weights or none.
        for (number, weights) in weights.iter_mut().enumerate() {
            let sequence = number / options.heads;
            let rows = options.weights.rows(query_sequences.length(sequence));
            weights.truncate(rows * key_sequences.length(sequence));
        }
        by_sequence(weights, options.heads)
    });
    let scores = scores.map(|scores| by_sequence(scores, options.heads));

    let input_edges = parts.each_ref().map(|part| InputEdge {
        edge: part.tensor.edge(),
        shape: part.tensor.shape(),
        columns: part.columns.clone(),
    });
    let inputs = parts.each_ref().map(|part| &part.tensor);
    let context = Tensor::from_inputs(context, &inputs, move |gradient, gradients| {
        backward(&problem, &stats, &gradient, &input_edges, gradients);
    });
    AttentionOutput { context, weights, scores }
}

/// Groups matrices, ordered by sequence and head, by sequence.
fn by_sequence(matrices: Vec<Vec<f32>>, heads: usize) -> Vec<Vec<Vec<f32>>> {
    let sequences = matrices.len() / heads;
    let mut matrices = matrices.into_iter();
    (0..sequences).map(|_| matrices.by_ref().take(heads).collect()).collect()
}

/// Everything about one call of attention that forward and backward both need.
struct Problem {
    /// Queries, keys and values (detached from the tape) and their first columns.
    inputs: [(Tensor, usize); 3],
    query_sequences: Ragged,
    key_sequences: Ragged,
    heads: usize,
    /// Key width and value width of one head.
    d_k: usize,
    d_v: usize,
    scale: f32,
    mask: Mask,
    dropout: Dropout,
    rounding: Rounding,
    queries: QueryCount,
}

/// The number of queries per sequence that the caller promises for every batch. Kernels are chosen by it and
/// not by the lengths: otherwise a sentence of one token would have other bits alone than batched with a
/// longer one.
#[derive(Clone, Copy, PartialEq)]
enum QueryCount {
    Any,
    One,
}

/// The results of the forward pass.
struct Forward {
    context: Array,
    /// For every head and row, the statistics to recompute its softmax: the largest score and the sum of
    /// exponentials.
    stats: Array,
    /// For every sequence and head.
    weights: Option<Vec<Vec<f32>>>,
    /// In the layout of the weights.
    scores: Option<Vec<Vec<f32>>>,
}

/// The destination of an input's gradient.
struct InputEdge {
    edge: Edge,
    shape: [usize; 2],
    columns: Range<usize>,
}

/// The gradient buffer of one tensor, and which of its columns have a writer.
struct Sink<'a> {
    edge: &'a Edge,
    array: Array,
    written: Vec<Range<usize>>,
}

/// Views of one tensor share one gradient array: it is written once, not summed from three.
fn backward(
    problem: &Problem,
    stats: &Array,
    gradient: &Array,
    input_edges: &[InputEdge; 3],
    gradients: &mut Gradients,
) {
    let mut sinks: Vec<Sink<'_>> = Vec::with_capacity(3);
    let chosen = input_edges.each_ref().map(|input| {
        input.edge.requires_grad().then(|| {
            // Views that overlap (keys that are also the values) are summed by the tape.
            let fits = |sink: &Sink<'_>| {
                sink.edge.same(&input.edge)
                    && sink.written.iter().all(|written| are_disjoint(written, &input.columns))
            };
            let at = sinks.iter().position(fits).unwrap_or(sinks.len());
            if at == sinks.len() {
                let array =
                    Array::scratch_on(gradient.device(), gradient.dtype(), input.shape[0], input.shape[1]);
                sinks.push(Sink { edge: &input.edge, array, written: Vec::with_capacity(3) });
            }
            sinks[at].written.push(input.columns.clone());
            at
        })
    });
    for sink in &mut sinks {
        let written: usize = sink.written.iter().map(Range::len).sum();
        if written < sink.array.width() {
            let (rows, width) = (sink.array.rows(), sink.array.width());
            sink.array = Array::zeros_on(gradient.device(), gradient.dtype(), rows, width);
        }
    }
    let target = |part: usize| {
        chosen[part].map(|sink: usize| Target { sink, column: input_edges[part].columns.start })
    };
    let targets = [target(0), target(1), target(2)];
    match gradient.device() {
        Device::Cpu => cpu::backward(problem, stats, gradient, &mut sinks, targets),
        Device::Cuda => cuda::backward(problem, stats, gradient, &mut sinks, targets),
    }
    for sink in sinks {
        gradients.add(sink.edge, sink.array);
    }
}

/// The destination of the gradient of queries, keys or values: columns of a sink, from the given one on.
#[derive(Clone, Copy)]
struct Target {
    sink: usize,
    column: usize,
}

fn are_disjoint(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.end <= b.start || b.end <= a.start
}

fn check_shapes(parts: &[ColumnView; 3], query_sequences: &Ragged, key_sequences: &Ragged, heads: usize) {
    let [queries, keys, values] = parts;
    let (a, b) = (query_sequences.sequences(), key_sequences.sequences());
    assert_eq!(a, b, "attention: {a} sequences of queries and {b} of keys");
    for (name, part, sequences) in [
        ("queries", queries, query_sequences),
        ("keys", keys, key_sequences),
        ("values", values, key_sequences),
    ] {
        let ColumnView { tensor, columns } = part;
        let (rows, tokens, width) = (tensor.rows(), sequences.tokens(), columns.len());
        assert!(columns.end <= tensor.width(), "attention: {name} are columns {columns:?} of {tensor:?}");
        assert_eq!(rows, tokens, "attention: {name} are {tensor:?}, their sequences have {tokens} tokens");
        assert!(
            heads > 0 && width > 0 && width.is_multiple_of(heads),
            "attention: {name} of width {width} cannot be divided among {heads} heads"
        );
    }
    let (a, b) = (queries.width(), keys.width());
    assert_eq!(a, b, "attention: queries of width {a} and keys of width {b}");
    let types: [DType; 3] = [queries.tensor.dtype(), keys.tensor.dtype(), values.tensor.dtype()];
    assert!(
        types.iter().all(|&dtype| dtype == types[0]),
        "attention: queries, keys and values are {types:?}"
    );
}

#[cfg(test)]
mod tests;
