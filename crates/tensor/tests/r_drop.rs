//! The cross entropy of two passes over the same tokens. `gradients.rs` checks it against its formula.

use heedful_tensor::ops::{CrossEntropyOptions, cross_entropy};
use heedful_tensor::random::Stream;
use heedful_tensor::tape::backward;
use heedful_tensor::{Array, Compute, DType, Init, Params, Tensor};

const D: usize = 5;

/// Loss, sum of −log p(label), gradient of `x` and gradient of `W`.
struct LossAndGradients {
    loss: f32,
    negative_log_likelihood: f64,
    dx: Vec<f32>,
    dw: Vec<f32>,
}

fn run(x: &[f32], classes: usize, r_drop: Option<f32>, dtype: DType) -> LossAndGradients {
    let params = Params::new(4);
    let weight = params.add("weight", classes, D, Init::Normal(1.0));
    let rows = x.len() / D;
    let x = Tensor::variable(Array::from_f32(rows, D, x));
    let labels: Vec<u32> = (0..rows).map(|row| (row % (rows / 2) * 7 % classes) as u32).collect();
    let options = CrossEntropyOptions { smoothing: 0.1, r_drop, compute: Compute::training(dtype) };
    let found = cross_entropy(&x, &weight, &labels, options);
    let gradients = backward(&found.loss);
    LossAndGradients {
        loss: found.loss.item(),
        negative_log_likelihood: found.negative_log_likelihood(),
        dx: gradients.of(&x).expect("a gradient").to_vec(),
        dw: weight.gradient(),
    }
}

fn draws(rows: usize, number: u64) -> Vec<f32> {
    let stream = Stream::new(8, 0, number);
    (0..(rows * D) as u32).map(|i| 2.0 * stream.uniform(i) - 1.0).collect()
}

#[test]
fn equal_passes_have_no_divergence_and_the_gradients_of_one_pass() {
    let once = draws(300, 1);
    let twice = [once.clone(), once].concat();
    let (plain, paired) = (run(&twice, 50, None, DType::F32), run(&twice, 50, Some(6.0), DType::F32));
    assert_eq!((plain.loss, plain.negative_log_likelihood), (paired.loss, paired.negative_log_likelihood));
    assert_eq!(plain.dx, paired.dx);
    assert!(distance(&plain.dw, &paired.dw) < 1e-6);
}

#[test]
fn the_order_of_the_passes_does_not_matter() {
    for dtype in [DType::F32, DType::Bf16] {
        let (one, other) = (draws(300, 1), draws(300, 2));
        let there = run(&[one.clone(), other.clone()].concat(), 50, Some(6.0), dtype);
        let back = run(&[other, one].concat(), 50, Some(6.0), dtype);
        let (first, second) = there.dx.split_at(300 * D);
        assert!(back.dx == [second, first].concat(), "{dtype}");
        assert!((there.loss - back.loss).abs() < 1e-6, "{dtype}: {} and {}", there.loss, back.loss);
    }
}

/// So many classes that the logit gradients of 512 tokens are added to `dW` in two chunks.
#[test]
fn large_batches_have_correct_token_and_weight_gradients() {
    let (tokens, classes) = (512, 20_480);
    let (one, other) = (draws(tokens, 1), draws(tokens, 2));
    let x = [one.clone(), other.clone()].concat();
    let whole = run(&x, classes, Some(6.0), DType::F32);
    // Half of the tokens: a mean over twice as many halves a gradient exactly.
    let half = tokens / 2 * D;
    let part = run(&[&one[..half], &other[..half]].concat(), classes, Some(6.0), DType::F32);
    let doubled = |values: &[f32]| values.iter().map(|x| 2.0 * x).collect::<Vec<f32>>();
    assert!(doubled(&whole.dx[..half]) == part.dx[..half]);
    assert!(doubled(&whole.dx[2 * half..3 * half]) == part.dx[half..]);
    // Σ dW ∘ W = Σ dz ∘ z = Σ dx ∘ x
    let sum = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    let weight = Params::new(4).add("weight", classes, D, Init::Normal(1.0)).to_vec();
    let (by_weight, by_x) = (sum(&whole.dw, &weight), sum(&whole.dx, &x));
    assert!((by_weight - by_x).abs() < 1e-5 * by_x.abs(), "{by_weight} and {by_x}");
}

/// `‖a − b‖ / ‖b‖`
fn distance(a: &[f32], b: &[f32]) -> f64 {
    let length = |values: &mut dyn Iterator<Item = f32>| values.map(|x| f64::from(x).powi(2)).sum::<f64>();
    (length(&mut a.iter().zip(b).map(|(a, b)| a - b)) / length(&mut b.iter().copied())).sqrt()
}
