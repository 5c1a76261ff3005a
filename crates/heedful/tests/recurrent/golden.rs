//! Stacks of recurrent layers against `nn.RNN`, `nn.GRU` and `nn.LSTM` on packed sequences: outputs, last
//! states, and the gradients of parameters, inputs and initial states. `golden/recurrent.py` writes the
//! files.

use heedful::layers::Pass;
use heedful::models::recurrent::{Cell, Directions, RecurrentStack, RecurrentStackConfig, RecurrentState};
use heedful::tensor::ops::{add, multiply, sum};
use heedful::tensor::{Array, DType, Params, Tensor, tape};
use serde_json::Value;

use crate::exclusive;
use crate::golden_file::GoldenFile;
use crate::support::parameter_value;

#[test]
fn stacks_agree_with_pytorch() {
    let _lock = exclusive();
    for name in ["simple", "gru", "lstm"] {
        for (layers, sides) in [(1, "forward"), (2, "forward"), (2, "both")] {
            check(&GoldenFile::read("recurrent", &format!("{name}-{layers}-{sides}")));
        }
    }
}

fn check(golden: &GoldenFile) {
    let config = stack_config(&golden.config);
    let params = Params::new(1);
    let stack = RecurrentStack::new(&params, "stack", &config);
    for param in params.iter() {
        param.set(&generated(param.name(), param.shape()));
    }
    let sequences = golden.sequences("lengths");
    let rows = sequences.sequences();
    let count = config.layers * config.directions.list().len();
    let variable = |name: &str, rows, width| {
        Tensor::variable(Array::from_f32(rows, width, &generated(name, [rows, width])))
    };
    let x = variable("x", sequences.tokens(), config.input);
    let initial: Vec<RecurrentState> = (0..count)
        .map(|i| {
            let part = |kind: &str| {
                let all = generated(&format!("initial.{kind}"), [count * rows, config.width]);
                let size = rows * config.width;
                Tensor::variable(Array::from_f32(rows, config.width, &all[i * size..(i + 1) * size]))
            };
            RecurrentState { h: part("h"), c: config.cell.has_memory().then(|| part("c")) }
        })
        .collect();

    let mut pass = Pass::training(DType::F32, 1, 1);
    let found = stack.forward(&x, &sequences, Some(&initial), &mut pass);
    golden.compare("outputs", &found.outputs.to_vec());
    let mut loss = weighted("outputs", &[&found.outputs]);
    let state_kinds = if config.cell.has_memory() { vec!["h", "c"] } else { vec!["h"] };
    for kind in &state_kinds {
        let last: Vec<&Tensor> = found.last.iter().map(|state| part(state, kind)).collect();
        golden.compare(&format!("last.{kind}"), &all(&last));
        loss = add(&loss, &weighted(&format!("last.{kind}"), &last));
    }

    let gradients = tape::backward(&loss);
    let of = |tensor: &Tensor| gradients.of(tensor).expect("a gradient").f32().to_vec();
    golden.compare("grad.x", &of(&x));
    for kind in &state_kinds {
        let found: Vec<f32> = initial.iter().flat_map(|state| of(part(state, kind))).collect();
        golden.compare(&format!("grad.initial.{kind}"), &found);
    }
    for param in params.iter() {
        golden.compare(&format!("grad.{}", param.name()), &param.gradient());
    }
}

fn stack_config(config: &Value) -> RecurrentStackConfig {
    let size = |key: &str| config[key].as_u64().expect("a size") as usize;
    RecurrentStackConfig {
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

/// `Σ weight ⊙ tensor` over concatenated tensors.
fn weighted(name: &str, tensors: &[&Tensor]) -> Tensor {
    let rows = tensors.iter().map(|tensor| tensor.rows()).sum();
    let weights = generated(&format!("weight.{name}"), [rows, tensors[0].width()]);
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

fn generated(name: &str, shape: [usize; 2]) -> Vec<f32> {
    parameter_value(name, 0, shape, 12)
}
