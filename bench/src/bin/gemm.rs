//! Matrix products, ours against PyTorch's, in alternating turns: `cargo xtask bench gemm`.
//!
//! The right matrix is a weight: both sides may pack it beforehand. The left matrix and the result are
//! row-major in the cell's type.

use std::time::Instant;

use anyhow::{Result, bail};
use heedful_bench::{Allocator, Cell, Paired, Peer, Quartiles, race, report};
use heedful_tensor::cpu::gemm::{Finish, Matrix, Output, Packed, multiply};
use heedful_tensor::cpu::{isa, threads};
use heedful_tensor::random::Stream;
use heedful_tensor::{Array, DType, Rows};
use serde_json::json;

const SHAPES: [[usize; 3]; 7] = [
    [2048, 512, 2048],
    [2048, 2048, 512],
    [2048, 512, 8000],
    [512, 512, 512],
    [16, 512, 2048],
    [4, 512, 2048],
    [1, 512, 2048],
];
const DEFAULT_ROUNDS: usize = 15;

fn main() -> Result<()> {
    let rounds = match std::env::args().nth(1).map(|rounds| rounds.parse()) {
        None => DEFAULT_ROUNDS,
        Some(Ok(rounds)) if rounds > 0 => rounds,
        Some(_) => bail!("usage: cargo xtask bench gemm [ROUNDS]"),
    };
    println!("{} threads, {}, {rounds} rounds", threads::thread_count(), isa::current());
    let mut peer = Peer::start("gemm", Allocator::AsInstalled)?;
    let mut cells = Vec::new();
    for dtype in [DType::Bf16, DType::F32] {
        for shape @ [m, k, n] in SHAPES {
            let name = format!("{dtype} {m}x{k}x{n}");
            let paired = cell(&mut peer, dtype, shape, rounds)?;
            let cell = Cell::rate("gemm", &name, "GFLOP/s", 2e-9 * (m * k * n) as f64, &paired);
            eprintln!("{name}: {:.2}", cell.ratio());
            cells.push(cell);
        }
    }
    report("gemm", &cells)
}

fn cell(peer: &mut Peer, dtype: DType, [m, k, n]: [usize; 3], rounds: usize) -> Result<Paired> {
    let random = |n: usize, operation| -> Vec<f32> {
        let stream = Stream::new(1, 0, operation);
        (0..n as u32).map(|i| stream.uniform(i) - 0.5).collect()
    };
    let left = Array::from_f32(m, k, &random(m * k, 0)).to(dtype);
    let rows = if m < 64 { Rows::Few } else { Rows::Many };
    let right = Packed::new(Matrix::f32(&random(k * n, 1), k, n), dtype, rows);
    let mut out = Array::zeros(dtype, m, n);
    // A turn of about ten milliseconds: long compared to the clock's resolution, short compared to the
    // machine's fluctuations.
    let iterations = (2e9 / (m * k * n) as f64).clamp(3.0, 200.0) as usize;
    let request = json!({"m": m, "k": k, "n": n, "dtype": dtype.to_string(), "iterations": iterations});
    peer.ask(&request)?;
    let mut ours = || {
        let seconds: Vec<f64> = (0..iterations)
            .map(|_| {
                let start = Instant::now();
                multiply(Matrix::of(&left), &right, Output::over(&mut out), Finish::NONE);
                start.elapsed().as_secs_f64()
            })
            .collect();
        Ok(Quartiles::of(&seconds).median)
    };
    ours()?;
    race(rounds, ours, || Ok(Quartiles::of(&peer.ask_numbers(&request, "seconds")?).median))
}
