//! Weights in reduced precision: bf16 or int8.
//!
//! ```text
//! bf16    NAME           bf16, rows × width
//! int8    NAME           i8, the tiles of an `Int8Matrix`
//!         NAME.scales    f32, 1 × width or rows × 1: a scale for each column, or for each row
//!         int8-shapes    metadata: rows and width of every such matrix, in JSON
//! both    precision      metadata: bf16 or int8
//! ```
//!
//! Only the weights of matrix products are converted; biases, norms and the like stay f32. int8 values are
//! stored in the layout of the GEMM, so that a mapped file is used without a copy.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use heedful_tensor::cpu::gemm::Int8Matrix;
use heedful_tensor::{Channels, Param, Params, Precision};
use safetensors::Dtype;
use safetensors::tensor::TensorView;

use super::file::{StoredTensor, WeightsFile};
use super::{Metadata, Weights, WeightsFileError, WeightsMismatch};
use crate::store::formats::FileBytes;

const SCALES: &str = ".scales";
const SHAPES: &str = "int8-shapes";
const PRECISION: &str = "precision";

/// A model's weights in reduced precision, ready to be written.
pub(crate) struct ReducedWeights {
    precision: Precision,
    integers: Vec<(String, Channels, Arc<Int8Matrix>)>,
    rounded: Vec<(String, [usize; 2], Vec<u8>)>,
    /// The parameters that stay f32.
    pub(crate) rest: Weights,
    shapes: BTreeMap<String, [usize; 2]>,
}

impl ReducedWeights {
    /// Converts the weights of matrix products.
    pub(crate) fn of(params: &Params, precision: Precision) -> ReducedWeights {
        let (mut integers, mut rounded, mut rest) = (Vec::new(), Vec::new(), Vec::new());
        let mut shapes = BTreeMap::new();
        for param in params.iter() {
            let (name, shape) = (param.name().to_owned(), param.shape());
            match (precision, param.channels()) {
                (Precision::Int8, Some(channels)) => {
                    shapes.insert(name.clone(), shape);
                    integers.push((name, channels, param.to_int8().expect("the weight of products")));
                }
                (Precision::Bf16, Some(_)) => rounded.push((name, shape, bf16_bytes(&param.to_vec()))),
                _ => rest.push((name, shape, param.to_vec())),
            }
        }
        let matrices = rest.iter().map(|(name, shape, _)| (name.clone(), *shape));
        let matrices: Vec<_> = matrices.collect();
        let values = rest.into_iter().flat_map(|(.., values)| values).collect();
        let rest = Weights::from_matrices(matrices.into_iter(), values);
        ReducedWeights { precision, integers, rounded, rest, shapes }
    }

    /// Number of converted matrices.
    pub(crate) fn len(&self) -> usize {
        self.integers.len() + self.rounded.len()
    }

    /// The tensors to be written; int8 tiles come first, so that they are aligned in the file.
    pub(crate) fn tensors(&self) -> Vec<StoredTensor<'_>> {
        let integers = self.integers.iter().map(|(name, _, matrix)| StoredTensor {
            name: name.clone(),
            dtype: Dtype::I8,
            shape: matrix.axes().to_vec(),
            bytes: Cow::Borrowed(matrix.bytes()),
        });
        let scales = self.integers.iter().map(|(name, channels, matrix)| {
            let scales = matrix.column_scales();
            let shape = match channels {
                Channels::Columns => vec![1, scales.len()],
                Channels::Rows => vec![scales.len(), 1],
            };
            let bytes = scales.iter().flat_map(|scale| scale.to_le_bytes()).collect::<Vec<u8>>();
            let name = format!("{name}{SCALES}");
            StoredTensor { name, dtype: Dtype::F32, shape, bytes: Cow::Owned(bytes) }
        });
        let rounded = self.rounded.iter().map(|(name, shape, bytes)| StoredTensor {
            name: name.clone(),
            dtype: Dtype::BF16,
            shape: shape.to_vec(),
            bytes: Cow::Borrowed(bytes),
        });
        integers.chain(scales).chain(rounded).collect()
    }

    /// The metadata of the file.
    pub(crate) fn metadata(&self) -> impl Iterator<Item = (String, String)> {
        let json = serde_json::to_string(&self.shapes).expect("serializable shapes");
        let shapes = (!self.shapes.is_empty()).then_some((SHAPES.to_owned(), json));
        [(PRECISION.to_owned(), self.precision.to_string())].into_iter().chain(shapes)
    }
}

fn bf16_bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|&value| half::bf16::from_f32(value).to_le_bytes()).collect()
}

/// The precision of a file's matrix products, according to its metadata.
pub(crate) fn precision(metadata: &Metadata) -> Precision {
    match metadata.get(PRECISION).map(String::as_str) {
        Some("int8") => Precision::Int8,
        Some("bf16") => Precision::Bf16,
        _ => Precision::F32,
    }
}

