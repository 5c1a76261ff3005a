//! Recurrent layers and decoders with attention: the GPU against the CPU, in sizes of real models: more rows
//! than the thread blocks of a launch process at once, both directions in one launch.

mod decoders;

use std::ops::Range;

use heedful_tensor::ops::*;
use heedful_tensor::random::Stream;
use heedful_tensor::tape::{self, backward_from};
use heedful_tensor::{Array, Compute, DType, Device, Init, Params, Ragged, Tensor};

fn random_array(device: Device, rows: usize, width: usize, number: u64) -> Array {
    let draws = Stream::new(11, 0, number);
    let values: Vec<f32> = (0..(rows * width) as u32).map(|i| 2.0 * draws.uniform(i) - 1.0).collect();
    Array::from_f32_on(device, rows, width, &values)
}

/// `‖a − b‖ / ‖b‖` of every pair; infinity for NaN.
fn distances(a: &[Vec<f32>], b: &[Vec<f32>]) -> Vec<f64> {
    assert_eq!(a.len(), b.len());
    let pair = |(a, b): (&Vec<f32>, &Vec<f32>)| {
        assert_eq!(a.len(), b.len());
        let apart: f64 = a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2)).sum();
        let length: f64 = b.iter().map(|&b| f64::from(b).powi(2)).sum();
        let off = (apart / (length + 1e-12)).sqrt();
        if off.is_nan() { f64::INFINITY } else { off }
    };
    a.iter().zip(b).map(pair).collect()
}

/// The GPU's results are as close to f32 as the CPU's, and a second run gives the same bits.
fn compare(name: &str, run: impl Fn(Device, DType) -> Vec<Vec<f32>>) {
    let (expected, found) = (run(Device::Cpu, DType::F32), run(Device::Cuda, DType::F32));
    let off = distances(&found, &expected);
    assert!(off.iter().all(|&off| off < 2e-5), "{name} in f32: {off:?}");
    let (narrow, gpu) = (run(Device::Cpu, DType::Bf16), run(Device::Cuda, DType::Bf16));
    let (cpus, gpus) = (distances(&narrow, &expected), distances(&gpu, &expected));
    for (number, (cpus, gpus)) in cpus.iter().zip(&gpus).enumerate() {
        assert!(*gpus < 1.3 * cpus + 1e-4, "{name} in bf16, {number}: GPU {gpus:e}, CPU {cpus:e}");
    }
    for compute in [DType::F32, DType::Bf16] {
        assert!(
            run(Device::Cuda, compute) == if compute == DType::F32 { found.clone() } else { gpu.clone() }
        );
    }
}

/// The outputs of two directions, then the gradients of inputs and parameters.
fn layer(device: Device, compute: DType, cell: Cell, d: usize, lengths: &[usize]) -> Vec<Vec<f32>> {
    let params = Params::new(3);
    let gates = cell.gates() * d;
    let weights = ["forward", "backward"].map(|name| params.add(name, d, gates, Init::Xavier));
    let biases = ["b", "c"].map(|name| params.add(name, 1, gates, Init::Normal(0.1)));
    params.move_to(device).expect("it fits");
    let sequences = Ragged::from_lengths(lengths.iter().copied());
    let variable = |rows, width, number| Tensor::variable(random_array(device, rows, width, number));
    let x = [0, 1].map(|number| {
        Tensor::variable(random_array(device, sequences.tokens(), gates, number).into_dtype(compute))
    });
    let initial = [2, 4].map(|number| RecurrentState {
        h: variable(lengths.len(), d, number),
        c: cell.has_memory().then(|| variable(lengths.len(), d, number + 1)),
    });
    let input = |side: usize| RecurrentInput {
        x_gates: &x[side],
        initial: Some(&initial[side]),
        weight: &weights[side],
        bias: Some(&biases[side]),
        direction: [Direction::Forward, Direction::Backward][side],
    };
    let found = recurrent_layer(&[input(0), input(1)], &sequences, cell, Compute::training(compute));
    let y = concat_columns(&[&found[0].outputs, &found[1].outputs]);
    let gradients = backward_from(&y, random_array(device, y.rows(), 2 * d, 20));
    let mut all = vec![y.to_vec(), found[0].last.h.to_vec(), found[1].last.h.to_vec()];
    let states = initial.iter().flat_map(|state| [Some(&state.h), state.c.as_ref()]).flatten();
    let variables = x.iter().chain(states);
    all.extend(variables.map(|variable| gradients.of(variable).expect("a gradient").to_vec()));
    all.extend(params.iter().map(|param| param.gradient()));
    all
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn bidirectional_layers_match_the_cpu() {
    let many: Vec<usize> = (0..70).map(|i| (i * 7) % 12).collect();
    let some: Vec<usize> = (0..40).map(|i| 1 + (i * 5) % 4).collect();
    for cell in [Cell::Simple, Cell::Gru, Cell::Lstm] {
        for (d, lengths) in [(64, &many), (256, &many), (512, &many), (1024, &some), (36, &many)] {
            compare(&format!("{cell:?} {d}"), |device, compute| layer(device, compute, cell, d, lengths));
            // A sequence has the same bits alone and in a batch.
            let count = lengths.len();
            let whole = tape::no_grad(|| last_states(cell, d, lengths, 0..count));
            for sequence in [1, 2, count - 1] {
                let one = tape::no_grad(|| last_states(cell, d, lengths, sequence..sequence + 1));
                assert!(one[0] == whole[sequence], "{cell:?} {d}: sequence {sequence} differs alone");
            }
        }
    }
}

/// The last states of some of the sequences, in bf16.
fn last_states(cell: Cell, d: usize, lengths: &[usize], which: Range<usize>) -> Vec<Vec<f32>> {
    let params = Params::new(3);
    let width = cell.gates() * d;
    let weight = params.add("weight", d, width, Init::Xavier);
    params.move_to(Device::Cuda).expect("it fits");
    let all = Ragged::from_lengths(lengths.iter().copied());
    let x = random_array(Device::Cpu, all.tokens(), width, 1);
    let rows = all.range(which.start).start..all.range(which.end - 1).end;
    let values = &x.f32()[rows.start * width..rows.end * width];
    let x = Tensor::new(Array::from_f32_on(Device::Cuda, rows.len(), width, values).into_dtype(DType::Bf16));
    let sequences = Ragged::from_lengths(lengths[which].iter().copied());
    let compute = Compute::training(DType::Bf16);
    let options = RecurrentOptions { cell, direction: Direction::Forward, compute };
    let last = recurrent(&x, &sequences, None, &weight, None, options).last.h.to_vec();
    last.chunks(d).map(<[f32]>::to_vec).collect()
}
