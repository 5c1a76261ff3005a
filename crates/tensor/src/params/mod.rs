//! One flat vector holds all parameters of a model; their gradients have the same order.
//!
//! A [`Param`] is a named, shaped view into both. The optimizer is one pass, a checkpoint is one write.
//! Parameters are registered with [`Params::add`] while a model is built; the vectors are allocated at first
//! use.

mod batch_sums;
mod entry;
mod frozen;
mod gpu;
mod gradients;
mod host;
mod init;
mod kinds;
mod overlapped_reduction;
mod param;
mod quantized;
mod shared;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LockResult, Mutex, OnceLock, PoisonError};

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::random::Stream;
use crate::{Array, Channels, Device, OutOfMemory};

pub use batch_sums::{BatchSums, Peers, StepGradients};
use entry::{Entry, Kind};
use gpu::Bf16Copy;
pub(crate) use gradients::{FlatGradients, GradientSlot};
use host::PackedCopies;
pub use init::Init;
pub use param::Param;
use quantized::QuantizedCopies;

/// Every parameter starts on a cache line.
pub(crate) const ALIGNMENT: usize = 16;

/// All parameters of a model. Cloning shares them.
#[derive(Clone)]
pub struct Params {
    store: Arc<Store>,
}

struct Store {
    seed: u64,
    registered: Mutex<Vec<Entry>>,
    flat: OnceLock<Flat>,
}

struct Flat {
    entries: Vec<Entry>,
    /// Per parameter: whether it is frozen.
    frozen: Vec<AtomicBool>,
    values: RwLock<Array>,
    gradients: Mutex<FlatGradients>,
    /// Incremented whenever values change: packed copies of an older version are stale.
    version: AtomicU64,
    packed: PackedCopies,
    quantized: QuantizedCopies,
    narrow: Bf16Copy,
}

/// Whether a weight is transposed in a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Orientation {
    /// `x W`
    AsIs,
    /// `x Wᵀ`
    Transposed,
}

impl Params {
    /// An empty set on the default device. `seed` determines the random initial values.
    pub fn new(seed: u64) -> Params {
        Params { store: Arc::new(Store { seed, registered: Mutex::default(), flat: OnceLock::new() }) }
    }

    /// Registers a parameter of `rows × width` elements.
    ///
    /// # Panics
    /// If the name is taken, or if the parameters are already in use.
    pub fn add(&self, name: &str, rows: usize, width: usize, init: Init) -> Param {
        self.register(name, [rows, width], init, Kind::Learned)
    }

    /// [`Params::add`] for a weight of matrix products, which may be quantized.
    pub fn add_weight(&self, name: &str, [rows, width]: [usize; 2], init: Init, channels: Channels) -> Param {
        self.register(name, [rows, width], init, Kind::Weight(channels))
    }

    /// A row that is stored with the parameters but not learned, such as a running mean: it gets no gradient
    /// and does not decay.
    pub fn add_statistic(&self, name: &str, width: usize, init: Init) -> Param {
        self.register(name, [1, width], init, Kind::Statistic)
    }

    fn register(&self, name: &str, [rows, width]: [usize; 2], init: Init, kind: Kind) -> Param {
        assert!(
            self.store.flat.get().is_none(),
            "Params::add: {name} was added after the first use of the parameters"
        );
        let mut registered = self.store.registered.lock().expect("params lock");
        assert!(registered.iter().all(|entry| &*entry.name != name), "Params::add: {name} exists already");
        // Saturating: a model larger than any memory must be registered too, to be counted and rejected.
        let end = registered.last().map_or(0, |e| e.offset.saturating_add(e.rows.saturating_mul(e.width)));
        let offset = end.checked_next_multiple_of(ALIGNMENT).unwrap_or(usize::MAX);
        registered.push(Entry { name: name.into(), offset, rows, width, init, kind });
        self.param(registered.len() - 1, &registered[registered.len() - 1])
    }

    /// The parameter with this name.
    pub fn get(&self, name: &str) -> Option<Param> {
        let entries = &self.store.flat().entries;
        let index = entries.iter().position(|entry| &*entry.name == name)?;
        Some(self.param(index, &entries[index]))
    }

