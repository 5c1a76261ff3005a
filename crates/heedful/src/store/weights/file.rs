//! Weights as a safetensors file.
//!
//! ```text
//! length of the header (8 bytes) · header (JSON: names, shapes, places, notes) · numbers · checksum (8 bytes)
//! ```
//!
//! The checksum is itself a tensor of the file (`checksum`, the last one), so every reader of the format opens it. It
//! is XXH3 of all bytes before it, the header too. Model folders leave it out: their files hold the model alone.

use std::collections::HashMap;
use std::hash::Hasher;
use std::io::{self, Write};

use safetensors::tensor::TensorInfo;
use safetensors::{Dtype, SafeTensorError, SafeTensors};
use twox_hash::XxHash3_64;

use super::{Notes, Weights, header};

const CHECKSUM: &str = "checksum";
const CHECKSUM_BYTES: usize = 8;
/// Parts of a file are converted, summed and written in pieces of this many numbers.
const PIECE: usize = 64 * 1024;

/// Several sets of weights, each with a prefix for its names, and notes.
pub(crate) struct Contents<'a> {
    pub(crate) notes: Notes,
    pub(crate) sets: Vec<(&'static str, &'a Weights)>,
    pub(crate) checksum: Checksum,
}

/// Whether a file can be told from a damaged one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checksum {
    /// The last tensor.
    Last,
    /// None.
    Absent,
}

/// Bytes that are no weights.
#[derive(Debug, thiserror::Error)]
pub enum Damage {
    /// Not even the format.
    #[error("it is cut off or no safetensors file ({0})")]
    Format(#[from] SafeTensorError),
    /// The format, but other bytes than were written.
    #[error("its checksum does not fit: bytes were changed or lost after it was written")]
    Checksum,
    /// A matrix in a type that we do not write.
    #[error(
        "`{name}` has the type {found} and {axes} axes, not f32 and two: save the weights as f32 matrices"
    )]
    Kind {
        /// The matrix.
        name: String,
        /// Its type.
        found: Dtype,
        /// How many axes it has.
        axes: usize,
    },
}

impl Contents<'_> {
    /// How many bytes [`Contents::write`] writes, about.
    pub(crate) fn bytes(&self) -> u64 {
        let numbers: usize =
            self.sets.iter().flat_map(|(_, weights)| weights.iter()).map(|(.., values)| values.len()).sum();
        let notes: usize = self.notes.values().map(String::len).sum();
        (numbers * 4 + notes) as u64
    }

    /// Writes the file.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut out = Summed { out, sum: XxHash3_64::new() };
        out.write_all(&self.header())?;
        let mut bytes = vec![[0; 4]; PIECE];
        for (_, weights) in &self.sets {
            for (.., values) in weights.iter() {
                for piece in values.chunks(PIECE) {
                    for (bytes, value) in bytes.iter_mut().zip(piece) {
                        *bytes = value.to_le_bytes();
                    }
                    out.write_all(bytes[..piece.len()].as_flattened())?;
                }
            }
        }
        match self.checksum {
            Checksum::Last => out.out.write_all(&out.sum.finish().to_le_bytes()),
            Checksum::Absent => Ok(()),
        }
    }

    fn header(&self) -> Vec<u8> {
        let mut tensors = Vec::new();
        let mut end = 0;
        let mut place = |bytes: usize| {
            let start = end;
            end += bytes;
            (start, end)
        };
        for (prefix, weights) in &self.sets {
            for (name, shape, values) in weights.iter() {
                let data_offsets = place(4 * values.len());
                let info = TensorInfo { dtype: Dtype::F32, shape: shape.to_vec(), data_offsets };
                tensors.push((format!("{prefix}{name}"), info));
            }
        }
        if self.checksum == Checksum::Last {
            let data_offsets = place(CHECKSUM_BYTES);
            let info = TensorInfo { dtype: Dtype::U8, shape: vec![CHECKSUM_BYTES], data_offsets };
            tensors.push((CHECKSUM.to_owned(), info));
        }
        header(&self.notes, &tensors)
    }
}

/// A file that was read, not yet taken apart.
pub(crate) struct Opened<'a> {
    tensors: SafeTensors<'a>,
    /// In the order of the file.
    names: Vec<String>,
    notes: HashMap<String, String>,
}

impl<'a> Opened<'a> {
    /// Opens the bytes of a file. With [`Checksum::Last`] every byte is known to be as it was written.
    pub(crate) fn new(bytes: &'a [u8], checksum: Checksum) -> Result<Opened<'a>, Damage> {
        let (_, metadata) = SafeTensors::read_metadata(bytes)?;
        if checksum == Checksum::Last {
            let (summed, sum) = bytes.split_last_chunk::<CHECKSUM_BYTES>().ok_or(Damage::Checksum)?;
            if metadata.info(CHECKSUM).is_none() || XxHash3_64::oneshot(summed) != u64::from_le_bytes(*sum) {
                return Err(Damage::Checksum);
            }
        }
        let notes = metadata.metadata().clone().unwrap_or_default();
        Ok(Opened { tensors: SafeTensors::deserialize(bytes)?, names: metadata.offset_keys(), notes })
    }

    /// What was noted beside the numbers.
    pub(crate) fn note(&self, key: &str) -> Option<&str> {
        self.notes.get(key).map(String::as_str)
    }

    /// The matrices whose names begin with `prefix`, without it; none if there is none.
    pub(crate) fn weights(&self, prefix: &str) -> Result<Option<Weights>, Damage> {
        let mut matrices = Vec::new();
        let mut values = Vec::new();
        for name in &self.names {
            let Some(short) = name.strip_prefix(prefix).filter(|_| name != CHECKSUM) else { continue };
            let view = self.tensors.tensor(name)?;
            let (Dtype::F32, &[rows, width]) = (view.dtype(), view.shape()) else {
                let (name, found, axes) = (name.clone(), view.dtype(), view.shape().len());
                return Err(Damage::Kind { name, found, axes });
            };
            matrices.push((short.to_owned(), [rows, width]));
            let (numbers, _) = view.data().as_chunks::<4>();
            values.extend(numbers.iter().map(|&bytes| f32::from_le_bytes(bytes)));
        }
        Ok((!matrices.is_empty()).then(|| Weights::from_matrices(matrices.into_iter(), values)))
    }
}

/// Sums what goes by.
struct Summed<'a> {
    out: &'a mut dyn Write,
    sum: XxHash3_64,
}

impl Write for Summed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.sum.write(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
