//! Products that are normalized by the same kernel.

use heedful_tensor::ops::{self, Activation, LinearOptions, NormOptions};
use heedful_tensor::random::Dropout;
use heedful_tensor::{Compute, DType, Device, Init, Params, Queue, Tensor, tape};

use super::{distance, has_card, numbers};

/// Rows that take every tile, alone in it and across its end, and none of them.
const ROWS: [usize; 12] = [1, 3, 8, 9, 64, 130, 260, 500, 1000, 2000, 4000, 10_000];

#[test]
fn a_product_and_a_norm_are_the_same_in_one_kernel_and_in_two() {
    if !has_card() {
        return;
    }
    let compute = Compute::inference(DType::Bf16);
    for [inputs, outputs] in
        [[512, 512], [2048, 512], [128, 64], [72, 256], [256, 384], [1024, 1024], [64, 96]]
    {
        let params = Params::new(5);
        let weight = params.add("weight", inputs, outputs, Init::Normal(0.1));
        let bias = params.add("bias", 1, outputs, Init::Normal(1.0));
        let gamma = params.add("gamma", 1, outputs, Init::Normal(1.0));
        let beta = params.add("beta", 1, outputs, Init::Normal(1.0));
        let next = params.add("next", outputs, 8, Init::Normal(0.1));
        let options = NormOptions { epsilon: 1e-5, compute };
        let (all_a, all_x) = (numbers(ROWS[11] * inputs, 1), numbers(ROWS[11] * outputs, 2));
        let run = |device: Device, rows: usize, is_one: bool| -> [Vec<f32>; 2] {
            params.move_to(device);
            tape::paused(|| {
                let a = Tensor::from_f32_on(device, rows, inputs, &all_a[..rows * inputs]);
                let x = Tensor::from_f32_on(device, rows, outputs, &all_x[..rows * outputs]);
                let (map, norm) = ((&weight, Some(&bias)), (&gamma, &beta));
                let linear =
                    LinearOptions { activation: Activation::Identity, dropout: Dropout::NONE, compute };
                let y = if is_one {
                    ops::linear_residual_norm(&a, map, &x, norm, Dropout::NONE, options)
                } else {
                    let sublayer = ops::linear(&a, &weight, Some(&bias), linear);
                    ops::residual_norm(&x, &sublayer, &gamma, &beta, Dropout::NONE, options)
                };
                // Both forms of the result: a product reads the rounded one.
                [y.to_vec(), ops::linear(&y, &next, None, linear).to_vec()]
            })
        };
        for rows in ROWS {
            let [one, two] = [true, false].map(|is_one| run(Device::Cuda, rows, is_one));
            assert!(one == two, "{rows} rows from {inputs} to {outputs} differ");
        }
        let (found, exact) = (run(Device::Cuda, 130, true), run(Device::Cpu, 130, true));
        let off = distance(&found[0], &exact[0]);
        assert!(off < 1e-2, "{inputs} to {outputs}: {off:e} off");
    }
}

#[test]
fn steps_of_several_queues_find_what_each_finds_alone() {
    if !has_card() {
        return;
    }
    let params = Params::new(6);
    let weight = params.add("weight", 512, 512, Init::Normal(0.05));
    let bias = params.add("bias", 1, 512, Init::Normal(1.0));
    params.move_to(Device::Cuda);
    let options = LinearOptions {
        activation: Activation::Relu,
        dropout: Dropout::NONE,
        compute: Compute::inference(DType::Bf16),
    };
    let values: Vec<Vec<f32>> =
        (0..Queue::OTHERS).map(|queue| numbers(300 * 512, 20 + queue as u64)).collect();
    let work = |queue: usize| {
        tape::paused(|| {
            let x = Tensor::from_f32_on(Device::Cuda, 300, 512, &values[queue]);
            (0..40).fold(x, |x, _| ops::linear(&x, &weight, Some(&bias), options))
        })
    };
    let alone: Vec<Vec<f32>> = (0..Queue::OTHERS).map(|queue| work(queue).to_vec()).collect();
    // More rounds than steps may be on their way; what a round leaves is the next one's memory.
    for round in 0..20 {
        let begun: Vec<_> = (0..Queue::OTHERS)
            .map(|queue| Device::Cuda.begin_step(Queue::beside(queue), || work(queue)))
            .collect();
        for (queue, (found, sent)) in begun.into_iter().enumerate() {
            if round % 2 == 0 {
                sent.wait();
            }
            assert!(found.to_vec() == alone[queue], "round {round}, queue {queue}");
        }
    }
}