    /// All parameters in the order of registration.
    pub fn iter(&self) -> impl Iterator<Item = Param> + '_ {
        self.store.flat().entries.iter().enumerate().map(|(index, entry)| self.param(index, entry))
    }

    /// Number of learned elements.
    pub fn count(&self) -> usize {
        let learned = self.store.flat().entries.iter().filter(|entry| !matches!(entry.kind, Kind::Statistic));
        learned.map(|entry| entry.rows * entry.width).sum()
    }

    /// Number of registered elements; unlike [`Params::count`] it does not end registration and allocates
    /// nothing.
    pub fn registered_elements(&self) -> usize {
        let registered = self.store.registered.lock().expect("params lock");
        registered.iter().map(|e| e.rows.saturating_mul(e.width)).fold(0, usize::saturating_add)
    }

    /// Name and `[rows, width]` of every parameter, in order; like [`Params::registered_elements`] it
    /// allocates nothing.
    pub fn shapes(&self) -> Vec<(Arc<str>, [usize; 2])> {
        let registered = self.store.registered.lock().expect("params lock");
        registered.iter().map(|entry| (entry.name.clone(), [entry.rows, entry.width])).collect()
    }

    /// The largest number of rows or columns of a parameter: the vocabulary size, unless that is small.
    pub fn widest(&self) -> usize {
        let registered = self.store.registered.lock().expect("params lock");
        registered.iter().map(|entry| entry.rows.max(entry.width)).max().unwrap_or(0)
    }

    /// The device of the parameters, on which models therefore compute.
    pub fn device(&self) -> Device {
        // This must not end registration.
        let flat = self.store.flat.get();
        flat.map_or_else(Device::default, |flat| flat.read().device())
    }

    /// Moves values to `device`; pending gradients are dropped.
    ///
    /// # Errors
    /// If the device is out of memory; the parameters then stay where they are.
    pub fn move_to(&self, device: Device) -> Result<(), OutOfMemory> {
        if device == self.device() {
            return Ok(());
        }
        let flat = self.store.flat();
        let mut values = self.values_mut();
        *values = match device {
            Device::Cpu => {
                let mut there = Array::permanent_zeros_on(device, values.len());
                there.copy_from(&values.to_vec());
                there
            }
            Device::Cuda => device.catch_oom(|| values.to_device(device))?,
        };
        // Release the values first: a thread that packs a weight holds the lock of its copies and then locks
        // the values.
        drop(values);
        flat.packed.clear();
        flat.quantized.clear();
        flat.narrow.clear();
        ignore_poison(flat.gradients.lock()).move_to(device);
        Ok(())
    }

    /// Length of the flat vector. Parameters may be separated by a few zeros of alignment padding.
    pub fn flat_len(&self) -> usize {
        self.store.flat().read().len()
    }

    /// A copy of the flat vector.
    pub fn to_vec(&self) -> Vec<f32> {
        self.values().to_vec()
    }

    /// Overwrites the flat vector with `values`, which must be as long.
    pub fn set(&self, values: &[f32]) {
        self.values_mut().copy_from(values);
        self.clear_int8_flag();
    }

    /// The flat vector, read-only.
    pub(crate) fn values(&self) -> RwLockReadGuard<'_, Array> {
        let flat = self.store.flat();
        if flat.has_installed() {
            flat.dequantize_all(&mut flat.values.write());
        }
        flat.read()
    }

    /// Allocates the vectors with zeros instead of initial values, if they are not allocated yet: for weights
    /// that are about to be installed. Pages that are never written take no memory.
    pub fn lay_out(&self) {
        self.store.flat.get_or_init(|| self.store.allocate(false));
    }

    /// The flat vector, mutable; packed copies become stale.
    pub(crate) fn values_mut(&self) -> RwLockWriteGuard<'_, Array> {
        let flat = self.store.flat();
        let mut guard = flat.values.write();
        flat.dequantize_all(&mut guard);
        flat.version.fetch_add(1, Ordering::Release);
        guard
    }

    /// A copy of all gradients in the order of the values; zero where no backward pass has written since
    /// [`Self::clear_gradients`].
    pub fn gradients(&self) -> Vec<f32> {
        self.with_gradients(|gradients| {
            let mut copy = vec![0.0; gradients.len()];
            gradients.copy(0..copy.len(), &mut copy);
            copy
        })
    }

    /// Calls `work` with all gradients; zero where no backward pass has written since
    /// [`Self::clear_gradients`].
    pub(crate) fn with_gradients<R>(&self, work: impl FnOnce(&FlatGradients) -> R) -> R {
        let flat = self.store.flat();
        let mut gradients = ignore_poison(flat.gradients.lock());
        gradients.complete(&flat.entries, |index| flat.is_frozen(index));
        work(&gradients)
    }

    /// Drops all gradients and returns their memory to the pool.
    pub fn clear_gradients(&self) {
        ignore_poison(self.store.flat().gradients.lock()).clear();
    }

    /// Cleans up after a step that was abandoned halfway: drops gradients, and copies that it was about to
    /// write.
    pub fn abandon_step(&self) {
        self.clear_gradients();
        self.store.flat().narrow.clear();
    }

    fn param(&self, index: usize, entry: &Entry) -> Param {
        Param {
            store: self.store.clone(),
            index,
            name: entry.name.clone(),
            offset: entry.offset,
            rows: entry.rows,
            width: entry.width,
        }
    }
}

