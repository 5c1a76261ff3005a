//! Attention on the card. Fast kernels for bf16 heads of 32, 64 or 128 numbers keep a head's weights in registers and shared
//! memory and use the tensor cores; generic ones do everything else, in f32, and are what the fast ones are tested against.
//! Those of `single` take the generic ones' place where sequences have one query each.
//! All compute the weights anew in the backward pass, and no sum depends on the order of blocks.

mod kept;
pub(crate) mod single;
mod work;

use std::rc::Rc;

use bytemuck::NoUninit;

use super::{Forward, Problem, Queries, Sink, Target, Weights};
use crate::cuda::{Blocks, Buffer, DropoutArgument, Module, Pointer, roomy, side_by_side, upload};
use crate::{Array, DType, Device};
use kept::KeptWeights;
use work::{List, Work};

pub(crate) static GENERIC: Module = Module::new(
    "attention_generic",
    concat!(
        include_str!("layout.cu"),
        include_str!("generic/pair.cu"),
        include_str!("generic/forward.cu"),
        include_str!("generic/backward.cu"),
        include_str!("generic/wide.cu"),
    ),
);

pub(crate) static FAST: Module = Module::early(
    "attention_fast",
    concat!(
        include_str!("../../../cuda/mma.cu"),
        include_str!("layout.cu"),
        include_str!("fast/tiles.cu"),
        include_str!("fast/forward.cu"),
        include_str!("fast/backward.cu"),
        include_str!("fast/small.cu"),
        include_str!("fast/kernels.cu"),
    ),
);

/// As in `layout.cu`.
#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Argument {
    q: Pointer,
    k: Pointer,
    v: Pointer,
    o: Pointer,
    d_o: Pointer,
    dq: Pointer,
    dk: Pointer,
    dv: Pointer,
    peaks: Pointer,
    delta: Pointer,
    q_offsets: Pointer,
    k_offsets: Pointer,
    dropout: Pointer,
    sizes: Pointer,
    mask: Pointer,
    mask_offsets: Pointer,
    weights: Pointer,
    scores: Pointer,
    weight_offsets: Pointer,
    work: Pointer,
    work_count: Pointer,
    q_stride: u32,
    k_stride: u32,
    v_stride: u32,
    o_stride: u32,
    dq_stride: u32,
    dk_stride: u32,
    dv_stride: u32,
    heads: u32,
    d_k: u32,
    d_v: u32,
    peak_rows: u32,
    causal: u32,
    window: u32,
    scale: f32,
}

/// One call, ready to be launched: the argument, and what it points to.
struct Call<'a> {
    problem: &'a Problem,
    argument: Argument,
    work: Rc<Work>,
    /// The width of the heads for the fast kernels, if they can do it.
    fast: Option<usize>,
    _dropout: DropoutArgument,
    _mask: Option<[Buffer; 2]>,
}

pub(super) fn forward(problem: &Problem, weights: Weights) -> Forward {
    let Problem { query_sequences, heads, d_v, .. } = problem;
    let rows = query_sequences.tokens();
    let context = Array::scratch_on(Device::Cuda, problem.inputs[0].0.dtype(), rows, heads * d_v);
    let peaks = Array::scratch_on(Device::Cuda, DType::F32, heads * rows, 2);
    let mut call = Call::new(problem, weights);
    call.argument.o = context.pointer();
    call.argument.peaks = peaks.pointer();
    let kept = (weights != Weights::Discard).then(|| KeptWeights::new(problem, weights));
    if let Some(kept) = &kept {
        call.argument.weights = kept.weights.pointer();
        call.argument.scores = kept.scores.as_ref().map_or(Pointer::NULL, Array::pointer);
        call.argument.weight_offsets = kept.offsets.pointer();
    }
    match call.fast {
        Some(width) => {
            let kinds = &call.work.fast.kinds;
            let blocks = Blocks {
                grid: [heads * (kinds[0] + 2 * kinds[1]) + call.short_blocks(), 1, 1],
                threads: if width == 128 { 256 } else { 128 },
                shared: 64 * (6 * width + 36),
            };
            call.launch_fast(FORWARD, width, blocks);
        }
        None if problem.queries == Queries::One => single::launch(&call, single::FORWARD),
        None => call.launch_generic(["attention_forward_f32", "attention_forward_bf16"], Side::Queries, 1),
    }
    let (weights, scores) = kept.map(|kept| kept.to_vecs()).unzip();
    Forward { context, peaks, weights, scores: scores.flatten() }
}

