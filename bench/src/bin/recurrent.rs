//! Two layers of bidirectional LSTM, forward and backward pass, ours against PyTorch's on packed sequences:
//! `cargo xtask bench recurrent`.
//!
//! 64 sequences of log-normal lengths with mean 25, d 512, in one batch of all lengths. No optimizer, no loss: the
//! gradient of the outputs is given.

use std::time::Instant;

use anyhow::{Result, bail};
use heedful::layers::Pass;
use heedful::models::recurrent::{Cell as Network, Directions, RecurrentStack, RecurrentStackConfig};
use heedful_bench::{Allocator, Cell, Paired, Peer, race, realistic_lengths, report};
use heedful_tensor::cpu::{isa, threads};
use heedful_tensor::random::Stream;
use heedful_tensor::{Array, DType, Params, Ragged, Tensor, tape};
use serde_json::json;

const D: usize = 512;
const SEQUENCES: u32 = 64;
const DEFAULT_ROUNDS: usize = 9;

fn main() -> Result<()> {
    let rounds = match std::env::args().nth(1).map(|rounds| rounds.parse()) {
        None => DEFAULT_ROUNDS,
        Some(Ok(rounds)) if rounds > 0 => rounds,
        Some(_) => bail!("usage: cargo xtask bench recurrent [ROUNDS]"),
    };
    println!("{} threads, {}, {rounds} rounds", threads::thread_count(), isa::current());
    let mut cells = Vec::new();
    for (ours, theirs) in [(DType::F32, "f32"), (DType::Bf16, "f32"), (DType::Bf16, "bf16")] {
        let mut peer = Peer::start("recurrent", Allocator::AsInstalled)?;
        let name = format!("{ours} to {theirs}");
        let paired = measure(&mut peer, ours, theirs, rounds)?;
        let tokens = lengths().iter().sum::<usize>() as f64;
        let cell = Cell::rate("recurrent", &name, "tokens/s", tokens, &paired);
        eprintln!("{name}: {:.2}", cell.ratio());
        cells.push(cell);
    }
    report("recurrent", &cells)
}

fn measure(peer: &mut Peer, compute: DType, theirs: &str, rounds: usize) -> Result<Paired> {
    let config = RecurrentStackConfig {
        cell: Network::Lstm,
        input: D,
        width: D,
        layers: 2,
        directions: Directions::Both,
        norm_epsilon: None,
        dropout: 0.0,
    };
    let params = Params::new(1);
    let stack = RecurrentStack::new(&params, "stack", &config);
    let sequences = Ragged::from_lengths(lengths());
    let tokens = sequences.tokens();
    let numbers = |width: usize, operation| -> Vec<f32> {
        let stream = Stream::new(1, 0, operation);
        (0..(tokens * width) as u32).map(|i| stream.uniform(i) - 0.5).collect()
    };
    let (x, gradient) = (numbers(D, 0), numbers(2 * D, 1));
    let request = json!({"d": D, "lengths": lengths(), "dtype": theirs});
    peer.ask(&request)?;
    let mut step = 0;
    let mut ours = || {
        let x = Tensor::variable(Array::from_f32(tokens, D, &x));
        let gradient = Array::from_f32(tokens, 2 * D, &gradient);
        step += 1;
        let start = Instant::now();
        // What an update would do: parameters change, so that weights are packed in every step.
        params.clear_gradients();
        let weight = params.iter().next().expect("a parameter");
        let values = weight.to_vec();
        weight.set(&values);
        let found = stack.forward(&x, &sequences, None, &mut Pass::training(compute, 1, step));
        tape::backward_from(&found.outputs, gradient);
        Ok(start.elapsed().as_secs_f64())
    };
    ours()?;
    ours()?;
    race(rounds, ours, || peer.ask_number(&request, "seconds"))
}

fn lengths() -> Vec<usize> {
    realistic_lengths(SEQUENCES).into_iter().map(|[source, _]| source).collect()
}
