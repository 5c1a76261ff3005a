//! `Tensor`: an array that remembers how it was computed.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::edge::{self, Edge, Gradients};
use crate::{Array, DType, Device};

/// A `rows × width` matrix with its node on the tape. Cloning is cheap: the elements are shared and
/// immutable.
#[derive(Clone)]
pub struct Tensor {
    data: Arc<Data>,
    edge: Edge,
}

/// The f32 array and its bf16 copy are shared separately: an operation saves for backward the one that it
/// needs, and the other returns to the pool.
struct Data {
    array: Arc<Array>,
    /// The same elements rounded to bf16 for matrix products; several products may read one tensor.
    narrow: OnceLock<Arc<Array>>,
    /// Present if the operation saves enough to recompute its result.
    recompute: OnceLock<Recompute>,
}

/// Recomputes a tensor's array, with the same bits.
type Recompute = Arc<dyn Fn() -> Array + Send + Sync>;

/// An input saved for backward.
pub(crate) enum SavedInput {
    /// The elements.
    Array(Arc<Array>),
    /// A closure that recomputes them, which takes no memory in between.
    Recompute(Recompute),
}

impl SavedInput {
    pub(crate) fn into_array(self) -> Arc<Array> {
        match self {
            SavedInput::Array(array) => array,
            SavedInput::Recompute(recompute) => Arc::new(recompute()),
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

    /// A constant with `rows × width` elements in host memory.
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

    /// The result of an operation on `inputs`. `backward` receives the gradient of `array`, in `array`'s
    /// type, and adds to those of the inputs through edges that it captured. It is dropped at once if no
    /// input requires a gradient or recording is off.
    pub fn from_inputs(
        array: Array,
        inputs: &[&Tensor],
        backward: impl FnOnce(Array, &mut Gradients) + Send + 'static,
    ) -> Tensor {
        let requires_grad = inputs.iter().any(|input| input.edge.requires_grad());
        if requires_grad { Tensor::from_parameters(array, backward) } else { Tensor::new(array) }
    }

    /// As [`Tensor::from_inputs`] for an operation with parameters, whose gradients are always required.
    pub fn from_parameters(
        array: Array,
        backward: impl FnOnce(Array, &mut Gradients) + Send + 'static,
    ) -> Tensor {
        Tensor::from_shared(Arc::new(array), backward)
    }

    /// As [`Tensor::from_parameters`] for an array that the operation saves as well.
    pub(crate) fn from_shared(
        array: Arc<Array>,
        backward: impl FnOnce(Array, &mut Gradients) + Send + 'static,
    ) -> Tensor {
        let edge = if edge::is_recording() { Edge::operation(backward) } else { Edge::NONE };
        Tensor { data: Data::new(array), edge }
    }

    /// The same elements as the result of an operation.
    pub(crate) fn with_backward(
        self,
        backward: impl FnOnce(Array, &mut Gradients) + Send + 'static,
    ) -> Tensor {
        let edge = if edge::is_recording() { Edge::operation(backward) } else { Edge::NONE };
        Tensor { edge, ..self }
    }

    /// Attaches the bf16 copy that a kernel has written along with the f32 array.
    pub(crate) fn with_bf16(self, narrow: Option<Array>) -> Tensor {
        if let Some(narrow) = narrow {
            debug_assert_eq!(narrow.len(), self.array().len());
            drop(self.data.narrow.set(Arc::new(narrow)));
        }
        self
    }

    /// Attaches a closure that recomputes the array from the arrays that the operation saves anyway:
    /// operations that need this tensor for backward then need not save it. It must give the same bits.
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

    /// Elements in a row (features).
    #[inline]
    pub fn width(&self) -> usize {
        self.data.array.width()
    }

    /// The element type.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.data.array.dtype()
    }

    /// The device that holds the elements.
    #[inline]
    pub fn device(&self) -> Device {
        self.data.array.device()
    }

    /// The stored array.
    #[inline]
    pub fn array(&self) -> &Array {
        &self.data.array
    }

    /// The elements in the given type: the stored array, or its bf16 copy, which is made once.
    ///
    /// # Panics
    /// If the tensor is bf16 and f32 is requested: widening needs a copy, use [`Tensor::to_vec`] or a cast.
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

    /// The elements in the given type, as from [`Tensor::array_as`], to save for backward.
    pub(crate) fn saved_as(&self, dtype: DType) -> SavedInput {
        match self.data.recompute.get() {
            Some(recompute) if dtype == self.dtype() => SavedInput::Recompute(recompute.clone()),
            _ => SavedInput::Array(self.array_as(dtype).clone()),
        }
    }

    /// A copy of the elements in f32.
    pub fn to_vec(&self) -> Vec<f32> {
        self.array().to_vec()
    }

    /// The same elements in host memory, detached from the tape.
    pub fn to_host(&self) -> Tensor {
        match self.device() {
            Device::Cpu => self.detached(),
            Device::Cuda => Tensor::new(self.array().to_device(Device::Cpu)),
        }
    }

    /// One row as f32: borrowed if it is f32 in host memory, else copied.
    #[inline]
    pub fn row(&self, row: usize) -> Cow<'_, [f32]> {
        let range = row * self.width()..(row + 1) * self.width();
        match (self.device(), self.dtype()) {
            (Device::Cpu, DType::F32) => Cow::Borrowed(&self.array().f32()[range]),
            (Device::Cpu, DType::Bf16) | (Device::Cuda, _) => Cow::Owned(self.array().part_to_vec(range)),
        }
    }

    /// The value of a 1 × 1 tensor.
    pub fn item(&self) -> f32 {
        assert_eq!(self.shape(), [1, 1], "item: the tensor is {:?}, not a scalar", self.shape());
        self.to_vec()[0]
    }

    /// The same elements, detached from the tape.
    pub fn detached(&self) -> Tensor {
        Tensor { data: self.data.clone(), edge: Edge::NONE }
    }

    /// The path of a gradient to this tensor.
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
