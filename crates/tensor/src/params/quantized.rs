//! Weights as integers. They are made from a parameter's numbers when a product first asks for them; or a parameter was
//! given as integers, and its numbers are written out when someone first asks for those.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::{Channels, Flat, Orientation, Param, in_order};
use crate::cpu::gemm::{Int8Matrix, Matrix};

/// For every parameter its integers, if it has any.
pub(super) struct QuantizedCopies(Vec<Slot>);

#[derive(Default)]
struct Slot {
    /// Whether the integers are all there is: the numbers are not written out.
    is_only: AtomicBool,
    copy: Mutex<Option<QuantizedCopy>>,
}

struct QuantizedCopy {
    orientation: Orientation,
    /// That of the numbers that it was made from; any, if it was given.
    version: Option<u64>,
    matrix: Arc<Int8Matrix>,
}

impl QuantizedCopies {
    pub(super) fn new(parameters: usize) -> QuantizedCopies {
        QuantizedCopies((0..parameters).map(|_| Slot::default()).collect())
    }

    /// Forgets all that were made from numbers.
    pub(super) fn clear(&self) {
        (0..self.0.len()).for_each(|index| self.forget(index));
    }

    /// Forgets one: its numbers are about to change.
    pub(super) fn forget(&self, index: usize) {
        let slot = &self.0[index];
        *in_order(slot.copy.lock()) = None;
        slot.is_only.store(false, Ordering::Release);
    }
}

impl Flat {
    /// Writes out the numbers of a parameter that was given as integers. An operation that reads several parameters asks for
    /// its weight first: the values are locked for the time of writing.
    pub(super) fn write_out(&self, index: usize) {
        let slot = &self.quantized.0[index];
        if !slot.is_only.load(Ordering::Acquire) {
            return;
        }
        let mut copy = slot.copy.lock().unwrap_or_else(PoisonError::into_inner);
        if !slot.is_only.load(Ordering::Acquire) {
            return;
        }
        let Some(QuantizedCopy { orientation, version, matrix }) = &mut *copy else { return };
        let entry = &self.entries[index];
        let mut values = in_order(self.values.write());
        let numbers = &mut values.f32_mut()[entry.range()];
        matrix.write_numbers(orientation.channels(), numbers);
        *version = Some(self.version.load(Ordering::Acquire));
        slot.is_only.store(false, Ordering::Release);
    }
}

impl Param {
    /// Which of its vectors have a scale of their own, if it is the weight of products.
    pub fn channels(&self) -> Option<Channels> {
        self.store.flat().entries[self.index].channels()
    }

    /// The integers of a weight of products.
    pub fn to_int8(&self) -> Option<Arc<Int8Matrix>> {
        Some(self.quantized(self.channels()?.orientation()))
    }

    /// Replaces the numbers of a weight of products by integers, each times its channel's scale. The numbers take memory only
    /// when they are asked for.
    ///
    /// # Panics
    /// If it is no such weight, or of another shape.
    pub fn set_int8(&self, matrix: Int8Matrix) {
        let flat = self.store.flat();
        let channels = flat.entries[self.index].channels().expect("the weight of products");
        let orientation = channels.orientation();
        assert_eq!([matrix.k(), matrix.n()], channels.sides([self.rows, self.width]), "{}", self.name);
        let slot = &flat.quantized.0[self.index];
        let mut copy = in_order(slot.copy.lock());
        *copy = Some(QuantizedCopy { orientation, version: None, matrix: Arc::new(matrix) });
        slot.is_only.store(true, Ordering::Release);
        flat.version.fetch_add(1, Ordering::Release);
    }

    /// This matrix as integers, with a scale for every column of the product.
    pub(crate) fn quantized(&self, orientation: Orientation) -> Arc<Int8Matrix> {
        let flat = self.store.flat();
        let version = flat.version.load(Ordering::Acquire);
        let slot = &flat.quantized.0[self.index];
        let is_it = |copy: &&QuantizedCopy| {
            copy.orientation == orientation && copy.version.is_none_or(|made| made == version)
        };
        let kept = in_order(slot.copy.lock()).as_ref().filter(is_it).map(|copy| copy.matrix.clone());
        if let Some(kept) = kept {
            return kept;
        }
        let values = self.values();
        let matrix = Matrix::f32(&values, self.rows, self.width);
        let matrix = Arc::new(Int8Matrix::new(match orientation {
            Orientation::AsIs => matrix,
            Orientation::Transposed => matrix.transposed(),
        }));
        let copy = QuantizedCopy { orientation, version: Some(version), matrix: matrix.clone() };
        *in_order(slot.copy.lock()) = Some(copy);
        matrix
    }
}

impl Orientation {
    fn channels(self) -> Channels {
        match self {
            Orientation::AsIs => Channels::Columns,
            Orientation::Transposed => Channels::Rows,
        }
    }
}

impl Channels {
    fn orientation(self) -> Orientation {
        match self {
            Channels::Columns => Orientation::AsIs,
            Channels::Rows => Orientation::Transposed,
        }
    }

    /// Length of the sums and number of outputs of a weight of this shape.
    pub fn sides(self, [rows, width]: [usize; 2]) -> [usize; 2] {
        match self {
            Channels::Columns => [rows, width],
            Channels::Rows => [width, rows],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Init, Params};

    fn weight(params: &Params, channels: Channels) -> Param {
        params.add_weight("weight", [5, 40], Init::Normal(1.0), channels)
    }

    #[test]
    fn what_is_given_as_integers_is_written_out_when_it_is_asked_for() {
        for channels in [Channels::Columns, Channels::Rows] {
            let from = weight(&Params::new(3), channels);
            let given = Params::new(3);
            let to = weight(&given, channels);
            given.lay_out();
            assert_eq!(to.to_vec(), [0.0; 200]);
            let integers = from.to_int8().expect("a weight");
            to.set_int8((*integers).clone());
            assert!(Arc::ptr_eq(&to.to_int8().expect("a weight"), &to.to_int8().expect("a weight")));
            let (exact, rounded) = (from.to_vec(), to.to_vec());
            let scale = exact.iter().fold(0.0_f32, |largest, x| largest.max(x.abs())) / 127.0;
            assert!(exact.iter().zip(&rounded).all(|(a, b)| (a - b).abs() <= 0.5001 * scale));
            assert!(exact != rounded && given.to_vec()[to.range()] == rounded);
            // Numbers that replace them replace the integers too.
            to.set(&exact);
            assert_eq!(to.to_vec(), exact);
            assert!(!Arc::ptr_eq(&to.to_int8().expect("a weight"), &integers));
        }
    }

    #[test]
    fn all_numbers_replaced_replace_the_integers() {
        let params = Params::new(3);
        let weight = weight(&params, Channels::Rows);
        weight.set_int8((*weight.to_int8().expect("a weight")).clone());
        let mut all = params.to_vec();
        all.iter_mut().for_each(|value| *value *= 2.0);
        params.set(&all);
        assert_eq!(params.to_vec(), all);
        let doubled = weight.to_int8().expect("a weight");
        let mut row = [0.0; 40];
        doubled.column(2, 1.0, &mut row);
        assert!(row.iter().zip(&all[80..]).all(|(a, b)| (a - b).abs() < 1e-5 * (1.0 + b.abs())));
    }
}