impl Flat {
    /// The flat vector, read-only. A reader never waits for a waiting writer: operations hold the values of
    /// several parameters and would deadlock.
    fn read(&self) -> RwLockReadGuard<'_, Array> {
        self.values.read_recursive()
    }
}

impl Store {
    fn flat(&self) -> &Flat {
        self.flat.get_or_init(|| self.allocate(true))
    }

    fn allocate(&self, with_initial_values: bool) -> Flat {
        let entries = self.registered.lock().expect("params lock").clone();
        let len = entries.last().map_or(0, |entry| entry.range().end);
        // Initial values are drawn on the host, whatever the device.
        let values = if with_initial_values {
            let mut values = Array::permanent_zeros_on(Device::Cpu, len);
            for (index, entry) in entries.iter().enumerate() {
                let stream = Stream::new(self.seed, 0, index as u64);
                entry.init.fill(&mut values.f32_mut()[entry.range()], [entry.rows, entry.width], stream);
            }
            values
        } else {
            Array::lazy_zeros(len)
        };
        let gradients = FlatGradients::new(&entries);
        let frozen = entries.iter().map(|_| AtomicBool::new(false)).collect();
        let packed = PackedCopies::new(entries.len());
        let quantized = QuantizedCopies::new(entries.len());
        let narrow = Bf16Copy::default();
        Flat {
            narrow,
            entries,
            frozen,
            values: RwLock::new(values),
            gradients: Mutex::new(gradients),
            version: AtomicU64::new(0),
            packed,
            quantized,
        }
    }
}

/// The guard of a lock, even if poisoned. A batch that does not fit on a GPU unwinds with locks held: values
/// and copies are unchanged, and the catcher calls [`Params::abandon_step`].
fn ignore_poison<G>(locked: LockResult<G>) -> G {
    locked.unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Compute, DType};

    #[test]
    fn moving_to_the_same_device_changes_nothing() {
        let params = Params::new(3);
        let weight = params.add("weight", 5, 7, Init::Normal(1.0));
        let (values, packed) =
            (params.to_vec(), || weight.packed(Orientation::AsIs, Compute::inference(DType::F32)));
        packed();
        let kept = packed();
        weight.gradient_slot().accumulate().fill(2.0);
        params.move_to(Device::Cpu).expect("it is there");
        assert_eq!((params.device(), weight.device()), (Device::Cpu, Device::Cpu));
        assert_eq!(params.to_vec(), values);
        assert_eq!(weight.gradient(), [2.0; 35]);
        assert!(Arc::ptr_eq(&packed(), &kept));
    }

    #[test]
    fn more_elements_than_any_memory_can_be_registered_and_counted() {
        let params = Params::new(3);
        params.add("small", 5, 7, Init::Constant(0.0));
        assert_eq!(params.registered_elements(), 35);
        params.add("large", 1 << 40, 1 << 40, Init::Constant(0.0));
        params.add("after", 1, 1, Init::Constant(0.0));
        assert_eq!(params.registered_elements(), usize::MAX);
    }

    #[test]
    fn passes_over_many_rows_keep_the_copy_packed_for_few_rows() {
        let params = Params::new(3);
        let weight = params.add("weight", 5, 7, Init::Normal(1.0));
        let packed = |compute| weight.packed(Orientation::AsIs, compute);
        packed(Compute::inference(DType::F32));
        let kept = packed(Compute::inference(DType::F32));
        packed(Compute::training(DType::F32));
        assert!(Arc::ptr_eq(&packed(Compute::inference(DType::F32)), &kept));
    }

    #[test]
    fn weights_are_repacked_after_an_update() {
        let params = Params::new(3);
        let weight = params.add("weight", 2, 2, Init::Constant(1.0));
        let packed = || weight.packed(Orientation::AsIs, Compute::inference(DType::F32));
        packed();
        let kept = packed();
        params.set(&vec![2.0; params.flat_len()]);
        assert!(!Arc::ptr_eq(&packed(), &kept));
        let other = packed();
        weight.set(&[3.0; 4]);
        assert!(!Arc::ptr_eq(&packed(), &other));
    }
}