/// A matrix in its stored form.
pub(super) enum StoredMatrix<'a> {
    F32([usize; 2], &'a [u8]),
    Bf16([usize; 2], &'a [u8]),
    Int8 { shape: [usize; 2], channels: Channels, integers: &'a [u8], scales: Vec<f32> },
}

impl StoredMatrix<'_> {
    pub(super) fn shape(&self) -> [usize; 2] {
        match *self {
            StoredMatrix::F32(shape, _) | StoredMatrix::Bf16(shape, _) | StoredMatrix::Int8 { shape, .. } => {
                shape
            }
        }
    }

    /// Whether all of its values are finite.
    fn is_finite(&self) -> bool {
        match self {
            StoredMatrix::F32(_, bytes) => {
                bytes.as_chunks::<4>().0.iter().all(|&bytes| f32::from_le_bytes(bytes).is_finite())
            }
            StoredMatrix::Bf16(_, bytes) => {
                bytes.as_chunks::<2>().0.iter().all(|&bytes| half::bf16::from_le_bytes(bytes).is_finite())
            }
            StoredMatrix::Int8 { scales, .. } => scales.iter().all(|scale| scale.is_finite()),
        }
    }

    /// Appends the values in row-major order.
    pub(super) fn append_to(&self, values: &mut Vec<f32>) {
        match self {
            StoredMatrix::F32(_, bytes) => {
                values.extend(bytes.as_chunks::<4>().0.iter().map(|&bytes| f32::from_le_bytes(bytes)));
            }
            StoredMatrix::Bf16(_, bytes) => {
                let stored = bytes.as_chunks::<2>().0.iter();
                values.extend(stored.map(|&bytes| half::bf16::from_le_bytes(bytes).to_f32()));
            }
            StoredMatrix::Int8 { shape, channels, integers, scales } => {
                let matrix = Int8Matrix::from_bytes(channels.sides(*shape), integers, scales);
                let [rows, width] = *shape;
                let start = values.len();
                values.resize(start + rows * width, 0.0);
                matrix.expect("it was checked").dequantize_into(*channels, &mut values[start..]);
            }
        }
    }

    /// Sets a parameter; int8 values of a mapped file are not copied.
    fn install(&self, param: &Param, file: &FileBytes) {
        if let StoredMatrix::Int8 { shape, channels, integers, scales } = self
            && param.channels() == Some(*channels)
        {
            let sides = channels.sides(*shape);
            let mapped = file.mapped().and_then(|(mapped, first)| {
                let start = first + integers.as_ptr().addr() - file.as_ptr().addr();
                Int8Matrix::from_file(sides, mapped, start..start + integers.len(), scales)
            });
            let matrix = mapped.or_else(|| Int8Matrix::from_bytes(sides, integers, scales));
            return param.set_int8(matrix.expect("its bytes were counted"));
        }
        let mut values = Vec::new();
        self.append_to(&mut values);
        param.set(&values);
    }
}

impl WeightsFile<'_> {
    /// Whether a tensor has the scales of another one.
    pub(super) fn is_scales(&self, name: &str) -> bool {
        name.strip_suffix(SCALES)
            .is_some_and(|of| self.tensor(of).is_ok_and(|view| view.dtype() == Dtype::I8))
    }

    /// The matrix with this name.
    pub(super) fn matrix(&self, name: &str) -> Result<StoredMatrix<'_>, WeightsFileError> {
        let view = self.tensor(name)?;
        let unknown = || WeightsFileError::NotMatrix {
            name: name.to_owned(),
            found: view.dtype(),
            axes: view.shape().len(),
        };
        match (view.dtype(), view.shape()) {
            (Dtype::F32, &[rows, width]) => Ok(StoredMatrix::F32([rows, width], view.data())),
            (Dtype::BF16, &[rows, width]) => Ok(StoredMatrix::Bf16([rows, width], view.data())),
            (Dtype::I8, _) => self.integers(name, &view).ok_or_else(unknown),
            _ => Err(unknown()),
        }
    }

    fn integers<'s>(&'s self, name: &str, view: &TensorView<'s>) -> Option<StoredMatrix<'s>> {
        let shapes: BTreeMap<String, [usize; 2]> = serde_json::from_str(self.metadata(SHAPES)?).ok()?;
        let shape @ [rows, width] = *shapes.get(name)?;
        let scales = self.tensor(&format!("{name}{SCALES}")).ok()?;
        let channels = match *scales.shape() {
            [1, columns] if columns == width && (rows, width) != (1, 1) => Channels::Columns,
            [one, 1] if one == rows => Channels::Rows,
            _ => return None,
        };
        let stored = scales.data().as_chunks::<4>().0.iter();
        let scales: Vec<f32> = stored.map(|&bytes| f32::from_le_bytes(bytes)).collect();
        let integers = view.data();
        let fits = scales.len() == channels.sides(shape)[1]
            && integers.len() == Int8Matrix::byte_count(channels.sides(shape));
        fits.then_some(StoredMatrix::Int8 { shape, channels, integers, scales })
    }

    /// Sets all parameters of a model from this file, whose bytes are `file`; on an error the model is
    /// unchanged.
    pub(crate) fn install(&self, params: &Params, file: &FileBytes) -> Result<(), InstallError> {
        let names: Vec<&str> = self.names().filter(|name| !self.is_scales(name)).collect();
        let mut matrices = BTreeMap::new();
        for name in &names {
            matrices.insert(*name, self.matrix(name)?);
        }
        let found = matrices.iter().map(|(name, matrix)| (*name, matrix.shape()));
        super::check(found, params)?;
        if let Some((name, _)) = matrices.iter().find(|(_, matrix)| !matrix.is_finite()) {
            return Err(InstallError::NotFinite { name: (*name).to_owned() });
        }
        params.lay_out();
        for param in params.iter() {
            matrices[param.name()].install(&param, file);
        }
        Ok(())
    }
}

/// Why weights cannot be installed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InstallError {
    #[error(transparent)]
    File(#[from] WeightsFileError),
    #[error(transparent)]
    Mismatch(#[from] WeightsMismatch),
    #[error("`{name}` has a value that is not finite")]
    NotFinite { name: String },
}
