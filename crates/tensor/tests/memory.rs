//! What is kept, and for how long.

use std::sync::{Mutex, MutexGuard};

use heedful_tensor::cpu::memory::bytes_held;
use heedful_tensor::ops::{Activation, LinearOptions, NormOptions, layer_norm, linear, sum};
use heedful_tensor::random::Dropout;
use heedful_tensor::{Array, Compute, DType, Init, Param, Params, Tensor, tape};

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
    let before = bytes_held();
    let outputs = forward();
    let kept = bytes_held() - before - outputs.len() * ARRAY;
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
    let before = bytes_held();
    step();
    assert!(bytes_held() >= before + D * D * 4);
    params.clear_gradients();
    assert_eq!(bytes_held(), before);
}
