//! Products with weights, from one row to thousands.

use std::f64::consts::{FRAC_2_SQRT_PI, SQRT_2};

use heedful_tensor::ops::{self, Activation, LinearOptions, Projection};
use heedful_tensor::random::Dropout;
use heedful_tensor::{Compute, DType, Device, Init, Params, Tensor, tape};

use super::{distance, random_values};

const ACTIVATIONS: [Activation; 5] =
    [Activation::Identity, Activation::Relu, Activation::Gelu, Activation::GeluTanh, Activation::Silu];

/// Numbers of rows that use every tile size.
const ROWS: [usize; 6] = [1, 5, 17, 130, 700, 5000];

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn products_match_the_cpu_and_rows_are_independent() {
    for (number, [inputs, outputs]) in
        [[512, 512], [64, 200], [33, 47], [2048, 128], [40, 8003]].into_iter().enumerate()
    {
        let params = Params::new(3);
        let weight = params.add("weight", inputs, outputs, Init::Normal(0.1));
        let weight_t = params.add("weight_t", outputs, inputs, Init::Normal(0.1));
        let bias = params.add("bias", 1, outputs, Init::Normal(1.0));
        let activation = ACTIVATIONS[number];
        for (compute, tolerance) in [(DType::F32, 1e-5), (DType::Bf16, 1e-2)] {
            let compute = Compute::inference(compute);
            let run = |device: Device, values: &[f32]| -> [Vec<f32>; 2] {
                params.move_to(device).expect("it fits");
                tape::no_grad(|| {
                    let x = Tensor::from_f32_on(device, values.len() / inputs, inputs, values);
                    let options = LinearOptions { activation, dropout: Dropout::NONE, compute };
                    let projection =
                        Projection { weight: &weight_t, bias: (number % 2 == 0).then_some(&bias) };
                    let y = ops::linear(&x, &weight, Some(&bias), options);
                    [y.to_vec(), ops::project_f32_out(&x, projection, compute).to_vec()]
                })
            };
            let all = random_values(ROWS[ROWS.len() - 1] * inputs, 1);
            let exact = run(Device::Cpu, &all[..130 * inputs]);
            let most = run(Device::Cuda, &all);
            for rows in ROWS {
                let found = run(Device::Cuda, &all[..rows * inputs]);
                for (kind, (found, most)) in found.iter().zip(&most).enumerate() {
                    assert!(
                        found[..] == most[..found.len()],
                        "{inputs} to {outputs} in {compute:?}, kind {kind}: {rows} rows and {} differ",
                        ROWS[ROWS.len() - 1]
                    );
                }
            }
            for (found, exact) in most.iter().zip(&exact) {
                let off = distance(&found[..exact.len()], exact);
                assert!(off < tolerance, "{inputs} to {outputs} in {compute:?} {activation:?}: {off:e} off");
            }
        }
    }
}

