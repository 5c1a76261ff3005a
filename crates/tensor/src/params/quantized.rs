//! int8 weights. They are quantized from a parameter's values when a product first needs them; or a parameter
//! was installed as int8, and its values are dequantized when an operation first needs them.
//!
//! Lock order: the flat vector first, then a parameter's slot. No slot is locked while the flat vector is
//! being locked.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::{Flat, Orientation, Param, Params, ignore_poison};
use crate::Array;
use crate::Channels;
use crate::cpu::gemm::{Int8Matrix, Matrix};

/// The int8 form of every parameter that has one.
pub(super) struct QuantizedCopies {
    slots: Vec<Slot>,
    /// Whether the values come from weights that were installed as int8.
    are_int8: AtomicBool,
}

#[derive(Default)]
struct Slot {
    /// Whether `installed` holds the weight: its range of the flat vector is not written yet.
    is_installed: AtomicBool,
    installed: Mutex<Option<Installed>>,
    copy: Mutex<Option<QuantizedCopy>>,
}

/// A weight that was installed as int8.
struct Installed {
    orientation: Orientation,
    matrix: Arc<Int8Matrix>,
    /// The dequantized values, once an operation has needed them.
    values: Option<Arc<[f32]>>,
}

/// A weight quantized from this version of the values.
struct QuantizedCopy {
    orientation: Orientation,
    version: u64,
    matrix: Arc<Int8Matrix>,
}

impl QuantizedCopies {
    pub(super) fn new(parameters: usize) -> QuantizedCopies {
        let slots = (0..parameters).map(|_| Slot::default()).collect();
        QuantizedCopies { slots, are_int8: AtomicBool::new(false) }
    }

    /// Drops all int8 copies.
    pub(super) fn clear(&self) {
        (0..self.slots.len()).for_each(|index| self.forget(index));
    }

    /// Drops one: its values are about to be replaced.
    pub(super) fn forget(&self, index: usize) {
        let slot = &self.slots[index];
        *ignore_poison(slot.installed.lock()) = None;
        *ignore_poison(slot.copy.lock()) = None;
        slot.is_installed.store(false, Ordering::Release);
    }

    /// The values of a parameter that was installed as int8; `None` if they are in the flat vector.
    pub(super) fn dequantized(&self, index: usize) -> Option<Arc<[f32]>> {
        let slot = &self.slots[index];
        if !slot.is_installed.load(Ordering::Acquire) {
            return None;
        }
        let (orientation, matrix) = match &*ignore_poison(slot.installed.lock()) {
            Some(Installed { values: Some(values), .. }) => return Some(values.clone()),
            Some(Installed { orientation, matrix, .. }) => (*orientation, matrix.clone()),
            None => return None,
        };
        // Not under the lock: the whole pool works on this, and one of its threads may wait for the lock.
        let mut values = vec![0.0; matrix.k() * matrix.n()];
        matrix.dequantize_into(orientation.channels(), &mut values);
        let values: Arc<[f32]> = values.into();
        let mut installed = ignore_poison(slot.installed.lock());
        match &mut *installed {
            Some(now) if Arc::ptr_eq(&now.matrix, &matrix) => Some(now.values.get_or_insert(values).clone()),
            // Another thread has replaced the weight meanwhile: return the values at the time of the call.
            _ => Some(values),
        }
    }
}

impl Flat {
    /// Writes all parameters that were installed as int8 into the flat vector, which the caller has locked.
    pub(super) fn dequantize_all(&self, values: &mut Array) {
        for (slot, entry) in self.quantized.slots.iter().zip(&self.entries) {
            if !slot.is_installed.load(Ordering::Acquire) {
                continue;
            }
            let taken = ignore_poison(slot.installed.lock()).take();
            if let Some(Installed { orientation, matrix, .. }) = taken {
                matrix.dequantize_into(orientation.channels(), &mut values.f32_mut()[entry.range()]);
                let version = self.version.load(Ordering::Acquire);
                *ignore_poison(slot.copy.lock()) = Some(QuantizedCopy { orientation, version, matrix });
            }
            slot.is_installed.store(false, Ordering::Release);
        }
    }

    /// Whether some parameters exist only in int8.
    pub(super) fn has_installed(&self) -> bool {
        self.quantized.slots.iter().any(|slot| slot.is_installed.load(Ordering::Acquire))
    }
}

impl Params {
    /// Whether weights were installed as int8 and not replaced by [`Params::set`] since.
    pub fn are_int8(&self) -> bool {
        self.store.flat.get().is_some_and(|flat| flat.quantized.are_int8.load(Ordering::Acquire))
    }

    pub(super) fn clear_int8_flag(&self) {
        self.store.flat().quantized.are_int8.store(false, Ordering::Release);
    }
}

