//! Windows of neighbouring rows (im2col), gathered for some rows at a time and multiplied while they are in
//! the cache.

use std::ops::Range;
use std::sync::Mutex;

use crate::array::Write;
use crate::cpu::gemm::{Finish, Matrix, Output, Packed, Piece, ROW_BLOCK, multiply, multiply_pieces};
use crate::cpu::number::{NumbersMut, SharedNumbers};
use crate::cpu::threads::{SharedMut, parallel, thread_count};
use crate::ops::convolution::Windows;
use crate::{Array, Param};

/// Fewer rows are not worth a task of their own.
const LEAST_ROWS: usize = 32;
/// Packed windows that a weight's gradient may hold at once.
const PIECE_BYTES: usize = 16 << 20;

impl Windows<'_> {
    /// `out = finish(windows · rhs)`.
    pub(super) fn multiply(&self, rhs: &Packed, out: &mut Array, finish: Finish<'_>) {
        let width = rhs.n();
        let out = SharedNumbers::of(out);
        self.in_blocks(|rows, windows| {
            // SAFETY: blocks have disjoint rows.
            let out = match unsafe { out.slice(rows.start * width..rows.end * width) } {
                NumbersMut::F32(values) => Output::F32(values),
                NumbersMut::Bf16(values) => Output::Bf16(values),
            };
            multiply(windows, rhs, out, finish);
        });
    }

    /// `sum += windows · rhs`; `sum` is f32.
    pub(super) fn multiply_into(&self, rhs: &Packed, sum: &mut Array) {
        let width = rhs.n();
        let sum = SharedMut::new(sum.f32_mut());
        self.in_blocks(|rows, windows| {
            // SAFETY: blocks have disjoint rows.
            let sum = unsafe { sum.slice(rows.start * width..rows.end * width) };
            multiply(windows, rhs, Output::AddF32(sum), Finish::NONE);
        });
    }

    /// `windowsᵀ · right` into the gradient of `weight`: rows are summed in order, in groups whose size
    /// depends only on the shapes.
    pub(super) fn weight_gradient(&self, right: &Array, weight: &Param) {
        let mut slot = weight.gradient_slot();
        let (values, mut write) = slot.write();
        let rows = self.of.rows();
        if rows == 0 && write == Write::Over {
            values.fill(0.0);
        }
        let row_bytes = self.taps * self.of.width() * self.of.dtype().bytes();
        let group = (PIECE_BYTES / row_bytes.max(1) / ROW_BLOCK * ROW_BLOCK).max(ROW_BLOCK);
        for start in (0..rows).step_by(group) {
            let pieces = self.pieces(start..(start + group).min(rows), right);
            let out = match write {
                Write::Add => Output::AddF32(&mut *values),
                Write::Over => Output::F32(&mut *values),
            };
            multiply_pieces(&pieces.iter().collect::<Vec<_>>(), out);
            write = Write::Add;
        }
    }

    /// The windows of the rows `part` and the same rows of `right`, packed while they are in the cache.
    fn pieces(&self, part: Range<usize>, right: &Array) -> Vec<Piece> {
        let count = part.len().div_ceil(ROW_BLOCK);
        let rows_of = |number: usize| {
            let start = part.start + number * ROW_BLOCK;
            start..(start + ROW_BLOCK).min(part.end)
        };
        let empty = |number| {
            Piece::scratch(rows_of(number).len(), self.taps * self.of.width(), right.width(), right.dtype())
        };
        let pieces: Vec<Mutex<Piece>> = (0..count).map(|number| Mutex::new(empty(number))).collect();
        parallel(count, |number| {
            let windows = self.gathered(rows_of(number));
            let right = Matrix::of(right).rows(rows_of(number));
            pieces[number].lock().expect("piece lock").fill(Matrix::of(&windows), right);
        });
        pieces.into_iter().map(|piece| piece.into_inner().expect("piece lock")).collect()
    }

    /// Calls `work` with some rows and their windows at a time. The grouping of rows changes no bit: each row
    /// of a product has its own sum.
    fn in_blocks(&self, work: impl Fn(Range<usize>, Matrix<'_>) + Sync) {
        let rows = self.of.rows();
        let share = rows.div_ceil(4 * thread_count()).next_multiple_of(LEAST_ROWS);
        let block = share.clamp(LEAST_ROWS, ROW_BLOCK);
        parallel(rows.div_ceil(block), |task| {
            let rows = task * block..((task + 1) * block).min(rows);
            let windows = self.gathered(rows.clone());
            work(rows, Matrix::of(&windows));
        });
    }

    /// The windows of some rows, stacked.
    pub(super) fn gathered(&self, rows: Range<usize>) -> Array {
        let mut windows = Array::scratch(self.of.dtype(), rows.len(), self.taps * self.of.width());
        by_type!(self.of.dtype(), T => self.gather(rows, T::of(self.of), T::of_mut(&mut windows)));
        windows
    }

    /// Without dilation, the rows of a window are contiguous in memory: each window is one copy, with zeros
    /// outside of its sequence. With dilation, each row of a window is copied separately.
    fn gather<T: Copy + Default>(&self, rows: Range<usize>, from: &[T], to: &mut [T]) {
        let width = self.of.width();
        if rows.is_empty() || width == 0 {
            return;
        }
        let mut sequence = self.sequences.sequence_of(rows.start);
        let mut range = self.sequences.range(sequence);
        for (row, window) in rows.zip(to.chunks_exact_mut(self.taps * width)) {
            while row >= range.end {
                sequence += 1;
                range = self.sequences.range(sequence);
            }
            if self.dilation > 1 {
                self.gather_dilated(row, range.clone(), from, window);
                continue;
            }
            // The window begins `before` rows ahead of its row; `missing` of its rows lie before the
            // sequence.
            let missing = (range.start + self.before).saturating_sub(row);
            let first = row + missing - self.before;
            let present = (range.end - first).min(self.taps - missing);
            let (ahead, rest) = window.split_at_mut(missing * width);
            let (seen, beyond) = rest.split_at_mut(present * width);
            ahead.fill(T::default());
            seen.copy_from_slice(&from[first * width..(first + present) * width]);
            beyond.fill(T::default());
        }
    }

    fn gather_dilated<T: Copy + Default>(
        &self,
        row: usize,
        range: Range<usize>,
        from: &[T],
        window: &mut [T],
    ) {
        let width = self.of.width();
        for (tap, to) in window.chunks_exact_mut(width).enumerate() {
            // Huge distances must not overflow: the dilation is the caller's choice.
            let at = if tap < self.before {
                row.checked_sub((self.before - tap).saturating_mul(self.dilation))
            } else {
                row.checked_add((tap - self.before).saturating_mul(self.dilation))
            };
            match at.filter(|at| range.contains(at)) {
                Some(at) => to.copy_from_slice(&from[at * width..(at + 1) * width]),
                None => to.fill(T::default()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ragged;

    #[test]
    fn windows_end_where_their_sequence_ends() {
        let x = Array::from_f32(6, 1, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let sequences = Ragged::from_lengths([1, 0, 4, 1]);
        let dilated = |dilation, taps, before, rows| {
            Windows { of: &x, sequences: &sequences, taps, dilation, before }.gathered(rows).f32().to_vec()
        };
        let gathered = |taps, before, rows| dilated(1, taps, before, rows);
        let same = [
            [0.0, 1.0, 0.0],
            [0.0, 2.0, 3.0],
            [2.0, 3.0, 4.0],
            [3.0, 4.0, 5.0],
            [4.0, 5.0, 0.0],
            [0.0, 6.0, 0.0],
        ];
        assert_eq!(gathered(3, 1, 0..6), same.as_flattened());
        assert_eq!(gathered(3, 1, 3..5), same[3..5].as_flattened());
        assert_eq!(gathered(2, 1, 1..3), [0.0, 2.0, 2.0, 3.0]);
        assert_eq!(gathered(2, 0, 3..5), [4.0, 5.0, 5.0, 0.0]);
        assert_eq!(gathered(9, 4, 0..1), [0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(gathered(4, 3, 5..6), [0.0, 0.0, 0.0, 6.0]);
        assert_eq!(dilated(2, 3, 1, 1..4), [0.0, 2.0, 4.0, 0.0, 3.0, 5.0, 2.0, 4.0, 0.0]);
        assert_eq!(dilated(3, 2, 1, 3..5), [0.0, 4.0, 2.0, 5.0]);
        assert_eq!(dilated(usize::MAX, 3, 1, 2..3), [0.0, 3.0, 0.0]);
    }
}
