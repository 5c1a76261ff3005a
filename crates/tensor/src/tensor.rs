//! `Tensor`: an array that remembers how it was made.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::edge::{self, Edge, Gradients};
use crate::{Array, DType, Device};

/// A matrix of `rows × width` numbers with its place on the tape. Cloning is cheap: the numbers are shared and
/// never change.
#[derive(Clone)]
pub struct Tensor {
    data: Arc<Data>,
    edge: Edge,
}

/// Both forms are shared one by one: an operation keeps for backward the form that it needs, and the other one
/// returns to the pool.
struct Data {
    array: Arc<Array>,
    /// The same numbers rounded to bf16: matrix products want them so, and several may read one tensor.
    narrow: OnceLock<Arc<Array>>,
    /// There where the operation keeps enough to compute its result a second time.
    recompute: OnceLock<Recompute>,
}

/// Computes a tensor's array a second time, with the same bits.
type Recompute = Arc<dyn Fn() -> Array + Send + Sync>;

/// What an operation keeps of an input for backward.
pub(crate) enum Kept {
    /// The numbers.
    Array(Arc<Array>),
    /// A way to recompute them, which costs no memory meanwhile.
    Recompute(Recompute),
}

impl Kept {
    pub(crate) fn into_array(self) -> Arc<Array> {
        match self {
            Kept::Array(array) => array,
            Kept::Recompute(recompute) => Arc::new(recompute()),
        }
    }
}

impl Data {
    fn new(array: Arc<Array>) -> Arc<Data> {
        Arc::new(Data { array, narrow: OnceLock::new(), recompute: OnceLock::new() })
    }
}

impl Tensor {
    /// A constant: no gradient flows to it.
    pub fn new(array: Array) -> Tensor {
        Tensor { data: Data::new(Arc::new(array)), edge: Edge::NONE }
    }

    /// A constant from `rows × width` numbers, in the host's memory.
    pub fn from_f32(rows: usize, width: usize, values: &[f32]) -> Tensor {
        Tensor::new(Array::from_f32(rows, width, values))
    }

    /// As [`Tensor::from_f32`] in the memory of `device`.
    pub fn from_f32_on(device: Device, rows: usize, width: usize, values: &[f32]) -> Tensor {
        Tensor::new(Array::from_f32_on(device, rows, width, values))
    }

    /// A tensor whose gradient [`crate::tape::backward`] returns.
    pub fn variable(array: Array) -> Tensor {
        Tensor { edge: Edge::leaf(), ..Tensor::new(array) }
    }

    /// The result of an operation on `inputs`. `backward` receives the gradient of `array`, in `array`'s type, and
    /// adds to those of the inputs through edges that it captured. It is dropped at once when no input wants a
    /// gradient or the tape is paused.
    pub fn from_inputs(
        array: Array,
        inputs: &[&Tensor],
        backward: impl FnOnce(Array, &mut Gradients) + Send + 'static,
    ) -> Tensor {
        let wanted = inputs.iter().any(|input| input.edge.is_wanted());
        if wanted { Tensor::from_parameters(array, backward) } else { Tensor::new(array) }
    }

    /// As [`Tensor::from_inputs`] for an operation that has parameters, whose gradients are always wanted.
    pub fn from_parameters(
        array: Array,
        backward: impl FnOnce(Array, &mut Gradients) + Send + 'static,
    ) -> Tensor {
        Tensor::from_shared(Arc::new(array), backward)
    }

    /// As [`Tensor::from_parameters`] for an array that the operation keeps as well.
    pub(crate) fn from_shared(
        array: Arc<Array>,
        backward: impl FnOnce(Array, &mut Gradients) + Send + 'static,
    ) -> Tensor {
        let edge = if edge::is_recording() { Edge::operation(backward) } else { Edge::NONE };
        Tensor { data: Data::new(array), edge }
    }

    /// The same numbers as the result of an operation.
    pub(crate) fn with_backward(
        self,
        backward: impl FnOnce(Array, &mut Gradients) + Send + 'static,
    ) -> Tensor {
        let edge = if edge::is_recording() { Edge::operation(backward) } else { Edge::NONE };
        Tensor { edge, ..self }
    }

