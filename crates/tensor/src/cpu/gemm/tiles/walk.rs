//! Traversal of a task: the order of its blocks of sums, and how much of `k` each takes at a time.

use std::cell::RefCell;
use std::ops::Range;

use half::bf16;

use super::unit::{
    Left, Sums, clear, configure_thread, half_step, resume, split_step, step, unload, unload_half,
};
use super::{BLOCK, STEP, finish, step_len};
use crate::cpu::gemm::PANEL;
use crate::cpu::gemm::finish::Destination;
use crate::cpu::gemm::packed::Parts;
use crate::cpu::gemm::product::groups;

/// Steps of `k` that one block of sums takes at a time: 32 rows of the left side, 32 KiB, stay in the L1
/// cache while the right sides of a whole group of blocks stream past them.
pub(crate) const CHUNK: usize = 16;

/// Maximum blocks of a group.
const GROUP: usize = 16;

/// Both operands of a block from a step on, for as many steps as are contiguous.
pub(super) struct Segment {
    pub(super) left: Left,
    pub(super) right: *const bf16,
    pub(super) steps: usize,
}

/// The blocks of a task, and the number of steps of their sums.
#[derive(Clone)]
pub(super) struct Task {
    pub(super) parts: Parts,
    pub(super) rows: Range<usize>,
    pub(super) strips: Range<usize>,
    pub(super) steps: usize,
}

/// `k` in chunks of about the same length, at least one.
pub(super) fn chunks(steps: usize) -> impl Iterator<Item = Range<usize>> {
    let count = steps.div_ceil(CHUNK).max(1);
    let length = steps.div_ceil(count);
    (0..count).map(move |chunk| chunk * length..((chunk + 1) * length).min(steps))
}

/// Computes one block of rows after the other, over all of `k`, for the strips of a group together. `at`
/// returns the operands of a row and a strip from a step on; `strip_bytes` of the right side should stay in
/// the L2 cache while all rows pass.
pub(super) fn row_by_row(
    at: impl Fn(usize, usize, usize) -> Segment,
    task: &Task,
    strip_bytes: usize,
    out: &Destination<'_>,
) {
    let steps = task.steps;
    let visits = groups(task.rows.clone(), task.strips.clone(), BLOCK, GROUP, strip_bytes).flat_map(
        move |(row, strips)| {
            chunks(steps).map(move |steps| Visit { row, strips: strips.clone(), steps, buffer: 0 })
        },
    );
    walk_all(at, visits, task, GROUP, out);
}

/// Computes one chunk of all sums. The sums stay in the L2 cache until the next chunk, and so do, over all
/// rows, the strips of a group.
pub(super) fn one_chunk(
    at: impl Fn(usize, usize, usize) -> Segment,
    task: &Task,
    chunk: &Range<usize>,
    out: &Destination<'_>,
) {
    let Task { parts, ref rows, ref strips, .. } = *task;
    let strip_bytes = chunk.len() * step_len(parts) * 2;
    let (first_row, first_strip, across) = (rows.start, strips.start, strips.len());
    let visits = groups(rows.clone(), strips.clone(), BLOCK, GROUP, strip_bytes).map(|(row, strips)| Visit {
        row,
        buffer: (row - first_row) / BLOCK * across + strips.start - first_strip,
        strips,
        steps: chunk.clone(),
    });
    walk_all(at, visits, task, rows.len().div_ceil(BLOCK) * across, out);
}

/// A row of blocks, and a range of steps.
struct Visit {
    row: usize,
    strips: Range<usize>,
    steps: Range<usize>,
    /// The buffer index of the first block's sums; those of the others follow.
    buffer: usize,
}

fn walk_all(
    at: impl Fn(usize, usize, usize) -> Segment,
    visits: impl Iterator<Item = Visit>,
    task: &Task,
    buffers: usize,
    out: &Destination<'_>,
) {
    thread_local! {
        static SUMS: RefCell<Vec<Sums>> = const { RefCell::new(Vec::new()) };
    }
    SUMS.with_borrow_mut(|sums| {
        // Grow rarely, and not by single blocks.
        let buffers = buffers.next_power_of_two().max(GROUP);
        if sums.len() < buffers {
            sums.resize(buffers, Sums::ZERO);
        }
        // SAFETY: this layout exists only where AVX-512 does.
        unsafe {
            match task.parts {
                Parts::One => walk::<1>(at, visits, task, out, sums),
                Parts::Three => walk::<3>(at, visits, task, out, sums),
            }
        }
    });
}

/// Between two chunks a block's sums are stored unrounded, so the result has the bits of an undivided sum.
///
/// While the tile unit works on a block, the vector unit finishes the previous block, a few rows after each
/// step, which hides the cost of stores and rounding.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma")]
fn walk<const PARTS: usize>(
    at: impl Fn(usize, usize, usize) -> Segment,
    visits: impl Iterator<Item = Visit>,
    task: &Task,
    out: &Destination<'_>,
    sums: &mut [Sums],
) {
    configure_thread();
    let mut pending: Option<PendingBlock> = None;
    for Visit { row, strips, steps, buffer } in visits {
        let is_last = steps.end == task.steps;
        // Rows of the previous block to finish after each step.
        let share = BLOCK.div_ceil(steps.len().max(1));
        for (number, strip) in strips.enumerate() {
            let buffer = buffer + number;
            let rows = BLOCK.min(task.rows.end - row);
            let block = PendingBlock { row, column: strip * PANEL, rows, finished: 0, buffer };
            let mut done = 0;
            // SAFETY: both sides hold all steps of their segments; the left one at least 16 rows, 32 if more
            // are computed. Sums are unloaded before they are resumed or stored. Tasks are disjoint
            // rectangles of the output.
            unsafe {
                if steps.start == 0 {
                    clear();
                } else {
                    resume(&sums[buffer]);
                }
                while done < steps.len() {
                    let Segment { mut left, mut right, steps: there } = at(row, strip, steps.start + done);
                    for _ in 0..there.min(steps.len() - done) {
                        match (PARTS, block.rows > 16) {
                            (1, true) => step(left, right),
                            (1, false) => half_step(left, right),
                            // Packed blocks always have all rows, padded with zeros.
                            _ => split_step(left.start, right),
                        }
                        left = left.advanced(1);
                        right = right.wrapping_add(PARTS * STEP);
                        if is_last {
                            finish::fetch(out, &block, done * share..(done + 1) * share);
                        }
                        if let Some(block) = &mut pending {
                            finish::store(out, &sums[block.buffer], block, share);
                        }
                        done += 1;
                    }
                }
                if let Some(mut block) = pending.take() {
                    finish::store(out, &sums[block.buffer], &mut block, BLOCK);
                }
                if block.rows > 16 {
                    unload(&mut sums[buffer]);
                } else {
                    unload_half(&mut sums[buffer]);
                }
            }
            pending = is_last.then_some(block);
        }
    }
    if let Some(mut block) = pending {
        // SAFETY: as above.
        unsafe { finish::store(out, &sums[block.buffer], &mut block, BLOCK) };
    }
}

/// A block with complete sums that are not all stored yet.
pub(super) struct PendingBlock {
    pub(super) row: usize,
    pub(super) column: usize,
    pub(super) rows: usize,
    pub(super) finished: usize,
    /// The buffer index of its sums.
    pub(super) buffer: usize,
}