/// Writes the gradients of queries, keys and values where they are wanted.
pub(super) fn backward(
    problem: &Problem,
    peaks: &Array,
    gradient: &Array,
    sinks: &mut [Sink<'_>],
    targets: [Option<Target>; 3],
) {
    let rows = problem.query_sequences.tokens();
    let delta = Array::scratch_on(Device::Cuda, DType::F32, problem.heads, rows);
    let mut call = Call::new(problem, Weights::Discard);
    let argument = &mut call.argument;
    argument.d_o = gradient.pointer();
    argument.peaks = peaks.pointer();
    argument.delta = delta.pointer();
    let place = |target: Option<Target>| match target {
        None => (Pointer::NULL, 0),
        Some(Target { sink, column }) => {
            let array = &sinks[sink].array;
            (array.pointer().offset(column * array.dtype().bytes()), array.width() as u32)
        }
    };
    let [queries, keys, values] = targets.map(place);
    (argument.dq, argument.dq_stride) = queries;
    (argument.dk, argument.dk_stride) = keys;
    (argument.dv, argument.dv_stride) = values;
    // The fast kernels read and write eight numbers at a time.
    let is_even = |(pointer, stride): (Pointer, u32)| pointer.0 % 16 == 0 && stride % 8 == 0;
    match call.fast.filter(|_| [queries, keys, values].into_iter().all(is_even)) {
        Some(width) => {
            let (heads, work) = (problem.heads, call.work.clone());
            let small = |blocks: usize, rows: usize| Blocks {
                grid: [blocks, 1, 1],
                threads: 4 * rows,
                shared: rows * (6 * width + 4 * rows + 8),
            };
            let long = |items: usize| Blocks {
                grid: [heads * items, 1, 1],
                threads: 128,
                shared: 128 * (8 * width + 36),
            };
            // Every sequence is done by one of them.
            let mut short = || call.launch_fast(BACKWARD, width, small(call.short_blocks(), 64));
            let mut whole =
                || call.launch_fast(BACKWARD_WHOLE, width, small(heads * work.fast.kinds[1], 128));
            let mut longer = || {
                call.launch_fast(BACKWARD_QUERIES, width, long(work.fast.kinds[0]));
                let keys = call.with_list(&work.fast_keys);
                launch_fast(&keys, BACKWARD_KEYS, width, long(work.fast_keys.kinds[0]));
            };
            match work.fast.kinds[..2] {
                [0, 0] => short(),
                [0, _] => side_by_side(&mut [&mut short, &mut whole]),
                _ => side_by_side(&mut [&mut short, &mut whole, &mut longer]),
            }
        }
        None if problem.queries == Queries::One => single::launch(&call, single::BACKWARD),
        None => {
            let queries = ["attention_backward_queries_f32", "attention_backward_queries_bf16"];
            call.launch_generic(queries, Side::Queries, 2);
            let keys = ["attention_backward_keys_f32", "attention_backward_keys_bf16"];
            call.launch_generic(keys, Side::Keys, 2);
        }
    }
}

const FORWARD: [&str; 3] =
    ["attention_fast_forward_32", "attention_fast_forward_64", "attention_fast_forward_128"];
const BACKWARD: [&str; 3] =
    ["attention_fast_backward_32", "attention_fast_backward_64", "attention_fast_backward_128"];
const BACKWARD_WHOLE: [&str; 3] = [
    "attention_fast_backward_whole_32",
    "attention_fast_backward_whole_64",
    "attention_fast_backward_whole_128",
];
const BACKWARD_QUERIES: [&str; 3] = [
    "attention_fast_backward_queries_32",
    "attention_fast_backward_queries_64",
    "attention_fast_backward_queries_128",
];
const BACKWARD_KEYS: [&str; 3] = [
    "attention_fast_backward_keys_32",
    "attention_fast_backward_keys_64",
    "attention_fast_backward_keys_128",
];
const WIDTHS: [usize; 3] = [32, 64, 128];

/// The widest heads whose rows are in shared memory as a whole; as in generic/wide.cu.
const WIDEST: usize = 256;

/// Whose rows a generic kernel's blocks have.
#[derive(Clone, Copy)]
enum Side {
    Queries,
    Keys,
}

impl<'a> Call<'a> {
    fn new(problem: &'a Problem, weights: Weights) -> Call<'a> {
        let Problem {
            inputs,
            query_sequences,
            key_sequences,
            heads,
            d_k,
            d_v,
            scale,
            mask,
            dropout,
            rounding: _,
            queries: _,
        } = problem;
        let work = Work::of(query_sequences, key_sequences);
        let parts = inputs.each_ref().map(|(tensor, column)| {
            let array = tensor.array();
            (array.pointer().offset(column * array.dtype().bytes()), array.width())
        });
        let [q, k, v] = parts;
        let is_even = |&(pointer, stride): &(Pointer, usize)| pointer.0 % 16 == 0 && stride % 8 == 0;
        let fits = inputs[0].0.dtype() == DType::Bf16
            && d_k == d_v
            && WIDTHS.contains(d_k)
            && weights == Weights::Discard
            && !mask.has_booleans()
            && parts.iter().all(is_even);
        let booleans = mask.has_booleans().then(|| {
            let (allowed, offsets) = mask.booleans(query_sequences, key_sequences);
            [upload(&allowed), upload(&offsets)]
        });
        let drawn = DropoutArgument::always(*dropout);
        let argument = Argument {
            q: q.0,
            k: k.0,
            v: v.0,
            o: Pointer::NULL,
            d_o: Pointer::NULL,
            dq: Pointer::NULL,
            dk: Pointer::NULL,
            dv: Pointer::NULL,
            peaks: Pointer::NULL,
            delta: Pointer::NULL,
            q_offsets: work.query_offsets.pointer(),
            k_offsets: work.key_offsets.pointer(),
            dropout: drawn.pointer(),
            sizes: work.sizes.pointer(),
            mask: booleans.as_ref().map_or(Pointer::NULL, |[allowed, _]| allowed.pointer()),
            mask_offsets: booleans.as_ref().map_or(Pointer::NULL, |[_, offsets]| offsets.pointer()),
            weights: Pointer::NULL,
            scores: Pointer::NULL,
            weight_offsets: Pointer::NULL,
            work: work.fast.items(),
            work_count: work.fast.counts(),
            q_stride: q.1 as u32,
            k_stride: k.1 as u32,
            v_stride: v.1 as u32,
            o_stride: (heads * d_v) as u32,
            dq_stride: 0,
            dk_stride: 0,
            dv_stride: 0,
            heads: *heads as u32,
            d_k: *d_k as u32,
            d_v: *d_v as u32,
            peak_rows: query_sequences.tokens() as u32,
            causal: u32::from(mask.is_causal()),
            window: mask.window().map_or(u32::MAX, |distance| distance.min(u32::MAX as usize) as u32),
            scale: *scale,
        };
        let fast = fits.then_some(*d_k);
        Call { problem, argument, work, fast, _dropout: drawn, _mask: booleans }
    }

    /// Blocks for sequences of up to 64 tokens: one for each head, or half of one up to 32 tokens.
    fn short_blocks(&self) -> usize {
        let heads = self.problem.heads;
        let kinds = &self.work.fast.kinds;
        heads * kinds[2] + (heads * kinds[3]).div_ceil(2)
    }

    fn launch_fast(&self, names: [&'static str; 3], width: usize, blocks: Blocks) {
        launch_fast(&self.argument, names, width, blocks);
    }

    /// The same argument with another list of work.
    fn with_list(&self, list: &List) -> Argument {
        Argument { work: list.items(), work_count: list.counts(), ..self.argument }
    }

    /// `factors` is 1 forward and 2 backward: how many matrices of each width a block has in shared memory, less one half.
    fn launch_generic(&mut self, [f32, bf16]: [&'static str; 2], side: Side, factors: usize) {
        let Problem { heads, d_k, d_v, .. } = *self.problem;
        let work = self.work.clone();
        let list = match side {
            Side::Queries => work.generic(0),
            Side::Keys => work.generic(1),
        };
        self.argument = self.with_list(list);
        let name = match self.problem.inputs[0].0.dtype() {
            DType::F32 => f32,
            DType::Bf16 => bf16,
        };
        let width = d_k.max(d_v);
        let stride = |d: usize| d.next_multiple_of(8) + 4;
        // Tiles of 32 rows: of products, two of each side or one for both; of sums, as many as there are.
        let shared = match (width <= WIDEST, factors) {
            (true, 1) => 4 * (64 * stride(d_k) + 32 * stride(d_v) + 32 * 36),
            (true, _) => 4 * (64 * stride(d_k) + 64 * stride(d_v) + 64 * 36),
            (false, 1) => 4 * (64 * stride(64) + 32 * stride(WIDEST) + 32 * 36),
            (false, _) => 4 * (64 * stride(64) + 64 * stride(WIDEST) + 64 * 36),
        };
        let (name, beside) = match width {
            0..=64 => (variant(name, 0), 1),
            65..=WIDEST => (name, 1),
            _ => (variant(name, 1), width.div_ceil(WIDEST)),
        };
        let blocks = Blocks { grid: [roomy(list.kinds[0]), heads, beside], threads: 256, shared };
        launch!(GENERIC.function_with_shared(name, shared), blocks, self.argument);
    }
}

fn launch_fast(argument: &Argument, names: [&'static str; 3], width: usize, blocks: Blocks) {
    let name = names[WIDTHS.iter().position(|&known| known == width).expect("a width of the fast kernels")];
    let blocks = Blocks { grid: [roomy(blocks.grid[0]), 1, 1], ..blocks };
    launch!(FAST.function_with_shared(name, blocks.shared), blocks, *argument);
}

/// The variant for heads of at most 64 numbers (0), or of more than 256 (1).
fn variant(name: &'static str, which: usize) -> &'static str {
    let variants = match name {
        "attention_forward_f32" => ["attention_forward_f32_64", "attention_forward_f32_wide"],
        "attention_forward_bf16" => ["attention_forward_bf16_64", "attention_forward_bf16_wide"],
        "attention_backward_queries_f32" => {
            ["attention_backward_queries_f32_64", "attention_backward_queries_f32_wide"]
        }
        "attention_backward_queries_bf16" => {
            ["attention_backward_queries_bf16_64", "attention_backward_queries_bf16_wide"]
        }
        "attention_backward_keys_f32" => {
            ["attention_backward_keys_f32_64", "attention_backward_keys_f32_wide"]
        }
        "attention_backward_keys_bf16" => {
            ["attention_backward_keys_bf16_64", "attention_backward_keys_bf16_wide"]
        }
        other => [other; 2],
    };
    variants[which]
}