    /// Adds the bf16 form that a kernel has written beside the f32 one.
    pub(crate) fn with_narrow(self, narrow: Option<Array>) -> Tensor {
        if let Some(narrow) = narrow {
            debug_assert_eq!(narrow.len(), self.array().len());
            drop(self.data.narrow.set(Arc::new(narrow)));
        }
        self
    }

    /// Adds a way to recompute the array from what the operation keeps anyway: operations that need this tensor for
    /// backward then need not keep it. It must give the same bits.
    pub(crate) fn with_recompute(self, recompute: impl Fn() -> Array + Send + Sync + 'static) -> Tensor {
        drop(self.data.recompute.set(Arc::new(recompute)));
        self
    }

    /// `[rows, width]`.
    #[inline]
    pub fn shape(&self) -> [usize; 2] {
        [self.rows(), self.width()]
    }

    /// Number of rows (tokens).
    #[inline]
    pub fn rows(&self) -> usize {
        self.data.array.rows()
    }

    /// Numbers in a row (features).
    #[inline]
    pub fn width(&self) -> usize {
        self.data.array.width()
    }

    /// How the numbers are stored.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.data.array.dtype()
    }

    /// Where the numbers are.
    #[inline]
    pub fn device(&self) -> Device {
        self.data.array.device()
    }

    /// The numbers as they are stored.
    #[inline]
    pub fn array(&self) -> &Array {
        &self.data.array
    }

    /// The numbers in the given type: those stored, or their rounded form, which is made once.
    ///
    /// # Panics
    /// If the tensor is bf16 and f32 is asked for: widening is a copy, ask for it with [`Tensor::to_vec`] or
    /// a cast.
    #[inline]
    pub fn array_as(&self, dtype: DType) -> &Arc<Array> {
        match (self.dtype(), dtype) {
            (DType::F32, DType::Bf16) => {
                self.data.narrow.get_or_init(|| Arc::new(self.data.array.to(DType::Bf16)))
            }
            (have, want) if have == want => &self.data.array,
            _ => panic!("array_as: a bf16 tensor has no f32 form"),
        }
    }

    /// The numbers in the given type, as [`Tensor::array_as`] has them, to be kept for backward.
    pub(crate) fn kept_as(&self, dtype: DType) -> Kept {
        match self.data.recompute.get() {
            Some(recompute) if dtype == self.dtype() => Kept::Recompute(recompute.clone()),
            _ => Kept::Array(self.array_as(dtype).clone()),
        }
    }

    /// The numbers, copied and widened.
    pub fn to_vec(&self) -> Vec<f32> {
        self.array().to_vec()
    }

    /// The same numbers in the host's memory, cut off from the tape.
    pub fn to_host(&self) -> Tensor {
        match self.device() {
            Device::Cpu => self.detached(),
            Device::Cuda => Tensor::new(self.array().to_device(Device::Cpu)),
        }
    }

    /// One row as f32: borrowed where it lies so in the host's memory, else copied.
    #[inline]
    pub fn row(&self, row: usize) -> Cow<'_, [f32]> {
        let range = row * self.width()..(row + 1) * self.width();
        match (self.device(), self.dtype()) {
            (Device::Cpu, DType::F32) => Cow::Borrowed(&self.array().f32()[range]),
            (Device::Cpu, DType::Bf16) | (Device::Cuda, _) => Cow::Owned(self.array().part_to_vec(range)),
        }
    }

    /// The number of a 1 × 1 tensor.
    pub fn item(&self) -> f32 {
        assert_eq!(self.shape(), [1, 1], "item: the tensor is {:?}, not one number", self.shape());
        self.to_vec()[0]
    }

    /// The same numbers, cut off from the tape.
    pub fn detached(&self) -> Tensor {
        Tensor { data: self.data.clone(), edge: Edge::NONE }
    }

    /// The way to this tensor for a gradient.
    #[inline]
    pub fn edge(&self) -> Edge {
        self.edge.clone()
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({} {}×{})", self.dtype(), self.rows(), self.width())
    }
}