impl Param {
    /// Its output channels, which have one scale each, if it is a weight of products.
    pub fn channels(&self) -> Option<Channels> {
        self.store.flat().entries[self.index].channels()
    }

    /// The int8 form of a weight of products.
    pub fn to_int8(&self) -> Option<Arc<Int8Matrix>> {
        Some(self.quantized(self.channels()?.orientation()))
    }

    /// Replaces a weight of products by int8 values, each times its channel's scale. The f32 values take
    /// memory only once an operation needs them.
    ///
    /// # Panics
    /// If it is not such a weight, or the shape differs.
    pub fn set_int8(&self, matrix: Int8Matrix) {
        let flat = self.store.flat();
        let channels = flat.entries[self.index].channels().expect("the weight of products");
        let orientation = channels.orientation();
        assert_eq!([matrix.k(), matrix.n()], channels.sides([self.rows, self.width]), "{}", self.name);
        let slot = &flat.quantized.slots[self.index];
        *ignore_poison(slot.copy.lock()) = None;
        *ignore_poison(slot.installed.lock()) =
            Some(Installed { orientation, matrix: Arc::new(matrix), values: None });
        slot.is_installed.store(true, Ordering::Release);
        flat.quantized.are_int8.store(true, Ordering::Release);
        flat.version.fetch_add(1, Ordering::Release);
    }

    /// This matrix as int8, with a scale for every output column.
    pub(crate) fn quantized(&self, orientation: Orientation) -> Arc<Int8Matrix> {
        let flat = self.store.flat();
        let version = flat.version.load(Ordering::Acquire);
        let slot = &flat.quantized.slots[self.index];
        if slot.is_installed.load(Ordering::Acquire)
            && let Some(installed) = &*ignore_poison(slot.installed.lock())
            && installed.orientation == orientation
        {
            return installed.matrix.clone();
        }
        let is_it = |copy: &&QuantizedCopy| copy.orientation == orientation && copy.version == version;
        let kept = ignore_poison(slot.copy.lock()).as_ref().filter(is_it).map(|copy| copy.matrix.clone());
        if let Some(kept) = kept {
            return kept;
        }
        let values = self.values();
        let matrix = Matrix::f32(&values, self.rows, self.width);
        let matrix = Arc::new(Int8Matrix::new(match orientation {
            Orientation::AsIs => matrix,
            Orientation::Transposed => matrix.transposed(),
        }));
        let copy = QuantizedCopy { orientation, version, matrix: matrix.clone() };
        *ignore_poison(slot.copy.lock()) = Some(copy);
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

    /// `[k, n]` of a weight of this shape: length of the sums and number of outputs.
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
    use crate::{Compute, DType, Init, Params};

    fn weight(params: &Params, channels: Channels) -> Param {
        params.add_weight("weight", [5, 40], Init::Normal(1.0), channels)
    }

    #[test]
    fn an_installed_int8_weight_is_dequantized_when_its_values_are_needed() {
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
            let largest = exact.iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
            assert!(exact.iter().zip(&rounded).all(|(a, b)| (a - b).abs() <= 0.03 * largest));
            assert!(exact != rounded && given.to_vec()[to.range()] == rounded);
            // New values replace the int8 matrix too.
            to.set(&exact);
            assert_eq!(to.to_vec(), exact);
            assert!(!Arc::ptr_eq(&to.to_int8().expect("a weight"), &integers));
        }
    }

    #[test]
    fn replacing_all_values_replaces_the_int8_weights() {
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

    #[test]
    fn values_of_several_parameters_can_be_held_at_once() {
        let (sender, ended) = std::sync::mpsc::channel();
        let params = Params::new(3);
        let bias = params.add("bias", 1, 40, Init::Constant(1.0));
        let weight = weight(&params, Channels::Columns);
        weight.set_int8((*weight.to_int8().expect("a weight")).clone());
        let writer = (params.clone(), sender.clone());
        std::thread::spawn(move || {
            let held = bias.values();
            // Another thread waits to write while this one reads on.
            std::thread::spawn(move || {
                let (params, sender) = writer;
                params.set(&vec![2.0; params.flat_len()]);
                sender.send("written").expect("the test");
            });
            let packed = weight.packed(Orientation::AsIs, Compute::inference(DType::F32));
            let values = weight.values();
            std::thread::sleep(std::time::Duration::from_millis(50));
            assert_eq!((bias.values().len(), values.len(), packed.k()), (held.len(), 200, 5));
            sender.send("read").expect("the test");
        });
        let limit = std::time::Duration::from_secs(60);
        let order = [(); 2].map(|()| ended.recv_timeout(limit).expect("no deadlock"));
        assert_eq!(order, ["read", "written"]);
    }
}
