//! Attention on the GPU. Fast kernels for bf16 heads of width 32, 64 or 128 keep a head's weights in
//! registers and shared memory and use tensor cores; generic f32 kernels do everything else and are the
//! reference for the fast ones. The kernels of `single` replace the generic ones where sequences have one
//! query each. All of them recompute the weights in the backward pass, and no sum depends on the order of
//! blocks.

mod returned;
pub(crate) mod single;
mod work;

use std::rc::Rc;

use bytemuck::{NoUninit, Zeroable};

use super::{Forward, Problem, QueryCount, ReturnWeights, Sink, Target};
use crate::cuda::{
    Blocks, Buffer, DropoutArgument, Module, Pointer, on_parallel_streams, round_up_to_bucket, upload,
};
use crate::{Array, DType, Device};
use returned::ReturnedWeights;
use work::{WorkList, WorkLists};

pub(crate) static GENERIC: Module = Module::new(
    "attention_generic",
    concat!(
        include_str!("layout.cu"),
        include_str!("generic/pair.cu"),
        include_str!("generic/forward.cu"),
        include_str!("generic/backward.cu"),
    ),
);

pub(crate) static FAST: Module = Module::with_pdl(
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
#[derive(Clone, Copy, NoUninit, Zeroable)]
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
    stats: Pointer,
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
    stats_rows: u32,
    causal: u32,
    window: u32,
    scale: f32,
}

/// One call, ready to launch: the kernel argument and the buffers it points to.
struct Call<'a> {
    problem: &'a Problem,
    argument: Argument,
    work: Rc<WorkLists>,
    /// The head width, if the fast kernels support this call.
    fast: Option<usize>,
    _dropout: DropoutArgument,
    _mask: Option<[Buffer; 2]>,
}

pub(super) fn forward(problem: &Problem, weights: ReturnWeights) -> Forward {
    let Problem { query_sequences, heads, d_v, .. } = problem;
    let rows = query_sequences.tokens();
    let context = Array::scratch_on(Device::Cuda, problem.inputs[0].0.dtype(), rows, heads * d_v);
    let stats = Array::scratch_on(Device::Cuda, DType::F32, heads * rows, 2);
    let mut call = Call::new(problem, weights);
    call.argument.o = context.pointer();
    call.argument.stats = stats.pointer();
    let returned = (weights != ReturnWeights::None).then(|| ReturnedWeights::new(problem, weights));
    if let Some(returned) = &returned {
        call.argument.weights = returned.weights.pointer();
        call.argument.scores = returned.scores.as_ref().map_or(Pointer::NULL, Array::pointer);
        call.argument.weight_offsets = returned.offsets.pointer();
    }
    match call.fast {
        Some(width) => {
            let blocks = Blocks {
                grid: [heads * call.work.fast.kinds[0], 1, 1],
                threads: if width == 128 { 256 } else { 128 },
                shared: 64 * (6 * width + 36),
            };
            call.launch_fast("forward", width, blocks);
        }
        None if problem.queries == QueryCount::One => single::launch(&call, "forward"),
        None => call.launch_generic("forward", Side::Queries, 1),
    }
    let (weights, scores) = returned.map(|returned| returned.to_vecs()).unzip();
    Forward { context, stats, weights, scores: scores.flatten() }
}

