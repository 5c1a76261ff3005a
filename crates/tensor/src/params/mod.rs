//! One flat vector holds all parameters of a model; their gradients have the same order.
//!
//! A [`Param`] is a named, shaped view into both. The optimizer is one pass, a checkpoint is one write. Parameters
//! are announced with [`Params::add`] while a model is built; the vectors are laid out at first use.

mod batch_sums;
mod departure;
mod entry;
mod frozen;
mod gpu;
mod gradients;
mod host;
mod init;
mod kinds;
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
use gpu::NarrowCopy;
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
    announced: Mutex<Vec<Entry>>,
    flat: OnceLock<Flat>,
}

struct Flat {
    entries: Vec<Entry>,
    /// Per parameter: whether it keeps its values.
    frozen: Vec<AtomicBool>,
    values: RwLock<Array>,
    gradients: Mutex<FlatGradients>,
    /// Raised whenever values change: packed copies of an older version are stale.
    version: AtomicU64,
    packed: PackedCopies,
    quantized: QuantizedCopies,
    narrow: NarrowCopy,
}

/// Which way round a weight enters a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Orientation {
    /// `x W`
    AsIs,
    /// `x Wᵀ`
    Transposed,
}

impl Params {
    /// An empty set on the default device. `seed` decides the random initial values.
    pub fn new(seed: u64) -> Params {
        Params { store: Arc::new(Store { seed, announced: Mutex::default(), flat: OnceLock::new() }) }
    }

    /// Announces a parameter of `rows × width` numbers.
    ///
    /// # Panics
    /// If the name is taken, or if the parameters are already in use.
    pub fn add(&self, name: &str, rows: usize, width: usize, init: Init) -> Param {
        self.announce(name, [rows, width], init, Kind::Learned)
    }

    /// [`Params::add`] for the weight of products, which may be kept as integers.
    pub fn add_weight(&self, name: &str, [rows, width]: [usize; 2], init: Init, channels: Channels) -> Param {
        self.announce(name, [rows, width], init, Kind::Weight(channels))
    }

    /// A row of numbers that is kept with the parameters and not learned, such as a running mean: no gradient reaches it, and
    /// it does not decay.
    pub fn add_statistic(&self, name: &str, width: usize, init: Init) -> Param {
        self.announce(name, [1, width], init, Kind::Statistic)
    }

    fn announce(&self, name: &str, [rows, width]: [usize; 2], init: Init, kind: Kind) -> Param {
        assert!(
            self.store.flat.get().is_none(),
            "Params::add: {name} comes after the first use of the others"
        );
        let mut announced = self.store.announced.lock().expect("params lock");
        assert!(announced.iter().all(|entry| &*entry.name != name), "Params::add: {name} exists already");
        // Saturating: a model that fits into no memory is announced too, to be counted and refused.
        let end = announced.last().map_or(0, |e| e.offset.saturating_add(e.rows.saturating_mul(e.width)));
        let offset = end.checked_next_multiple_of(ALIGNMENT).unwrap_or(usize::MAX);
        announced.push(Entry { name: name.into(), offset, rows, width, init, kind });
        self.param(announced.len() - 1, &announced[announced.len() - 1])
    }

    /// The parameter of that name.
    pub fn get(&self, name: &str) -> Option<Param> {
        let entries = &self.store.flat().entries;
        let index = entries.iter().position(|entry| &*entry.name == name)?;
        Some(self.param(index, &entries[index]))
    }

