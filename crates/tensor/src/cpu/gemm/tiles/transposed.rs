//! `leftᵀ · right` over many rows: the gradient of a weight.
//!
//! Both sides have to be packed. The narrower one is packed as a whole beforehand. Every strip of the wider one is wanted by
//! one task only: that task packs it for itself, into memory that is still in its second cache when it is multiplied.

use half::bf16;

use super::{Own, multiply_columns, multiply_rows, step_len, steps};
use crate::cpu::gemm::finish::Destination;
use crate::cpu::gemm::packed::{PackedRows, Parts};
use crate::cpu::gemm::{Matrix, PANEL, Packed};
use crate::cpu::threads::{SharedMut, is_inside_task, number_in_task, parallel, thread_count};
use crate::{Array, DType, Rows};

/// A task's packed strips fill no more than three quarters of the second cache.
const TASK_BYTES: usize = 3 << 19;

/// Fills `out`; adds the columns of `right` to `sums`.
pub(crate) fn multiply(
    left: Matrix<'_>,
    right: Matrix<'_>,
    parts: Parts,
    out: &Destination<'_>,
    sums: Option<&mut [f32]>,
) {
    if left.columns > right.columns {
        let right = match sums {
            Some(sums) => Packed::in_tiles_with_sums(right, parts, sums),
            None => Packed::new(right, parts.dtype(), Rows::Many),
        };
        let share = Share::new(left.columns, left.rows, parts);
        let mut workspace = Workspace::new(&share);
        let workspace = workspace.shared();
        parallel(share.tasks(), |task| {
            let strips = share.strips(task);
            let rows = strips.start * PANEL..(strips.end * PANEL).min(left.columns);
            // SAFETY: it is used until the end of the task.
            multiply_rows(left, &right, parts, rows, unsafe { workspace.of_this_thread() }, out);
        });
    } else {
        let left = PackedRows::transpose_of(left, parts.dtype());
        let share = Share::new(right.columns, right.rows, parts);
        let mut workspace = Workspace::new(&share);
        let workspace = workspace.shared();
        let mut partial = Array::zeros(DType::F32, 1, share.strips * PANEL);
        let (partial_sums, is_summed) = (SharedMut::new(partial.f32_mut()), sums.is_some());
        parallel(share.tasks(), |task| {
            let strips = share.strips(task);
            let columns = strips.start * PANEL..strips.end * PANEL;
            // SAFETY: tasks have different strips, and the workspace is used until the end of the task.
            let own = unsafe {
                let sums = is_summed.then(|| partial_sums.slice(columns));
                Own { packed: workspace.of_this_thread(), sums }
            };
            multiply_columns(&left, right, parts, strips, own, out);
        });
        for (sum, partial) in sums.into_iter().flatten().zip(partial.f32()) {
            *sum += partial;
        }
    }
}

/// Where tasks pack: a place for each thread, taken before there are tasks, so that it does not depend on how they overlap.
struct Workspace {
    places: Array,
    is_nested: bool,
}

impl Workspace {
    fn new(share: &Share) -> Workspace {
        let is_nested = is_inside_task();
        let threads = if is_nested { 1 } else { thread_count() };
        Workspace {
            places: Array::scratch(DType::Bf16, threads, share.per_task * share.strip_len),
            is_nested,
        }
    }

    fn shared(&mut self) -> SharedWorkspace {
        let (len, is_nested) = (self.places.width(), self.is_nested);
        SharedWorkspace { places: SharedMut::new(self.places.bf16_mut()), len, is_nested }
    }
}

struct SharedWorkspace {
    places: SharedMut<bf16>,
    len: usize,
    is_nested: bool,
}

impl SharedWorkspace {
    /// # Safety
    /// A task may have it once, and not beyond its end.
    #[allow(clippy::mut_from_ref, reason = "every thread has a place of its own")]
    unsafe fn of_this_thread(&self) -> &mut [bf16] {
        let thread = if self.is_nested { 0 } else { number_in_task().unwrap_or(0) };
        // SAFETY: the caller's promise; a thread runs one task at a time.
        unsafe { self.places.slice(thread * self.len..(thread + 1) * self.len) }
    }
}

/// The strips of the wider side, in tasks of about the same size.
struct Share {
    strips: usize,
    per_task: usize,
    strip_len: usize,
}

impl Share {
    fn new(columns: usize, rows: usize, parts: Parts) -> Share {
        let strips = columns.div_ceil(PANEL);
        let strip_len = steps(rows) * step_len(parts);
        let most = (TASK_BYTES / (strip_len * 2).max(1)).max(1);
        // At least two for each thread, so that they finish together.
        let wanted = if is_inside_task() { 1 } else { 2 * thread_count() };
        let tasks = strips.div_ceil(most).max(wanted);
        Share { strips, per_task: strips.div_ceil(tasks).max(1), strip_len }
    }

    fn tasks(&self) -> usize {
        self.strips.div_ceil(self.per_task)
    }

    fn strips(&self, task: usize) -> std::ops::Range<usize> {
        task * self.per_task..((task + 1) * self.per_task).min(self.strips)
    }
}
