//! What is kept, and for how long.

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

/// The pool is one for the whole process: whoever counts its bytes counts alone.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
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
fn a_norm_and_the_maps_behind_it_keep_one_array_between_them() {
    let _alone = alone();
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
    // Packed weights that are asked for twice stay: they are there before, not only after.
    drop(forward());
    drop(forward());
    let before = bytes_in_use();
    let outputs = forward();
    let kept = bytes_in_use() - before - outputs.len() * ARRAY;
    assert!(kept < ARRAY * 3 / 2, "{kept} bytes for arrays of {ARRAY}");
}

#[test]
fn gradients_take_memory_from_the_backward_pass_to_the_update_only() {
    let _alone = alone();
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
fn attention_takes_memory_by_its_length_and_not_by_the_square_of_it() {
    let _alone = alone();
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
