//! `leftᵀ · right` over many rows: the gradient of a weight.
//!
//! Both sides have to be packed. The narrower one is packed as a whole beforehand. Every strip of the wider one is wanted by
//! one task only: that task packs it for itself, into memory that is still in its second cache when it is multiplied.

use super::{multiply_columns, multiply_rows, step_len, steps};
use crate::cpu::gemm::finish::Destination;
use crate::cpu::gemm::packed::{PackedRows, Parts};
use crate::cpu::gemm::{Matrix, PANEL, Packed, Rows};
use crate::cpu::threads::{SharedMut, is_inside_task, parallel, thread_count};
use crate::{Array, DType};

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
        parallel(share.tasks(), |task| {
            let strips = share.strips(task);
            let rows = strips.start * PANEL..(strips.end * PANEL).min(left.columns);
            multiply_rows(left, &right, parts, rows, out);
        });
    } else {
        let left = PackedRows::transpose_of(left, parts.dtype());
        let share = Share::new(right.columns, right.rows, parts);
        let sums = sums.map(SharedMut::new);
        parallel(share.tasks(), |task| {
            let strips = share.strips(task);
            let Some(sums) = &sums else {
                return multiply_columns(&left, right, parts, strips, out, None);
            };
            let columns = strips.start * PANEL..(strips.end * PANEL).min(right.columns);
            let mut own = Array::zeros(DType::F32, 1, strips.len() * PANEL);
            multiply_columns(&left, right, parts, strips, out, Some(own.f32_mut()));
            // SAFETY: tasks have different columns.
            let sums = unsafe { sums.slice(columns) };
            for (sum, own) in sums.iter_mut().zip(own.f32()) {
                *sum += own;
            }
        });
    }
}

/// The strips of the wider side, in tasks of about the same size.
struct Share {
    strips: usize,
    per_task: usize,
}

impl Share {
    fn new(columns: usize, rows: usize, parts: Parts) -> Share {
        let strips = columns.div_ceil(PANEL);
        let strip_bytes = steps(rows) * step_len(parts) * 2;
        let most = (TASK_BYTES / strip_bytes.max(1)).max(1);
        // At least two for each thread, so that they finish together.
        let wanted = if is_inside_task() { 1 } else { 2 * thread_count() };
        let tasks = strips.div_ceil(most).max(wanted);
        Share { strips, per_task: strips.div_ceil(tasks).max(1) }
    }

    fn tasks(&self) -> usize {
        self.strips.div_ceil(self.per_task)
    }

    fn strips(&self, task: usize) -> std::ops::Range<usize> {
        task * self.per_task..((task + 1) * self.per_task).min(self.strips)
    }
}
