//! One flat vector holds all parameters of a model; their gradients have the same order.
//!
//! A [`Param`] is a named, shaped view into both. The optimizer is one pass, a checkpoint is one write. Parameters
//! are announced with [`Params::add`] while a model is built; the vectors are laid out at first use.

mod gradients;
mod host;

use std::ops::{Deref, Range};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::Array;
use crate::random::Stream;

pub(crate) use gradients::{FlatGradients, GradientSlot};
pub(crate) use host::Orientation;
use host::PackedCopies;

/// Every parameter starts on a cache line.
const ALIGNMENT: usize = 16;

/// How a parameter is filled at first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Init {
    /// Every element the same.
    Constant(f32),
    /// Uniform in `±√(6 / (rows + width))` (Glorot), which keeps the variance through a linear layer.
    Xavier,
    /// Normal with this standard deviation.
    Normal(f32),
}

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

#[derive(Clone)]
struct Entry {
    name: Arc<str>,
    offset: usize,
    rows: usize,
    width: usize,
    init: Init,
}

struct Flat {
    entries: Vec<Entry>,
    values: RwLock<Array>,
    gradients: Mutex<FlatGradients>,
    /// Raised whenever values change: packed copies of an older version are stale.
    version: AtomicU64,
    packed: PackedCopies,
}

/// A named, shaped view into the flat vectors. Cloning is cheap.
#[derive(Clone)]
pub struct Param {
    store: Arc<Store>,
    index: usize,
    name: Arc<str>,
    offset: usize,
    rows: usize,
    width: usize,
}

impl Params {
    /// An empty set. `seed` decides the random initial values.
    pub fn new(seed: u64) -> Params {
        Params { store: Arc::new(Store { seed, announced: Mutex::default(), flat: OnceLock::new() }) }
    }

    /// Announces a parameter of `rows × width` numbers.
    ///
    /// # Panics
    /// If the name is taken, or if the parameters are already in use.
    pub fn add(&self, name: &str, rows: usize, width: usize, init: Init) -> Param {
        assert!(
            self.store.flat.get().is_none(),
            "Params::add: {name} comes after the first use of the others"
        );
        let mut announced = self.store.announced.lock().expect("params lock");
        assert!(announced.iter().all(|entry| &*entry.name != name), "Params::add: {name} exists already");
        let offset =
            announced.last().map_or(0, |e| (e.offset + e.rows * e.width).next_multiple_of(ALIGNMENT));
        announced.push(Entry { name: name.into(), offset, rows, width, init });
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
        self.iter().map(|param| param.rows * param.width).sum()
    }

    /// The flat vector, to read. Between parameters there may be a few zeros of alignment.
    pub fn values(&self) -> RwLockReadGuard<'_, Array> {
        self.store.flat().values.read().expect("params lock")
    }

    /// The flat vector, to change; packed copies are made anew afterwards.
    pub fn values_mut(&self) -> RwLockWriteGuard<'_, Array> {
        let flat = self.store.flat();
        let guard = flat.values.write().expect("params lock");
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
        let mut gradients = flat.gradients.lock().expect("params lock");
        gradients.complete(&flat.entries);
        work(&gradients)
    }

    /// Forgets all gradients and gives their memory to whoever needs it next.
    pub fn clear_gradients(&self) {
        self.store.flat().gradients.lock().expect("params lock").clear();
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

impl Param {
    /// The name given to [`Params::add`].
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `[rows, width]`.
    pub fn shape(&self) -> [usize; 2] {
        [self.rows, self.width]
    }

    /// The numbers, to read.
    pub fn values(&self) -> Values<'_> {
        let guard = self.store.flat().values.read().expect("params lock");
        Values { guard, range: self.range() }
    }

    /// Replaces the numbers.
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
        flat.values.write().expect("params lock").f32_mut()[self.range()].copy_from_slice(values);
        flat.version.fetch_add(1, Ordering::Release);
    }

    /// A copy of the gradient; zeros if no backward pass has written one.
    pub fn gradient(&self) -> Vec<f32> {
        let mut gradient = self.gradient_slot();
        if gradient.is_first() { vec![0.0; self.range().len()] } else { gradient.slice().to_vec() }
    }

    /// The gradient, for a backward pass to write.
    pub(crate) fn gradient_slot(&self) -> GradientSlot<'_> {
        let guard = self.store.flat().gradients.lock().expect("params lock");
        GradientSlot { guard, index: self.index, range: self.range() }
    }

    /// Its place in the flat vectors.
    pub fn range(&self) -> Range<usize> {
        self.offset..self.offset + self.rows * self.width
    }
}

/// A parameter's numbers, borrowed.
pub struct Values<'a> {
    guard: RwLockReadGuard<'a, Array>,
    range: Range<usize>,
}

impl Deref for Values<'_> {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.guard.f32()[self.range.clone()]
    }
}

impl Entry {
    fn range(&self) -> Range<usize> {
        self.offset..self.offset + self.rows * self.width
    }
}

impl Store {
    fn flat(&self) -> &Flat {
        self.flat.get_or_init(|| {
            let entries = self.announced.lock().expect("params lock").clone();
            let len = entries.last().map_or(0, |entry| entry.range().end);
            let mut values = Array::lasting_zeros(len);
            for (index, entry) in entries.iter().enumerate() {
                let stream = Stream::new(self.seed, 0, index as u64);
                entry.init.fill(&mut values.f32_mut()[entry.range()], entry, stream);
            }
            let gradients = FlatGradients::new(&entries);
            let packed = PackedCopies::new(entries.len());
            Flat {
                entries,
                values: RwLock::new(values),
                gradients: Mutex::new(gradients),
                version: AtomicU64::new(0),
                packed,
            }
        })
    }
}

impl Init {
    fn fill(self, values: &mut [f32], entry: &Entry, stream: Stream) {
        let bound = (6.0 / (entry.rows + entry.width) as f32).sqrt();
        for (i, value) in values.iter_mut().enumerate() {
            *value = match self {
                Init::Constant(constant) => constant,
                Init::Xavier => (2.0 * stream.uniform(i as u32) - 1.0) * bound,
                Init::Normal(deviation) => deviation * stream.normal(i as u32),
            };
        }
    }
}