/// Numbers of rows that use every tile of the sm90 GEMM and end in the middle of one.
const ROWS_OF_TILES: [usize; 13] = [1, 5, 8, 63, 64, 65, 200, 450, 1000, 2000, 3000, 5000, 10_000];

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn a_row_has_the_same_bits_in_every_tile_and_at_every_position_in_it() {
    let compute = Compute::inference(DType::Bf16);
    let shapes = [
        ([512, 512], 10_000),
        ([8, 24], 10_000),
        ([72, 1000], 10_000),
        ([72, 304], 10_000),
        ([512, 2048], 2048),
        ([40, 8003], 2000),
        ([1032, 512], 5000),
    ];
    for (number, ([inputs, outputs], most)) in shapes.into_iter().enumerate() {
        let params = Params::new(7);
        let weight = params.add("weight", inputs, outputs, Init::Normal(0.1));
        let weight_t = params.add("weight_t", outputs, inputs, Init::Normal(0.1));
        let bias = params.add("bias", 1, outputs, Init::Normal(1.0));
        let [w, w_t, added] = [&weight, &weight_t, &bias].map(|param| param.to_vec());
        params.move_to(Device::Cuda).expect("it fits");
        let activation = ACTIVATIONS[number % ACTIVATIONS.len()];
        let options = LinearOptions { activation, dropout: Dropout::NONE, compute };
        let projection = Projection { weight: &weight_t, bias: Some(&bias) };
        // W and its transpose, with both result types.
        let run = |values: &[f32]| -> [Vec<f32>; 4] {
            tape::no_grad(|| {
                let x = Tensor::from_f32_on(Device::Cuda, values.len() / inputs, inputs, values);
                [
                    ops::linear(&x, &weight, Some(&bias), options).to_vec(),
                    ops::matmul_f32_out(&x, &weight, compute).to_vec(),
                    ops::project(&x, projection, compute).to_vec(),
                    ops::project_f32_out(&x, projection, compute).to_vec(),
                ]
            })
        };
        let values = random_values(most * inputs, 3);
        let all = run(&values);
        for rows in ROWS_OF_TILES.into_iter().filter(|&rows| rows <= most) {
            for first in [0, 37.min(most - rows)] {
                let found = run(&values[first * inputs..(first + rows) * inputs]);
                for (kind, (found, all)) in found.iter().zip(&all).enumerate() {
                    assert!(
                        found[..] == all[first * outputs..(first + rows) * outputs],
                        "{inputs} to {outputs}, kind {kind}: {rows} rows from {first} on differ among {most}"
                    );
                }
            }
        }
        for row in [0, 4, 7, 8, 64, 129, 255, 256, most - 1] {
            let x = &values[row * inputs..(row + 1) * inputs];
            let exact = exact_products(x, [&w, &w_t]);
            let with_bias =
                |sums: &[f64]| sums.iter().zip(&added).map(|(&sum, &b)| sum + f64::from(b)).collect();
            let mut expected: [Vec<f64>; 4] =
                [with_bias(&exact[0]), exact[0].clone(), with_bias(&exact[1]), with_bias(&exact[1])];
            expected[0].iter_mut().for_each(|x| *x = activated(activation, *x));
            for (kind, (all, expected)) in all.iter().zip(&expected).enumerate() {
                let tolerance = [4e-3, 1e-4, 4e-3, 1e-4][kind];
                let expected: Vec<f32> = expected.iter().map(|&x| x as f32).collect();
                let off = distance(&all[row * outputs..(row + 1) * outputs], &expected);
                assert!(off < tolerance, "{inputs} to {outputs}, kind {kind}: row {row} is {off:e} off");
            }
        }
    }
}

/// `x W` and `x Wᵀ` of values rounded to bf16, for one `W` of inputs × outputs and one of outputs × inputs.
fn exact_products(x: &[f32], [w, w_t]: [&[f32]; 2]) -> [Vec<f64>; 2] {
    let rounded = |x: f32| f64::from(half::bf16::from_f32(x).to_f32());
    let (inputs, outputs) = (x.len(), w_t.len() / x.len());
    let sum = |at: &dyn Fn(usize) -> f32| (0..inputs).map(|k| rounded(x[k]) * rounded(at(k))).sum();
    [
        (0..outputs).map(|o| sum(&|k| w[k * outputs + o])).collect(),
        (0..outputs).map(|o| sum(&|k| w_t[o * inputs + k])).collect(),
    ]
}

fn activated(activation: Activation, x: f64) -> f64 {
    match activation {
        Activation::Identity => x,
        Activation::Relu => x.max(0.0),
        Activation::Gelu => 0.5 * x * (1.0 + erf(x / SQRT_2)),
        Activation::GeluTanh => {
            0.5 * x * (1.0 + (FRAC_2_SQRT_PI / SQRT_2 * (x + 0.044715 * x.powi(3))).tanh())
        }
        Activation::Silu => x / (1.0 + (-x).exp()),
    }
}

/// The Taylor series around 0.
fn erf(x: f64) -> f64 {
    if x.abs() > 4.0 {
        return x.signum();
    }
    let (mut term, mut sum) = (x, x);
    for n in 1..100 {
        term *= -x * x / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    sum * FRAC_2_SQRT_PI
}