    /// All parameters in the order of their announcement.
    pub fn iter(&self) -> impl Iterator<Item = Param> + '_ {
        self.store.flat().entries.iter().enumerate().map(|(index, entry)| self.param(index, entry))
    }

    /// How many numbers there are to learn.
    pub fn count(&self) -> usize {
        let learned = self.store.flat().entries.iter().filter(|entry| !matches!(entry.kind, Kind::Statistic));
        learned.map(|entry| entry.rows * entry.width).sum()
    }

    /// How many numbers have been announced; unlike [`Params::count`] it ends no announcements and takes no memory.
    pub fn announced(&self) -> usize {
        let announced = self.store.announced.lock().expect("params lock");
        announced.iter().map(|e| e.rows.saturating_mul(e.width)).fold(0, usize::saturating_add)
    }

    /// Name and `[rows, width]` of every parameter, in order; like [`Params::announced`] it takes no memory for the numbers.
    pub fn shapes(&self) -> Vec<(Arc<str>, [usize; 2])> {
        let announced = self.store.announced.lock().expect("params lock");
        announced.iter().map(|entry| (entry.name.clone(), [entry.rows, entry.width])).collect()
    }

    /// The most rows or columns that a parameter has: the size of the vocabulary, unless that is small.
    pub fn widest(&self) -> usize {
        let announced = self.store.announced.lock().expect("params lock");
        announced.iter().map(|entry| entry.rows.max(entry.width)).max().unwrap_or(0)
    }

    /// Where the parameters are, and where models compute therefore.
    pub fn device(&self) -> Device {
        // Asking must not end the announcements.
        let flat = self.store.flat.get();
        flat.map_or_else(Device::default, |flat| flat.read().device())
    }

    /// Moves values to `device`; gradients that are not yet used up are forgotten on the way.
    ///
    /// # Errors
    /// If the device has no memory for them; they stay where they are.
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
        // Who packs a weight holds its copies' lock and asks for the values.
        drop(values);
        flat.packed.clear();
        flat.quantized.clear();
        flat.narrow.clear();
        in_order(flat.gradients.lock()).move_to(device);
        Ok(())
    }

    /// Length of the flat vector. Between parameters there may be a few zeros of alignment.
    pub fn flat_len(&self) -> usize {
        self.store.flat().read().len()
    }

    /// A copy of the flat vector.
    pub fn to_vec(&self) -> Vec<f32> {
        self.values().to_vec()
    }

    /// Replaces the flat vector by a copy of `values`, which must be as long.
    pub fn set(&self, values: &[f32]) {
        self.values_mut().copy_from(values);
        self.are_int8_no_more();
    }

    /// The flat vector, to read.
    pub(crate) fn values(&self) -> RwLockReadGuard<'_, Array> {
        let flat = self.store.flat();
        if flat.has_installed() {
            flat.dequantize_all(&mut flat.values.write());
        }
        flat.read()
    }

    /// Lays the vectors out with zeros instead of first values, if they are not laid out yet: for weights that are about to be
    /// installed. What is never written takes no memory.
    pub fn lay_out(&self) {
        self.store.flat.get_or_init(|| self.store.laid_out(false));
    }

    /// The flat vector, to change; packed copies are made anew afterwards.
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

    /// Calls `work` with all gradients; what no backward pass has written since [`Self::clear_gradients`] is zero.
    pub(crate) fn with_gradients<R>(&self, work: impl FnOnce(&FlatGradients) -> R) -> R {
        let flat = self.store.flat();
        let mut gradients = in_order(flat.gradients.lock());
        gradients.complete(&flat.entries, |index| flat.is_frozen(index));
        work(&gradients)
    }

    /// Forgets all gradients and gives their memory to whoever needs it next.
    pub fn clear_gradients(&self) {
        in_order(self.store.flat().gradients.lock()).clear();
    }

    /// Forgets what a step has left that was given up halfway: gradients, and copies that it was about to write.
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
    /// The flat vector, to read. A reader never waits for a thread that waits to write: operations hold the values of several
    /// parameters, and would wait for themselves.
    fn read(&self) -> RwLockReadGuard<'_, Array> {
        self.values.read_recursive()
    }
}

impl Store {
    fn flat(&self) -> &Flat {
        self.flat.get_or_init(|| self.laid_out(true))
    }

    fn laid_out(&self, is_drawn: bool) -> Flat {
        let entries = self.announced.lock().expect("params lock").clone();
        let len = entries.last().map_or(0, |entry| entry.range().end);
        // First values are drawn on the host, whatever the device.
        let values = if is_drawn {
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
        let narrow = NarrowCopy::default();
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

/// What a lock guards. A batch that does not fit on a GPU unwinds with locks held: values and copies are as they were, and
/// whoever catches it calls [`Params::abandon_step`].
fn in_order<G>(locked: LockResult<G>) -> G {
    locked.unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Compute, DType};

    #[test]
    fn moving_to_where_they_are_changes_nothing() {
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
    fn more_than_any_memory_can_be_announced_and_counted() {
        let params = Params::new(3);
        params.add("small", 5, 7, Init::Constant(0.0));
        assert_eq!(params.announced(), 35);
        params.add("large", 1 << 40, 1 << 40, Init::Constant(0.0));
        params.add("after", 1, 1, Init::Constant(0.0));
        assert_eq!(params.announced(), usize::MAX);
    }

    #[test]
    fn passes_over_many_rows_leave_the_copy_for_few_rows_alone() {
        let params = Params::new(3);
        let weight = params.add("weight", 5, 7, Init::Normal(1.0));
        let packed = |compute| weight.packed(Orientation::AsIs, compute);
        packed(Compute::inference(DType::F32));
        let kept = packed(Compute::inference(DType::F32));
        packed(Compute::training(DType::F32));
        assert!(Arc::ptr_eq(&packed(Compute::inference(DType::F32)), &kept));
    }

    #[test]
    fn packed_copies_are_made_anew_after_an_update() {
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
