//! Named tensors whose values stay in the mapped file until they are needed.

use std::collections::BTreeMap;

use half::{bf16, f16};

use super::{FileBytes, FormatError};

/// The type of stored elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementType {
    /// 32-bit floating point.
    F32,
    /// 64-bit floating point.
    F64,
    /// 16-bit floating point, IEEE.
    F16,
    /// The upper half of an f32.
    Bf16,
    /// 8-bit integers.
    I8,
    /// 16-bit integers.
    I16,
    /// 32-bit integers.
    I32,
    /// 64-bit integers.
    I64,
    /// Bytes or booleans.
    U8,
}

impl ElementType {
    /// The size of an element in bytes.
    pub fn bytes(self) -> usize {
        match self {
            ElementType::I8 | ElementType::U8 => 1,
            ElementType::F16 | ElementType::Bf16 | ElementType::I16 => 2,
            ElementType::F32 | ElementType::I32 => 4,
            ElementType::F64 | ElementType::I64 => 8,
        }
    }

    /// Whether the elements are integers.
    pub(crate) fn is_integer(self) -> bool {
        !matches!(self, ElementType::F32 | ElementType::F64 | ElementType::F16 | ElementType::Bf16)
    }
}

/// The memory layout of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    RowMajor,
    /// Only for matrices.
    ColumnMajor,
}

/// The divisor that dequantizes stored integers.
#[derive(Clone, Debug)]
pub(super) enum Divisor {
    One,
    Whole(f32),
    /// One f32 for each index of the first axis.
    Rows(FileBytes),
}

/// A tensor in a file of another project.
#[derive(Clone, Debug)]
pub struct ForeignTensor {
    shape: Vec<usize>,
    element: ElementType,
    order: Order,
    divisor: Divisor,
    bytes: FileBytes,
}

/// The number of elements; `None` if their size overflows.
pub(super) fn elements(shape: &[usize], element: ElementType) -> Option<usize> {
    let count = shape.iter().try_fold(1_usize, |count, &dim| count.checked_mul(dim))?;
    count.checked_mul(element.bytes().max(4))?;
    Some(count)
}

impl ForeignTensor {
    /// A row-major tensor of exactly these bytes; an error if they do not fit its shape.
    pub(super) fn new(
        shape: Vec<usize>,
        element: ElementType,
        bytes: FileBytes,
    ) -> Result<ForeignTensor, String> {
        match elements(&shape, element) {
            Some(count) if count * element.bytes() == bytes.len() => {
                Ok(ForeignTensor { shape, element, order: Order::RowMajor, divisor: Divisor::One, bytes })
            }
            _ => Err(format!("the shape {shape:?} of {element:?} does not fit its {} bytes", bytes.len())),
        }
    }

    /// The tensor with another layout; only for matrices.
    pub(super) fn ordered(self, order: Order) -> ForeignTensor {
        assert!(self.shape.len() == 2 || order == Order::RowMajor, "columns of {:?}", self.shape);
        ForeignTensor { order, ..self }
    }

    /// The tensor with a divisor; `Divisor::Rows` has an f32 for each index of the first axis.
    pub(super) fn divided(self, divisor: Divisor) -> ForeignTensor {
        if let Divisor::Rows(scales) = &divisor {
            assert_eq!(self.shape.first().map(|rows| rows * 4), Some(scales.len()), "divisors of rows");
        }
        ForeignTensor { divisor, ..self }
    }

    /// Its shape; empty for a scalar.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The type of the stored elements.
    pub fn element_type(&self) -> ElementType {
        self.element
    }

    /// Number of elements.
    pub fn count(&self) -> usize {
        self.bytes.len() / self.element.bytes()
    }

    /// Whether its elements are integers times a scale.
    pub fn is_quantized(&self) -> bool {
        !matches!(self.divisor, Divisor::One)
    }

