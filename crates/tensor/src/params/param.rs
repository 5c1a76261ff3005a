//! One parameter: a named matrix of the flat vectors.

use std::ops::{Deref, Range};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::RwLockReadGuard;

use super::{GradientSlot, Store, ignore_poison};
use crate::{Array, Device};

/// A named, shaped view into the flat vectors. Cloning is cheap.
#[derive(Clone)]
pub struct Param {
    pub(super) store: Arc<Store>,
    pub(super) index: usize,
    pub(super) name: Arc<str>,
    pub(super) offset: usize,
    pub(super) rows: usize,
    pub(super) width: usize,
}

impl Param {
    /// The name given to [`Params::add`](super::Params::add).
    #[inline]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `[rows, width]`.
    #[inline]
    pub fn shape(&self) -> [usize; 2] {
        [self.rows, self.width]
    }

    /// The device that holds the values.
    pub fn device(&self) -> Device {
        self.store.flat().read().device()
    }

    /// A copy of the values.
    pub fn to_vec(&self) -> Vec<f32> {
        let flat = self.store.flat();
        match flat.quantized.dequantized(self.index) {
            Some(values) => values.to_vec(),
            None => flat.read().part_to_vec(self.range()),
        }
    }

    /// The values in host memory.
    pub(crate) fn values(&self) -> Values<'_> {
        let flat = self.store.flat();
        match flat.quantized.dequantized(self.index) {
            Some(values) => Values::Dequantized(values),
            None => Values::Flat { guard: flat.read(), range: self.range() },
        }
    }

    /// Overwrites the values with a copy of `values`.
    pub fn set(&self, values: &[f32]) {
        assert_eq!(
            values.len(),
            self.range().len(),
            "{}: {} values for {:?}",
            self.name,
            values.len(),
            self.shape()
        );
        let flat = self.store.flat();
        flat.quantized.forget(self.index);
        let mut all = flat.values.write();
        all.copy_part_from(self.offset, values);
        flat.version.fetch_add(1, Ordering::Release);
    }

    /// A copy of the gradient; zeros if no backward pass has written one.
    pub fn gradient(&self) -> Vec<f32> {
        self.gradient_slot().copied()
    }

    /// The gradient, for a backward pass to write.
    pub(crate) fn gradient_slot(&self) -> GradientSlot<'_> {
        let guard = ignore_poison(self.store.flat().gradients.lock());
        GradientSlot { guard, index: self.index, range: self.range(), is_written: false }
    }

    /// Its range in the flat vectors.
    #[inline]
    pub fn range(&self) -> Range<usize> {
        self.offset..self.offset + self.rows * self.width
    }
}

/// A parameter's values in host memory, borrowed. An operation may hold those of several parameters.
pub(crate) enum Values<'a> {
    /// A part of the flat vector.
    Flat { guard: RwLockReadGuard<'a, Array>, range: Range<usize> },
    /// The dequantized values of a weight that was installed as int8.
    Dequantized(Arc<[f32]>),
}

impl Deref for Values<'_> {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        match self {
            Values::Flat { guard, range } => &guard.f32()[range.clone()],
            Values::Dequantized(values) => values,
        }
    }
}
