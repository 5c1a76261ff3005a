//! Stacks of recurrent layers against `nn.RNN`, `nn.GRU` and `nn.LSTM` on packed sequences: outputs, last states, and the
//! gradients of parameters, inputs and initial states. `golden/recurrent.py` wrote the files.

use std::path::Path;

use heedful::layers::Pass;
use heedful::recurrent::{Cell, Directions, RecurrentStack, RecurrentState, StackConfig};
use heedful::tensor::ops::{add, multiply, sum};
use heedful::tensor::{Array, DType, Params, Ragged, Tensor, tape};
use safetensors::SafeTensors;

use crate::support::{error, parameter_value};

const TOLERANCE: f64 = 1e-4;

#[test]
fn stacks_agree_with_pytorch() {
    for name in ["simple", "gru", "lstm"] {
        for (layers, sides) in [(1, "forward"), (2, "forward"), (2, "both")] {
            let name = format!("{name}-{layers}-{sides}");
            let path = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join(format!("tests/golden/recurrent/{name}.safetensors"));
            let bytes = std::fs::read(path).expect("goldens are missing: run `cargo xtask golden`");
            Golden { file: SafeTensors::deserialize(&bytes).expect("safetensors"), name }.check(&bytes);
        }
    }
}

struct Golden<'a> {
    file: SafeTensors<'a>,
    name: String,
}

impl Golden<'_> {
    fn check(&self, bytes: &[u8]) {
        let config = stack_config(bytes);
        let params = Params::new(1);
        let stack = RecurrentStack::new(&params, "stack", &config);
        for param in params.iter() {
            param.set(&made(param.name(), param.shape()));
        }
        let sequences = Ragged::from_lengths(self.words("lengths").into_iter().map(|length| length as usize));
        let rows = sequences.sequences();
        let count = config.layers * config.directions.list().len();
        let variable = |name: &str, rows, width| {
            Tensor::variable(Array::from_f32(rows, width, &made(name, [rows, width])))
        };
        let x = variable("x", sequences.tokens(), config.input);
        let initial: Vec<RecurrentState> = (0..count)
            .map(|i| {
                let part = |kind: &str| {
                    let all = made(&format!("initial.{kind}"), [count * rows, config.width]);
                    let size = rows * config.width;
                    Tensor::variable(Array::from_f32(rows, config.width, &all[i * size..(i + 1) * size]))
                };
                RecurrentState { h: part("h"), c: config.cell.has_memory().then(|| part("c")) }
            })
            .collect();

        let mut pass = Pass::training(DType::F32, 1, 1);
        let found = stack.forward(&x, &sequences, Some(&initial), &mut pass);
        self.compare("outputs", &found.outputs.to_vec());
        let mut loss = weighted("outputs", &[&found.outputs]);
        let state_kinds = if config.cell.has_memory() { vec!["h", "c"] } else { vec!["h"] };
        for kind in &state_kinds {
            let last: Vec<&Tensor> = found.last.iter().map(|state| part(state, kind)).collect();
            self.compare(&format!("last.{kind}"), &all(&last));
            loss = add(&loss, &weighted(&format!("last.{kind}"), &last));
        }

        let gradients = tape::backward(&loss);
        let of = |tensor: &Tensor| gradients.of(tensor).expect("a gradient").f32().to_vec();
        self.compare("grad.x", &of(&x));
        for kind in &state_kinds {
            let found: Vec<f32> = initial.iter().flat_map(|state| of(part(state, kind))).collect();
            self.compare(&format!("grad.initial.{kind}"), &found);
        }
        for param in params.iter() {
            self.compare(&format!("grad.{}", param.name()), &param.gradient());
        }
    }

    fn compare(&self, what: &str, ours: &[f32]) {
        let golden: Vec<f32> = self.words(what).into_iter().map(f32::from_bits).collect();
        let error = error(ours, &golden);
        assert!(error <= TOLERANCE, "{}: {what} is off by {error:.2e}", self.name);
    }

    fn words(&self, name: &str) -> Vec<u32> {
        let tensor = self.file.tensor(name).unwrap_or_else(|_| panic!("{}: no {name}", self.name));
        let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
        tensor.data().chunks_exact(4).map(word).collect()
    }
}

fn stack_config(bytes: &[u8]) -> StackConfig {
    let (_, metadata) = SafeTensors::read_metadata(bytes).expect("safetensors");
    let entries = metadata.metadata().as_ref().expect("metadata");
    let config: serde_json::Value = serde_json::from_str(&entries["config"]).expect("JSON");
    let size = |key: &str| config[key].as_u64().expect("a size") as usize;
    StackConfig {
        cell: match config["cell"].as_str().expect("a word") {
            "simple" => Cell::Simple,
            "gru" => Cell::Gru,
            _ => Cell::Lstm,
        },
        input: size("input"),
        width: size("width"),
        layers: size("layers"),
        directions: if size("directions") == 2 { Directions::Both } else { Directions::Forward },
        norm_epsilon: None,
        dropout: 0.0,
    }
}

fn part<'a>(state: &'a RecurrentState, kind: &str) -> &'a Tensor {
    if kind == "h" { &state.h } else { state.c.as_ref().expect("a state c") }
}

/// `Σ weight ⊙ tensor` over tensors one below the other.
fn weighted(name: &str, tensors: &[&Tensor]) -> Tensor {
    let rows = tensors.iter().map(|tensor| tensor.rows()).sum();
    let weights = made(&format!("weight.{name}"), [rows, tensors[0].width()]);
    let mut at = 0;
    let term = |tensor: &&Tensor| {
        let size = tensor.rows() * tensor.width();
        let weights = Tensor::from_f32(tensor.rows(), tensor.width(), &weights[at..at + size]);
        at += size;
        sum(&multiply(tensor, &weights))
    };
    tensors.iter().map(term).reduce(|a, b| add(&a, &b)).expect("a tensor")
}

fn all(tensors: &[&Tensor]) -> Vec<f32> {
    tensors.iter().flat_map(|tensor| tensor.to_vec()).collect()
}

fn made(name: &str, shape: [usize; 2]) -> Vec<f32> {
    parameter_value(name, 0, shape, 12)
}
