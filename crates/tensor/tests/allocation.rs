//! Training steps reuse tensor memory: a counting allocator sees no new allocations.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use heedful_tensor::cpu::threads::set_thread_count;
use heedful_tensor::ops::{
    Activation, Adam, AdamOptions, AttentionOptions, ColumnView, ConvolutionOptions, CrossEntropyOptions,
    EmbeddingOptions, LinearOptions, Mask, NormOptions, Padding, Positions, ReturnWeights, SinusoidLayout,
    add, attention, convolution, cross_entropy, embedding, gather_rows, glu, linear, max_pool, mean_pool,
    residual_norm,
};
use heedful_tensor::random::{Dropout, Stream};
use heedful_tensor::{Compute, DType, Init, Param, Params, Ragged, tape};

/// Counts allocated bytes of tensor memory: only the pool requests memory aligned to cache lines.
struct Counting;

static TENSOR_BYTES: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all calls are forwarded to the system allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout);
        // SAFETY: the caller upholds `GlobalAlloc`'s contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout);
        // SAFETY: the caller upholds `GlobalAlloc`'s contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds `GlobalAlloc`'s contract.
        unsafe { System.dealloc(start, layout) }
    }
}

fn count(layout: Layout) {
    if layout.align() >= 64 {
        TENSOR_BYTES.fetch_add(layout.size(), Ordering::Relaxed);
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const D: usize = 48;
const CLASSES: usize = 90;

struct Model {
    params: Params,
    table: Param,
    qkv: Param,
    inner: Param,
    outer: Param,
    taps: Param,
    bias: Param,
    gamma: Param,
    beta: Param,
}

impl Model {
    fn new() -> Model {
        let params = Params::new(1);
        Model {
            table: params.add("table", CLASSES, D, Init::Normal(0.1)),
            qkv: params.add("qkv", D, 3 * D, Init::Xavier),
            inner: params.add("inner", D, 2 * D, Init::Xavier),
            outer: params.add("outer", 2 * D, D, Init::Xavier),
            taps: params.add("taps", 3 * D, 2 * D, Init::Xavier),
            bias: params.add("bias", 1, D, Init::Constant(0.0)),
            gamma: params.add("gamma", 1, D, Init::Constant(1.0)),
            beta: params.add("beta", 1, D, Init::Constant(0.0)),
            params,
        }
    }

    /// One layer of each kind that models use: forward, backward and update.
    fn step(&self, lengths: &[usize], adam: &mut Adam, number: u64, compute: Compute) {
        let sequences = Ragged::from_lengths(lengths.iter().copied());
        let ids: Vec<u32> = (0..sequences.tokens() as u32).map(|i| i % CLASSES as u32).collect();
        let dropout = Dropout::new(0.1, Stream::new(1, number, 0));
        let positions = Positions::Sinusoidal(SinusoidLayout::Interleaved);
        let options = EmbeddingOptions { scale: 1.0, positions, first_position: 0, dropout, compute };
        let x = embedding(&ids, &sequences, &self.table, options);
        let map = |activation| LinearOptions { activation, dropout: Dropout::NONE, compute };
        let qkv = linear(&x, &self.qkv, None, map(Activation::Identity));
        let part = |i: usize| ColumnView { tensor: qkv.clone(), columns: i * D..(i + 1) * D };
        let how = AttentionOptions {
            heads: 4,
            scale: 0.3,
            mask: Mask::full().causal(),
            dropout,
            weights: ReturnWeights::None,
            rounding: heedful_tensor::Rounding::Fused,
        };
        let attended = attention(part(0), part(1), part(2), &sequences, &sequences, &how).context;
        let norm = NormOptions { epsilon: 1e-5, compute };
        let z = residual_norm(&x, &attended, &self.gamma, &self.beta, dropout, norm);
        let hidden = linear(&z, &self.inner, None, map(Activation::Relu));
        let y = linear(&hidden, &self.outer, Some(&self.bias), map(Activation::Identity));
        let y = residual_norm(&z, &y, &self.gamma, &self.beta, dropout, norm);
        let window = ConvolutionOptions { taps: 3, dilation: 1, padding: Padding::Causal, compute };
        let y = add(&y, &glu(&convolution(&y, &sequences, &self.taps, None, window)));
        let pooled = add(&mean_pool(&y, &sequences), &max_pool(&y, &sequences));
        let owners: Vec<usize> = (0..sequences.tokens()).map(|row| sequences.sequence_of(row)).collect();
        let y = add(&y, &gather_rows(&pooled, &owners));
        let loss = CrossEntropyOptions { smoothing: 0.1, r_drop: None, compute };
        let loss = cross_entropy(&y, &self.table, &ids, loss).loss;
        tape::backward(&loss);
        adam.step(&self.params, 1e-3);
    }
}

#[test]
fn training_allocates_no_tensor_memory_from_the_third_step_on() {
    let batches: [Vec<usize>; 3] = [vec![30; 20], vec![1, 200, 3, 77, 12], (1..40).collect()];
    for threads in [1, 2] {
        set_thread_count(threads);
        for compute in [DType::F32, DType::Bf16] {
            let model = Model::new();
            let mut adam = Adam::new(&model.params, AdamOptions::default());
            let mut epoch = |epoch: u64| {
                for (i, lengths) in batches.iter().enumerate() {
                    model.step(lengths, &mut adam, epoch * 10 + i as u64, Compute::training(compute));
                }
            };
            epoch(0);
            epoch(1);
            let before = TENSOR_BYTES.load(Ordering::Relaxed);
            assert!(before > 0, "the allocator counted nothing");
            for number in 2..12 {
                epoch(number);
            }
            let allocated = TENSOR_BYTES.load(Ordering::Relaxed) - before;
            assert_eq!(
                allocated, 0,
                "{allocated} bytes of tensor memory with {threads} threads in {compute}"
            );
        }
    }
}
