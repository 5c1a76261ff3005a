//! Which of cuBLASLt's ways to compute a product is the fastest, found by trying them.
//!
//! Its heuristic names several. Only those compete that compute the very bits of the one that it names first, so the choice,
//! which follows clocks, never shows in a result.

use std::ptr;

use cudarc::cublaslt::sys::cublasLtMatmulAlgo_t;
use cudarc::driver::sys::{self as driver, CUevent};

use super::card::{expect, present};
use super::command::{clear_now, launch_now};
use super::launch::Blocks;
use super::memory::Buffer;
use super::module::Module;
use super::operand::{Epilogue, Operand, Pointer, Product};
use crate::DType;

pub(crate) static MODULE: Module = Module::new("tune", include_str!("tune.cu"));

/// Runs of one measurement, and measurements of one way.
const RUNS: usize = 3;
const ROUNDS: usize = 2;

/// The number of the fastest way. `run` sends the product by one of them and says whether it can do it. The card does
/// nothing else meanwhile: its free memory is used.
pub(super) fn fastest(
    product: &Product,
    ways: &[cublasLtMatmulAlgo_t],
    run: impl Fn(&Product, &cublasLtMatmulAlgo_t) -> bool,
) -> usize {
    let Product { left, right, out, .. } = *product;
    let bytes = out.rows * out.stride * out.dtype.bytes();
    let [left_noise, right_noise] = [noise(left, 1), noise(right, 2)];
    let bias = noise(Operand { rows: 1, width: out.width, stride: out.width, ..out }, 3);
    let results = [Buffer::new(bytes), Buffer::new(bytes)];
    let trial = |result: &Buffer| Product {
        left: Operand { pointer: left_noise.pointer(), ..left },
        right: Operand { pointer: right_noise.pointer(), ..right },
        out: Operand { pointer: result.pointer(), ..out },
        epilogue: match product.epilogue {
            Epilogue::Bias(_) => Epilogue::Bias(bias.pointer()),
            Epilogue::BiasRelu(_) => Epilogue::BiasRelu(bias.pointer()),
            plain => plain,
        },
        ..*product
    };
    let compute = |result: &Buffer, way: &cublasLtMatmulAlgo_t| {
        clear_now(present().stream, result.pointer(), bytes);
        run(&trial(result), way)
    };
    if !compute(&results[0], &ways[0]) {
        return 0;
    }
    let is_same = |way: &cublasLtMatmulAlgo_t| compute(&results[1], way) && are_same(&results, bytes);
    let competing = (0..ways.len()).filter(|&number| number == 0 || is_same(&ways[number]));
    let measured = competing.map(|number| {
        let took = (0..ROUNDS).map(|_| {
            milliseconds(|| {
                for _ in 0..RUNS {
                    run(&trial(&results[1]), &ways[number]);
                }
            })
        });
        (number, took.fold(f32::INFINITY, f32::min))
    });
    let measured: Vec<(usize, f32)> = measured.collect();
    // The first one stays unless another is clearly faster.
    let (_, first) = measured[0];
    let best = measured.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or(measured[0]);
    if best.1 < 0.98 * first { best.0 } else { 0 }
}

/// Numbers between −1 and 1 in place of a matrix.
fn noise(operand: Operand, key: u32) -> Buffer {
    let n = operand.rows * operand.stride;
    let buffer = Buffer::new(n * operand.dtype.bytes());
    let name = match operand.dtype {
        DType::F32 => "noise_f32",
        DType::Bf16 => "noise_bf16",
    };
    run_now(name, n, &[bytemuck::bytes_of(&buffer.pointer()), bytemuck::bytes_of(&key)]);
    buffer
}

fn are_same(results: &[Buffer; 2], bytes: usize) -> bool {
    let flag = Buffer::new(4);
    clear_now(present().stream, flag.pointer(), 4);
    let [a, b] = [&results[0], &results[1]].map(Buffer::pointer);
    let (flag_at, n) = (flag.pointer(), bytes / 4);
    run_now("differ", n, &[a, b, flag_at].each_ref().map(bytemuck::bytes_of::<Pointer>));
    let mut found = [0; 4];
    flag.read(0, &mut found);
    found == [0; 4]
}

/// Launches a kernel whose last argument is the number of elements.
fn run_now(name: &'static str, n: usize, arguments: &[&[u8]]) {
    let count = (n as u64).to_ne_bytes();
    let arguments = arguments.iter().copied().chain([&count[..]]);
    let mut pointers: Vec<_> = arguments.map(|bytes| bytes.as_ptr().cast_mut().cast()).collect();
    launch_now(present().stream, MODULE.function(name), Blocks::for_each(n), &mut pointers);
}

/// How long the card takes.
fn milliseconds(work: impl FnOnce()) -> f32 {
    let stream = present().stream;
    let [before, after] = [timed_event(), timed_event()];
    let mut took = 0.0;
    // SAFETY: the events were just created, and are waited for.
    unsafe {
        expect("cuEventRecord", driver::cuEventRecord(before, stream));
        work();
        expect("cuEventRecord", driver::cuEventRecord(after, stream));
        expect("cuEventSynchronize", driver::cuEventSynchronize(after));
        expect("cuEventElapsedTime", driver::cuEventElapsedTime_v2(&mut took, before, after));
        driver::cuEventDestroy_v2(before);
        driver::cuEventDestroy_v2(after);
    }
    took
}

fn timed_event() -> CUevent {
    let mut event = ptr::null_mut();
    // SAFETY: the pointer is to a local.
    expect("cuEventCreate", unsafe { driver::cuEventCreate(&mut event, 0) });
    event
}
