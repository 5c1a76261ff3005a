//! Memory that is kept for the backward pass, and for how long.

use std::sync::{Mutex, MutexGuard};

use heedful_tensor::cpu::memory::{bytes_in_use, peak_bytes_in_use};
use heedful_tensor::ops::{
    Activation, AttentionOptions, ColumnView, LinearOptions, Mask, NormOptions, ReturnWeights, attention,
    layer_norm, linear, sum,
};
use heedful_tensor::random::Dropout;
use heedful_tensor::{Array, Compute, DType, Init, Param, Params, Ragged, Tensor, tape};

const ROWS: usize = 512;
const D: usize = 256;
const ARRAY: usize = ROWS * D * 4;

/// The memory pool is process-wide, so tests that count its bytes run one at a time.
fn exclusive() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn map(x: &Tensor, weight: &Param) -> Tensor {
    let options = LinearOptions {
        activation: Activation::Identity,
        dropout: Dropout::NONE,
        compute: Compute::training(DType::F32),
    };
    linear(x, weight, None, options)
}

#[test]
fn a_norm_and_the_linear_layers_after_it_save_one_array_together() {
    let _lock = exclusive();
    let params = Params::new(1);
    let gamma = params.add("gamma", 1, D, Init::Constant(1.5));
    let beta = params.add("beta", 1, D, Init::Constant(0.5));
    let weights = ["a", "b"].map(|name| params.add(name, D, D, Init::Xavier));
    let x = Tensor::variable(Array::zeros(DType::F32, ROWS, D));
    let forward = || {
        let y = layer_norm(
            &x,
            &gamma,
            &beta,
            NormOptions { epsilon: 1e-5, compute: Compute::training(DType::F32) },
        );
        weights.each_ref().map(|weight| map(&y, weight))
    };
    // The packed copy of a weight is cached from its second use on: use each twice before the measurement.
    drop(forward());
    drop(forward());
    let before = bytes_in_use();
    let outputs = forward();
    let kept = bytes_in_use() - before - outputs.len() * ARRAY;
    assert!(kept < ARRAY * 3 / 2, "{kept} bytes for arrays of {ARRAY}");
}

#[test]
fn gradients_use_memory_only_between_the_backward_pass_and_the_update() {
    let _lock = exclusive();
    let params = Params::new(1);
    let weight = params.add("weight", D, D, Init::Xavier);
    let x = Tensor::new(Array::zeros(DType::F32, ROWS, D));
    let step = || drop(tape::backward(&sum(&map(&x, &weight))));
    step();
    step();
    params.clear_gradients();
    let before = bytes_in_use();
    step();
    assert!(bytes_in_use() >= before + D * D * 4);
    params.clear_gradients();
    assert_eq!(bytes_in_use(), before);
}

/// The weights of 4,096 queries and keys alone are 64 MiB.
#[test]
fn attention_memory_is_linear_in_the_sequence_length() {
    let _lock = exclusive();
    const LONG: usize = 4096;
    const WIDTH: usize = 16;
    for dtype in [DType::F32, DType::Bf16] {
        let sequence = Ragged::from_lengths([LONG]);
        let x = Tensor::variable(Array::zeros(dtype, LONG, 3 * WIDTH));
        let part = |i: usize| ColumnView { tensor: x.clone(), columns: i * WIDTH..(i + 1) * WIDTH };
        let options = AttentionOptions {
            heads: 1,
            scale: 0.25,
            mask: Mask::full(),
            dropout: Dropout::NONE,
            weights: ReturnWeights::None,
            rounding: heedful_tensor::Rounding::Fused,
        };
        let most = peak_bytes_in_use(|| {
            let attended = attention(part(0), part(1), part(2), &sequence, &sequence, &options);
            drop(tape::backward(&sum(&attended.context)));
        });
        let (rows, block) = (LONG * WIDTH * 4, 32 * LONG * 4);
        assert!(most < 32 * rows + 16 * block, "{most} bytes in {dtype}");
    }
}
