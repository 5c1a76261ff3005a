//! The way through a task: which blocks of sums come when, and how much of `k` they take at a time.

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

/// Steps of `k` that one block of sums takes at a time: 32 rows of the left side, 32 KiB, stay in the first cache while
/// the right sides of a whole group of blocks stream past them.
pub(crate) const CHUNK: usize = 16;

/// Blocks of sums that a group may have.
const GROUP: usize = 16;

/// Both sides of a block's sums, from some step on, as far as they lie in one piece.
pub(super) struct Segment {
    pub(super) left: Left,
    pub(super) right: *const bf16,
    pub(super) steps: usize,
}

/// The blocks of a task, and the length of their sums.
#[derive(Clone)]
pub(super) struct Task {
    pub(super) parts: Parts,
    pub(super) rows: Range<usize>,
    pub(super) strips: Range<usize>,
    pub(super) steps: usize,
}

/// `k` in chunks of about the same length, one at least.
pub(super) fn chunks(steps: usize) -> impl Iterator<Item = Range<usize>> {
    let count = steps.div_ceil(CHUNK).max(1);
    let length = steps.div_ceil(count);
    (0..count).map(move |chunk| chunk * length..((chunk + 1) * length).min(steps))
}

/// One block of rows after the other, to the end of its sums, with the strips of a group side by side. `at` says what a row and
/// a strip have from a step on; `strip_bytes` of the right side should stay in the second cache while all rows pass.
pub(super) fn row_by_row(
    at: impl Fn(usize, usize, usize) -> Segment,
    task: &Task,
    strip_bytes: usize,
    out: &Destination<'_>,
) {
    let steps = task.steps;
    let visits = groups(task.rows.clone(), task.strips.clone(), BLOCK, GROUP, strip_bytes).flat_map(
        move |(row, strips)| {
            chunks(steps).map(move |steps| Visit { row, strips: strips.clone(), steps, place: 0 })
        },
    );
    walk_all(at, visits, task, GROUP, out);
}

/// One chunk of all sums. They wait in the second cache for the next one, and so do, for all rows, the strips of a group.
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
        place: (row - first_row) / BLOCK * across + strips.start - first_strip,
        strips,
        steps: chunk.clone(),
    });
    walk_all(at, visits, task, rows.len().div_ceil(BLOCK) * across, out);
}

/// Blocks side by side, and a part of their sums.
struct Visit {
    row: usize,
    strips: Range<usize>,
    steps: Range<usize>,
    /// Where the sums of the first block wait; those of the others come behind it.
    place: usize,
}

fn walk_all(
    at: impl Fn(usize, usize, usize) -> Segment,
    visits: impl Iterator<Item = Visit>,
    task: &Task,
    places: usize,
    out: &Destination<'_>,
) {
    thread_local! {
        static SUMS: RefCell<Vec<Sums>> = const { RefCell::new(Vec::new()) };
    }
    SUMS.with_borrow_mut(|sums| {
        // A thread should not grow often, nor by a block now and then.
        let places = places.next_power_of_two().max(GROUP);
        if sums.len() < places {
            sums.resize(places, Sums::ZERO);
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

/// Between two chunks a block's sums wait in memory as they are, so they end with the bits of an undivided sum.
///
/// While the tile unit works on a block, the vector unit finishes the block before it, a few rows after each step:
/// stores and rounding cost no time of their own.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma")]
fn walk<const PARTS: usize>(
    at: impl Fn(usize, usize, usize) -> Segment,
    visits: impl Iterator<Item = Visit>,
    task: &Task,
    out: &Destination<'_>,
    sums: &mut [Sums],
) {
    configure_thread();
    let mut waiting: Option<Waiting> = None;
    for Visit { row, strips, steps, place } in visits {
        let is_last = steps.end == task.steps;
        // Rows finished after each step.
        let share = BLOCK.div_ceil(steps.len().max(1));
        for (number, strip) in strips.enumerate() {
            let place = place + number;
            let rows = BLOCK.min(task.rows.end - row);
            let block = Waiting { row, column: strip * PANEL, rows, finished: 0, place };
            let mut done = 0;
            // SAFETY: both sides hold all steps of their segments; the left one at least 16 rows, 32 if more are
            // wanted. Sums are unloaded before they are resumed or stored. Tasks are disjoint rectangles of the
            // output.
            unsafe {
                if steps.start == 0 {
                    clear();
                } else {
                    resume(&sums[place]);
                }
                while done < steps.len() {
                    let Segment { mut left, mut right, steps: there } = at(row, strip, steps.start + done);
                    for _ in 0..there.min(steps.len() - done) {
                        match (PARTS, block.rows > 16) {
                            (1, true) => step(left, right),
                            (1, false) => half_step(left, right),
                            // Of packed blocks all rows are there: those behind the last are zeros.
                            _ => split_step(left.start, right),
                        }
                        left = left.advanced(1);
                        right = right.wrapping_add(PARTS * STEP);
                        if is_last {
                            finish::fetch(out, &block, done * share..(done + 1) * share);
                        }
                        if let Some(block) = &mut waiting {
                            finish::store(out, &sums[block.place], block, share);
                        }
                        done += 1;
                    }
                }
                if let Some(mut block) = waiting.take() {
                    finish::store(out, &sums[block.place], &mut block, BLOCK);
                }
                if block.rows > 16 {
                    unload(&mut sums[place]);
                } else {
                    unload_half(&mut sums[place]);
                }
            }
            waiting = is_last.then_some(block);
        }
    }
    if let Some(mut block) = waiting {
        // SAFETY: as above.
        unsafe { finish::store(out, &sums[block.place], &mut block, BLOCK) };
    }
}

/// A block whose sums are complete but not all stored yet.
pub(super) struct Waiting {
    pub(super) row: usize,
    pub(super) column: usize,
    pub(super) rows: usize,
    pub(super) finished: usize,
    /// Which of the sums are its own.
    pub(super) place: usize,
}
