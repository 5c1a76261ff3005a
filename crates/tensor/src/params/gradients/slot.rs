//! The gradient of one parameter, while a backward pass writes it.

use std::ops::Range;
use std::sync::{Arc, MutexGuard};

use super::FlatGradients;
use crate::array::Write;
use crate::array::cuda::PartialSums;
use crate::{Array, cuda};

/// A parameter's gradient, locked.
pub(crate) struct GradientSlot<'a> {
    pub(in crate::params) guard: MutexGuard<'a, FlatGradients>,
    pub(in crate::params) index: usize,
    pub(in crate::params) range: Range<usize>,
    pub(in crate::params) is_written: bool,
}

impl Drop for GradientSlot<'_> {
    fn drop(&mut self) {
        if self.is_written {
            self.guard.record_write(self.index);
        }
    }
}

impl GradientSlot<'_> {
    /// A copy of the gradient; zeros if nothing has been written since the last update.
    pub(in crate::params) fn copied(&mut self) -> Vec<f32> {
        self.guard.reduce_deferred_sums();
        let mut copy = vec![0.0; self.range.len()];
        if self.guard.written[self.index] {
            self.guard.copy(self.range.clone(), &mut copy);
        }
        copy
    }

    /// The address on the GPU, and how to write there. From here on the gradient counts as written.
    pub(crate) fn on_gpu(&mut self) -> (cuda::Pointer, Write) {
        if self.guard.sums.iter().any(|(index, _)| *index == self.index) {
            self.guard.reduce_deferred_sums();
        }
        let was_written = std::mem::replace(&mut self.guard.written[self.index], true);
        if was_written {
            cuda::join_side_stream();
        }
        let pointer = self.guard.on_gpu().pointer().offset(self.range.start * 4);
        (pointer, if was_written { Write::Add } else { Write::Over })
    }

    /// Defers a column sum: the partial sums are in `partial` from column `column` on. They are reduced
    /// together with those of other parameters, before the gradient is read.
    pub(crate) fn defer_column_sum(&mut self, partial: Arc<Array>, column: usize) {
        let (out, write) = self.on_gpu();
        self.guard
            .sums
            .push((self.index, PartialSums { partial, column, width: self.range.len(), out, write }));
    }

    /// The elements, uninitialised if this is the first write.
    fn slice(&mut self) -> &mut [f32] {
        let at = self.guard.segment_of(self.range.start);
        self.guard.segments[at].elements_mut(self.range.clone())
    }

    /// The elements, and how to write them. From here on they count as written.
    pub(crate) fn write(&mut self) -> (&mut [f32], Write) {
        let was_written = std::mem::replace(&mut self.guard.written[self.index], true);
        self.is_written = true;
        (self.slice(), if was_written { Write::Add } else { Write::Over })
    }

    /// The elements to accumulate into: zeroed if this is the first write.
    pub(crate) fn accumulate(&mut self) -> &mut [f32] {
        let (slice, write) = self.write();
        if write == Write::Over {
            slice.fill(0.0);
        }
        slice
    }
}
