//! What feeds the matrix products of a training step, and what their results cost to store: `cargo xtask bench roofline [TOKENS]`.
//! No peer.
//!
//! Each product of the paper's base model is made in four ways:
//!
//! ```text
//! near     256 rows, again and again: left operand, weight and result stay in the L2 cache
//! same     all rows, the same buffers each time: they stay where they fit
//! far      all rows, other buffers each time, as in a step: they come from the L3 cache or from memory
//! f32      as `far`, with a result of f32: twice the bytes to store
//! ```
//!
//! Shares are of the peak, which is that of products whose operands never leave the registers. On a machine that is shared both change
//! from second to second, so the peak and what the second cache gives are measured anew beside each product, in the last columns.

use std::fmt;
use std::time::Instant;

use anyhow::{Context, Result};
use half::bf16;
use heedful_bench::Quartiles;
use heedful_tensor::cpu::gemm::{
    Finish, Matrix, Output, Packed, measured_bandwidth, measured_peak, multiply, multiply_transposed,
};
use heedful_tensor::cpu::{isa, threads};
use heedful_tensor::{Array, DType, Precision, Rows};

const D: usize = 512;
const FEED_FORWARD: usize = 2048;
const VOCABULARY: usize = 32_000;
/// Sets of buffers for `far`: larger together than any cache.
const SETS: usize = 24;
const NEAR: usize = 256;

/// A product `[m, k] · [k, n]`.
#[derive(Clone, Copy)]
struct Shape {
    name: &'static str,
    k: usize,
    n: usize,
    /// How often a step of the base model makes it.
    times: usize,
}

const SHAPES: [Shape; 6] = [
    Shape { name: "q k v", k: D, n: 3 * D, times: 12 },
    Shape { name: "output of attention, cross q", k: D, n: D, times: 24 },
    Shape { name: "cross k v", k: D, n: 2 * D, times: 6 },
    Shape { name: "first of feed-forward", k: D, n: FEED_FORWARD, times: 12 },
    Shape { name: "second of feed-forward", k: FEED_FORWARD, n: D, times: 12 },
    Shape { name: "vocabulary, 1/8", k: D, n: VOCABULARY / 8, times: 8 },
];

fn main() -> Result<()> {
    let tokens = std::env::args().nth(1).map_or(Ok(2048), |tokens| tokens.parse());
    let tokens: usize = tokens.context("usage: cargo xtask bench roofline [TOKENS]")?;
    println!(
        "{} threads, {}, {:.1} GB/s from memory, {tokens} tokens",
        threads::thread_count(),
        isa::current(),
        measured_bandwidth(1 << 30) / 1e9,
    );
    println!(
        "| product | m k n | times | near | same | far | far, f32 | packing, of far | peak, TFLOP/s | L2, GB/s |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let (mut operations, mut seconds) = (0.0, 0.0);
    for Shape { name, k, n, times } in SHAPES {
        let product = tokens * k * n;
        for (what, [k, n]) in [("x W", [k, n]), ("dy Wᵀ", [n, k])] {
            let unit = Unit::now();
            let found = Measured::of(tokens, k, n);
            println!(
                "| {name}: {what} | {tokens} {k} {n} | {times} | {} | {} | {} | {} | {:.0} % | {unit} |",
                unit.share(found.near, NEAR * k * n),
                unit.share(found.same, product),
                unit.share(found.far, product),
                unit.share(found.far_f32, product),
                100.0 * found.packing / found.far,
            );
            seconds += times as f64 * (found.far + found.packing);
        }
        let unit = Unit::now();
        let (same, far) = gradient(tokens, k, n);
        println!(
            "| {name}: xᵀ dy | {k} {tokens} {n} | {times} | | {} | {} | | both operands, on the way | {unit} |",
            unit.share(same, product),
            unit.share(far, product),
        );
        operations += times as f64 * 6.0 * product as f64;
        seconds += times as f64 * far;
    }
    println!(
        "all products of a step, with the packing of weights: {:.0} ms, {:.2} TFLOP/s",
        1e3 * seconds,
        operations / seconds / 1e12
    );
    Ok(())
}

/// What the tile unit and the second cache can do at the moment, all threads together.
struct Unit {
    peak: f64,
    second_cache: f64,
}

impl Unit {
    fn now() -> Unit {
        let bytes = threads::thread_count() << 20;
        Unit { peak: measured_peak(Precision::Bf16), second_cache: measured_bandwidth(bytes) }
    }

    fn share(&self, seconds: f64, product: usize) -> String {
        format!("{:.0} %", 200.0 * product as f64 / seconds / self.peak)
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} | {:.0}", self.peak / 1e12, self.second_cache / 1e9)
    }
}

/// Seconds.
struct Measured {
    near: f64,
    same: f64,
    far: f64,
    far_f32: f64,
    packing: f64,
}

impl Measured {
    fn of(m: usize, k: usize, n: usize) -> Measured {
        let weight: Vec<f32> = numbers(k * n);
        let packed = Packed::new(Matrix::f32(&weight, k, n), DType::Bf16, Rows::Many);
        let product = |left: &Array, out: &mut Array| {
            multiply(Matrix::of(left), &packed, Output::over(out), Finish::NONE);
        };
        let left = |rows: usize| Array::from_f32(rows, k, &numbers(rows * k)).to(DType::Bf16);
        let lefts: Vec<Array> = (0..SETS).map(|_| left(m)).collect();
        let outs = |dtype| -> Vec<Array> { (0..SETS).map(|_| Array::zeros(dtype, m, n)).collect() };
        let (mut outs_bf16, mut outs_f32) = (outs(DType::Bf16), outs(DType::F32));
        let (near_left, mut near_out) = (left(NEAR), Array::zeros(DType::Bf16, NEAR, n));
        Measured {
            near: median(|_| product(&near_left, &mut near_out)),
            same: median(|_| product(&lefts[0], &mut outs_bf16[0])),
            far: median(|turn| product(&lefts[turn % SETS], &mut outs_bf16[turn % SETS])),
            far_f32: median(|turn| product(&lefts[turn % SETS], &mut outs_f32[turn % SETS])),
            packing: median(|_| drop(Packed::new(Matrix::f32(&weight, k, n), DType::Bf16, Rows::Many))),
        }
    }
}

/// Seconds of a weight's gradient: with the same buffers, with others each time.
fn gradient(tokens: usize, k: usize, n: usize) -> (f64, f64) {
    let matrices = |width: usize| -> Vec<Array> {
        (0..SETS).map(|_| Array::from_f32(tokens, width, &numbers(tokens * width)).to(DType::Bf16)).collect()
    };
    let (lefts, rights) = (matrices(k), matrices(n));
    let mut out = Array::zeros(DType::F32, k, n);
    let mut product = |set: usize| {
        let (left, right) = (Matrix::of(&lefts[set]), Matrix::of(&rights[set]));
        multiply_transposed(left, right, DType::Bf16, Output::over(&mut out), None);
    };
    (median(|_| product(0)), median(|turn| product(turn % SETS)))
}

fn median(mut work: impl FnMut(usize)) -> f64 {
    (0..SETS).for_each(&mut work);
    let seconds: Vec<f64> = (0..2 * SETS)
        .map(|turn| {
            let began = Instant::now();
            work(turn);
            began.elapsed().as_secs_f64()
        })
        .collect();
    Quartiles::of(&seconds).median
}

fn numbers(count: usize) -> Vec<f32> {
    (0..count).map(|i| bf16::from_f32((i % 251) as f32 / 251.0 - 0.5).to_f32()).collect()
}
