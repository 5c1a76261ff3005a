//! Tensors to be written to a file of another project.

use std::io::{self, Write};

use super::ElementType;

/// Values are converted and written in chunks of this many elements.
const CHUNK: usize = 16 * 1024;

/// A named tensor.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OutputTensor {
    pub(crate) name: String,
    /// Empty for a scalar.
    pub(crate) shape: Vec<usize>,
    pub(crate) values: TensorValues,
}

/// The values of a tensor in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TensorValues {
    F32(Vec<f32>),
    I8(i8),
    I16(i16),
}

impl OutputTensor {
    pub(super) fn element(&self) -> ElementType {
        match self.values {
            TensorValues::F32(_) => ElementType::F32,
            TensorValues::I8(_) => ElementType::I8,
            TensorValues::I16(_) => ElementType::I16,
        }
    }

    /// Its size in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        let count = match &self.values {
            TensorValues::F32(values) => values.len(),
            TensorValues::I8(_) | TensorValues::I16(_) => 1,
        };
        count as u64 * self.element().bytes() as u64
    }

    pub(super) fn write_values(&self, out: &mut dyn Write) -> io::Result<()> {
        match &self.values {
            TensorValues::I8(value) => out.write_all(&value.to_le_bytes()),
            TensorValues::I16(value) => out.write_all(&value.to_le_bytes()),
            TensorValues::F32(values) => {
                let mut bytes = Vec::with_capacity(4 * CHUNK);
                for chunk in values.chunks(CHUNK) {
                    bytes.clear();
                    bytes.extend(chunk.iter().flat_map(|value| value.to_le_bytes()));
                    out.write_all(&bytes)?;
                }
                Ok(())
            }
        }
    }
}