    /// The stored bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Its values in row-major order, converted to f32 and dequantized.
    pub fn values(&self) -> Vec<f32> {
        let values = self.stored();
        match (self.order, &self.shape[..]) {
            (Order::ColumnMajor, &[rows, columns]) => transposed(&values, columns, rows),
            _ => values,
        }
    }

    /// The values of the transposed matrix in row-major order; `None` if it is not a matrix.
    pub fn transposed_values(&self) -> Option<Vec<f32>> {
        let &[rows, columns] = &self.shape[..] else { return None };
        let values = self.stored();
        Some(match self.order {
            Order::ColumnMajor => values,
            Order::RowMajor => transposed(&values, rows, columns),
        })
    }

    /// Its value, if it has only one.
    pub fn scalar(&self) -> Option<f64> {
        let stored = &self.bytes;
        if self.count() != 1 {
            return None;
        }
        Some(match self.element {
            // f32 cannot represent every integer of these types.
            ElementType::I32 => f64::from(i32::from_le_bytes(stored[..].try_into().ok()?)),
            ElementType::I64 => i64::from_le_bytes(stored[..].try_into().ok()?) as f64,
            ElementType::F64 => f64::from_le_bytes(stored[..].try_into().ok()?),
            _ => f64::from(self.values()[0]),
        })
    }

    /// Its values in file order.
    fn stored(&self) -> Vec<f32> {
        let mut values = Vec::with_capacity(self.count());
        let (bytes, out) = (&self.bytes[..], &mut values);
        match self.element {
            ElementType::F32 => convert(bytes, out, f32::from_le_bytes),
            ElementType::F64 => convert(bytes, out, |bytes| f64::from_le_bytes(bytes) as f32),
            ElementType::F16 => convert(bytes, out, |bytes| f16::from_le_bytes(bytes).to_f32()),
            ElementType::Bf16 => convert(bytes, out, |bytes| bf16::from_le_bytes(bytes).to_f32()),
            ElementType::I8 => convert(bytes, out, |bytes| f32::from(i8::from_le_bytes(bytes))),
            ElementType::I16 => convert(bytes, out, |bytes| f32::from(i16::from_le_bytes(bytes))),
            ElementType::I32 => convert(bytes, out, |bytes| i32::from_le_bytes(bytes) as f32),
            ElementType::I64 => convert(bytes, out, |bytes| i64::from_le_bytes(bytes) as f32),
            ElementType::U8 => convert(bytes, out, |[byte]| f32::from(byte)),
        }
        match &self.divisor {
            Divisor::One => {}
            Divisor::Whole(divisor) => values.iter_mut().for_each(|value| *value /= divisor),
            Divisor::Rows(divisors) => {
                let (divisors, _) = divisors.as_chunks::<4>();
                let width = (values.len() / divisors.len().max(1)).max(1);
                for (row, divisor) in values.chunks_mut(width).zip(divisors) {
                    let divisor = f32::from_le_bytes(*divisor);
                    row.iter_mut().for_each(|value| *value /= divisor);
                }
            }
        }
        values
    }
}

fn convert<const N: usize>(bytes: &[u8], out: &mut Vec<f32>, element: impl Fn([u8; N]) -> f32) {
    out.extend(bytes.as_chunks::<N>().0.iter().map(|&bytes| element(bytes)));
}

fn transposed(values: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    (0..columns).flat_map(|column| (0..rows).map(move |row| values[row * columns + column])).collect()
}

/// The tensors of a model, by name.
#[derive(Clone, Debug)]
pub struct TensorSet {
    file: String,
    tensors: BTreeMap<String, ForeignTensor>,
}

impl TensorSet {
    pub(super) fn new(file: &str) -> TensorSet {
        TensorSet { file: file.to_owned(), tensors: BTreeMap::new() }
    }

    /// Adds a tensor; a duplicate name is an error.
    pub(super) fn insert(&mut self, name: &str, tensor: ForeignTensor) -> Result<(), FormatError> {
        match self.tensors.insert(name.to_owned(), tensor) {
            None => Ok(()),
            Some(_) => {
                Err(FormatError::damaged(&self.file, format!("variable `{name}`"), "it is a duplicate"))
            }
        }
    }