/// Writes the requested gradients of queries, keys and values.
pub(super) fn backward(
    problem: &Problem,
    stats: &Array,
    gradient: &Array,
    sinks: &mut [Sink<'_>],
    targets: [Option<Target>; 3],
) {
    let rows = problem.query_sequences.tokens();
    let delta = Array::scratch_on(Device::Cuda, DType::F32, problem.heads, rows);
    let mut call = Call::new(problem, ReturnWeights::None);
    let argument = &mut call.argument;
    argument.d_o = gradient.pointer();
    argument.stats = stats.pointer();
    argument.delta = delta.pointer();
    let destination = |target: Option<Target>| match target {
        None => (Pointer::NULL, 0),
        Some(Target { sink, column }) => {
            let array = &sinks[sink].array;
            (array.pointer().offset(column * array.dtype().bytes()), array.width() as u32)
        }
    };
    let [queries, keys, values] = targets.map(destination);
    (argument.dq, argument.dq_stride) = queries;
    (argument.dk, argument.dk_stride) = keys;
    (argument.dv, argument.dv_stride) = values;
    // The fast kernels read and write eight elements at a time.
    let is_aligned = |(pointer, stride): (Pointer, u32)| pointer.0 % 16 == 0 && stride % 8 == 0;
    match call.fast.filter(|_| [queries, keys, values].into_iter().all(is_aligned)) {
        Some(width) => {
            let (heads, work) = (problem.heads, call.work.clone());
            let kinds = &work.fast_queries.kinds;
            call.argument = call.with_list(&work.fast_queries);
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
            // Each sequence belongs to one of these launches; a block has a head of up to 64 tokens, or two
            // of up to 32.
            let shorter = heads * kinds[2] + (heads * kinds[3]).div_ceil(2);
            let mut short = || call.launch_fast("backward", width, small(shorter, 64));
            let mut whole = || call.launch_fast("backward_whole", width, small(heads * kinds[1], 128));
            let mut longer = || {
                call.launch_fast("backward_queries", width, long(kinds[0]));
                let keys = call.with_list(&work.fast_keys);
                launch_fast(&keys, "backward_keys", width, long(work.fast_keys.kinds[0]));
            };
            match kinds[..2] {
                [0, 0] => short(),
                [0, _] => on_parallel_streams(&mut [&mut short, &mut whole]),
                _ => on_parallel_streams(&mut [&mut short, &mut whole, &mut longer]),
            }
        }
        None if problem.queries == QueryCount::One => single::launch(&call, "backward"),
        None => {
            call.launch_generic("backward_queries", Side::Queries, 2);
            call.launch_generic("backward_keys", Side::Keys, 2);
        }
    }
}

/// Head widths that the fast kernels support.
const WIDTHS: [usize; 3] = [32, 64, 128];

/// Columns of a head that a block of the generic kernels sums, for narrow and for wide heads; as in
/// generic/forward.cu.
const NARROW: usize = 64;
const WIDE: usize = 256;

/// Which rows a generic kernel's blocks own.
#[derive(Clone, Copy)]
enum Side {
    Queries,
    Keys,
}

impl<'a> Call<'a> {
    fn new(problem: &'a Problem, weights: ReturnWeights) -> Call<'a> {
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
        let work = WorkLists::of(query_sequences, key_sequences);
        let parts = inputs.each_ref().map(|(tensor, column)| {
            let array = tensor.array();
            (array.pointer().offset(column * array.dtype().bytes()), array.width())
        });
        let [q, k, v] = parts;
        let is_aligned = |&(pointer, stride): &(Pointer, usize)| pointer.0 % 16 == 0 && stride % 8 == 0;
        let fits = inputs[0].0.dtype() == DType::Bf16
            && d_k == d_v
            && WIDTHS.contains(d_k)
            && weights == ReturnWeights::None
            && !mask.has_booleans()
            && parts.iter().all(is_aligned);
        let booleans = mask.has_booleans().then(|| {
            let (allowed, offsets) = mask.booleans(query_sequences, key_sequences);
            [upload(&allowed), upload(&offsets)]
        });
        let dropout_argument = DropoutArgument::always(*dropout);
        let argument = Argument {
            q: q.0,
            k: k.0,
            v: v.0,
            q_offsets: work.query_offsets.pointer(),
            k_offsets: work.key_offsets.pointer(),
            dropout: dropout_argument.pointer(),
            sizes: work.sizes.pointer(),
            mask: booleans.as_ref().map_or(Pointer::NULL, |[allowed, _]| allowed.pointer()),
            mask_offsets: booleans.as_ref().map_or(Pointer::NULL, |[_, offsets]| offsets.pointer()),
            work: work.fast.items(),
            work_count: work.fast.counts(),
            q_stride: q.1 as u32,
            k_stride: k.1 as u32,
            v_stride: v.1 as u32,
            o_stride: (heads * d_v) as u32,
            heads: *heads as u32,
            d_k: *d_k as u32,
            d_v: *d_v as u32,
            stats_rows: query_sequences.tokens() as u32,
            causal: u32::from(mask.is_causal()),
            window: mask.window().map_or(u32::MAX, |distance| distance.min(u32::MAX as usize) as u32),
            scale: *scale,
            ..Argument::zeroed()
        };
        let fast = fits.then_some(*d_k);
        Call { problem, argument, work, fast, _dropout: dropout_argument, _mask: booleans }
    }

    fn launch_fast(&self, pass: &str, width: usize, blocks: Blocks) {
        launch_fast(&self.argument, pass, width, blocks);
    }

    /// The same argument with another work list.
    fn with_list(&self, list: &WorkList) -> Argument {
        Argument { work: list.items(), work_count: list.counts(), ..self.argument }
    }

    /// `sums` is the number of accumulators over rows: 1 forward, 2 backward.
    fn launch_generic(&mut self, pass: &str, side: Side, sums: usize) {
        let Problem { heads, d_k, d_v, .. } = *self.problem;
        let work = self.work.clone();
        let list = match side {
            Side::Queries => work.generic(0),
            Side::Keys => work.generic(1),
        };
        self.argument = self.with_list(list);
        let (width, dtype) = (d_k.max(d_v), self.problem.inputs[0].0.dtype());
        let (name, own) = match width {
            0..=NARROW => (format!("attention_{pass}_{dtype}_64"), NARROW),
            _ => (format!("attention_{pass}_{dtype}"), WIDE),
        };
        // Tiles of 32 rows: two for products, and one for each accumulator with its block of weights.
        let shared = 4 * (64 * (NARROW + 4) + 32 * sums * (own + 4) + 32 * sums * 36);
        let blocks = Blocks {
            grid: [round_up_to_bucket(list.kinds[0]), heads, width.div_ceil(own)],
            threads: 256,
            shared,
        };
        launch!(GENERIC.function_with_shared(name, shared), blocks, self.argument);
    }
}

fn launch_fast(argument: &Argument, pass: &str, width: usize, blocks: Blocks) {
    let function = FAST.function_with_shared(format!("attention_fast_{pass}_{width}"), blocks.shared);
    let blocks = Blocks { grid: [round_up_to_bucket(blocks.grid[0]), 1, 1], ..blocks };
    launch!(function, blocks, *argument);
}
