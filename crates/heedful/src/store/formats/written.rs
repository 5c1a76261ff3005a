//! Tensors to be written into a file of another project.

use std::io::{self, Write};

use super::ElementType;

/// Numbers are converted and written in chunks of this size.
const CHUNK: usize = 16 * 1024;

/// A tensor with its name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WrittenTensor {
    pub(crate) name: String,
    /// Its axes; none for a single number.
    pub(crate) shape: Vec<usize>,
    pub(crate) numbers: Numbers,
}

/// The numbers of a tensor, row after row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Numbers {
    F32(Vec<f32>),
    I8(i8),
    I16(i16),
}

impl WrittenTensor {
    pub(super) fn element(&self) -> ElementType {
        match self.numbers {
            Numbers::F32(_) => ElementType::F32,
            Numbers::I8(_) => ElementType::I8,
            Numbers::I16(_) => ElementType::I16,
        }
    }

    /// How many bytes it takes.
    pub(crate) fn bytes(&self) -> u64 {
        let count = match &self.numbers {
            Numbers::F32(numbers) => numbers.len(),
            Numbers::I8(_) | Numbers::I16(_) => 1,
        };
        count as u64 * self.element().bytes() as u64
    }

    pub(super) fn write_numbers(&self, out: &mut dyn Write) -> io::Result<()> {
        match &self.numbers {
            Numbers::I8(number) => out.write_all(&number.to_le_bytes()),
            Numbers::I16(number) => out.write_all(&number.to_le_bytes()),
            Numbers::F32(numbers) => {
                let mut bytes = Vec::with_capacity(4 * CHUNK);
                for chunk in numbers.chunks(CHUNK) {
                    bytes.clear();
                    bytes.extend(chunk.iter().flat_map(|number| number.to_le_bytes()));
                    out.write_all(&bytes)?;
                }
                Ok(())
            }
        }
    }
}