    /// Replaces a tensor by the result of `change`.
    pub(super) fn change(&mut self, name: &str, change: impl FnOnce(ForeignTensor) -> ForeignTensor) {
        if let Some((name, tensor)) = self.tensors.remove_entry(name) {
            self.tensors.insert(name, change(tensor));
        }
    }

    /// The name of the file, for error messages.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// All names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// A tensor, if it exists.
    pub fn find(&self, name: &str) -> Option<&ForeignTensor> {
        self.tensors.get(name)
    }

    /// A tensor that must exist.
    pub fn get(&self, name: &str) -> Result<&ForeignTensor, FormatError> {
        self.find(name).ok_or_else(|| {
            let remedy = "The model is incomplete, or of a kind that heedful does not support";
            FormatError::missing(&self.file, format!("variable `{name}`"), remedy)
        })
    }

    /// Number of tensors.
    pub fn len(&self) -> usize {
        self.tensors.len()
    }

    /// Whether there are no tensors.
    pub fn is_empty(&self) -> bool {
        self.tensors.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(shape: &[usize], element: ElementType, bytes: &[u8]) -> ForeignTensor {
        ForeignTensor::new(shape.to_vec(), element, bytes.to_vec().into()).expect("bytes that fit")
    }

    #[test]
    fn every_element_type_is_converted_to_f32() {
        let cases: [(ElementType, Vec<u8>, f32); 9] = [
            (ElementType::F32, (-1.5_f32).to_le_bytes().into(), -1.5),
            (ElementType::F64, 0.25_f64.to_le_bytes().into(), 0.25),
            (ElementType::F16, f16::from_f32(-2.5).to_le_bytes().into(), -2.5),
            (ElementType::Bf16, bf16::from_f32(3.0).to_le_bytes().into(), 3.0),
            (ElementType::I8, vec![0x80], -128.0),
            (ElementType::I16, (-300_i16).to_le_bytes().into(), -300.0),
            (ElementType::I32, (-70_000_i32).to_le_bytes().into(), -70_000.0),
            (ElementType::I64, (1_i64 << 40).to_le_bytes().into(), (1_i64 << 40) as f32),
            (ElementType::U8, vec![200], 200.0),
        ];
        for (element, bytes, value) in cases {
            let tensor = tensor(&[1, 1], element, &bytes);
            assert_eq!(tensor.values(), [value], "{element:?}");
            assert_eq!(tensor.scalar(), Some(f64::from(value)), "{element:?}");
        }
    }

    #[test]
    fn row_divisors_are_applied_and_column_major_matrices_are_transposed() {
        let scales: Vec<u8> = [2.0_f32, 4.0].iter().flat_map(|scale| scale.to_le_bytes()).collect();
        let quantized =
            tensor(&[2, 3], ElementType::I8, &[2, 4, 6, 4, 8, 12]).divided(Divisor::Rows(scales.into()));
        assert_eq!(quantized.values(), [1.0, 2.0, 3.0, 1.0, 2.0, 3.0]);
        assert_eq!(quantized.transposed_values(), Some(vec![1.0, 1.0, 2.0, 2.0, 3.0, 3.0]));
        let columns = tensor(&[2, 3], ElementType::I8, &[1, 4, 2, 5, 3, 6]).ordered(Order::ColumnMajor);
        assert_eq!(columns.values(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(columns.transposed_values(), Some(vec![1.0, 4.0, 2.0, 5.0, 3.0, 6.0]));
    }

    #[test]
    fn shapes_whose_size_overflows_are_rejected() {
        for shape in [vec![usize::MAX, 2], vec![usize::MAX, 0, 3], vec![1 << 62], vec![3]] {
            let fits = ForeignTensor::new(shape.clone(), ElementType::I8, vec![1, 2].into());
            assert!(fits.is_err() || shape.contains(&0), "{shape:?}");
        }
    }
}
