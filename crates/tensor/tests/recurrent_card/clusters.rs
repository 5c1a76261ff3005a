//! Layers in clusters of blocks have the bits that they have where blocks hand states over through memory. A card without clusters
//! compares a kernel with itself.

use heedful_tensor::ops::*;
use heedful_tensor::tape::backward_from;
use heedful_tensor::{Array, Compute, DType, Device, Init, Params, Ragged, Tensor, cuda};

fn drawn(rows: usize, width: usize, number: u64) -> Array {
    super::drawn(Device::Cuda, rows, width, number)
}

/// What a sequence begins with.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Begin {
    Zeros,
    Given,
}

#[derive(Clone, Debug)]
struct Setting {
    cell: Cell,
    d: usize,
    directions: Vec<Direction>,
    begin: Begin,
}

impl Setting {
    /// The bits of everything that a layer gives: states after all tokens and after the last ones, gradients of inputs, of
    /// initial states and of parameters.
    fn run(&self, lengths: &[usize]) -> Vec<Vec<u32>> {
        let Setting { cell, d, begin, .. } = *self;
        let (gates, params) = (cell.gates() * d, Params::new(3));
        let sides = self.directions.len() as u64;
        let weights: Vec<_> =
            (0..sides).map(|side| params.add(&format!("w{side}"), d, gates, Init::Xavier)).collect();
        let biases: Vec<_> =
            (0..sides).map(|side| params.add(&format!("b{side}"), 1, gates, Init::Normal(0.1))).collect();
        params.move_to(Device::Cuda);
        let sequences = Ragged::from_lengths(lengths.iter().copied());
        let narrow = |side| Tensor::variable(drawn(sequences.tokens(), gates, side).into_dtype(DType::Bf16));
        let x: Vec<Tensor> = (0..sides).map(narrow).collect();
        let state = |number| Tensor::variable(drawn(lengths.len(), d, number));
        let initial: Vec<RecurrentState> = (0..sides)
            .map(|side| RecurrentState {
                h: state(10 + side),
                c: cell.has_memory().then(|| state(20 + side)),
            })
            .collect();
        let inputs: Vec<RecurrentInput<'_>> = (0..self.directions.len())
            .map(|side| RecurrentInput {
                x_gates: &x[side],
                initial: (begin == Begin::Given).then(|| &initial[side]),
                weight: &weights[side],
                bias: (cell != Cell::Simple).then(|| &biases[side]),
                direction: self.directions[side],
            })
            .collect();
        let found = recurrent_layer(&inputs, &sequences, cell, Compute::training(DType::Bf16));
        let mut parts: Vec<&Tensor> = found.iter().map(|of_one| &of_one.outputs).collect();
        for of_one in &found {
            parts.push(&of_one.last.h);
            parts.extend(&of_one.last.c);
        }
        let y = concat_rows(&parts);
        let gradients = backward_from(&y, drawn(y.rows(), d, 30));
        let mut all = vec![y.to_vec()];
        let states = initial.iter().flat_map(|state| [Some(&state.h), state.c.as_ref()]).flatten();
        let variables = x.iter().chain(states.filter(|_| begin == Begin::Given));
        all.extend(variables.map(|variable| gradients.of(variable).expect("a gradient").to_vec()));
        all.extend(params.iter().map(|param| param.gradient()));
        all.into_iter().map(|numbers| numbers.into_iter().map(f32::to_bits).collect()).collect()
    }
}

/// Lengths of so many sequences; some have no tokens.
fn ragged(count: usize, most: usize) -> Vec<usize> {
    (0..count).map(|i| (i * 7 + 3) % (most + 1)).collect()
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn layers_in_clusters_have_the_bits_of_those_through_memory() {
    let both = [Direction::Forward, Direction::Backward];
    for cell in [Cell::Simple, Cell::Gru, Cell::Lstm] {
        for d in [8, 24, 32, 64, 120, 128, 136, 256, 264, 384, 392, 512, 520] {
            for lengths in [vec![5], vec![1, 9], ragged(16, 6), ragged(17, 11), ragged(300, 40)] {
                for (directions, begin) in [
                    (both.to_vec(), Begin::Given),
                    (both.to_vec(), Begin::Zeros),
                    (vec![Direction::Backward], Begin::Given),
                ] {
                    let setting = Setting { cell, d, directions, begin };
                    let found = setting.run(&lengths);
                    let expected = cuda::without_clusters(|| setting.run(&lengths));
                    assert!(found == expected, "{setting:?}, {} sequences", lengths.len());
                }
            }
        }
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn many_launches_in_clusters_agree() {
    let lengths = ragged(64, 90);
    for d in [128, 256, 512] {
        let directions = vec![Direction::Forward, Direction::Backward];
        let setting = Setting { cell: Cell::Lstm, d, directions, begin: Begin::Given };
        let first = setting.run(&lengths);
        for _ in 0..30 {
            assert!(setting.run(&lengths) == first, "{setting:?}");
        }
    }
}
