//! Weights as a safetensors file.
//!
//! ```text
//! length of the header (8 bytes) · header (JSON: names, shapes, offsets, metadata) · numbers · checksum (8 bytes)
//! ```
//!
//! The checksum is itself a tensor of the file (`checksum`, the last one), so every reader of the format opens the
//! file. It is the XXH3 of all bytes before it, including the header. Model folders omit it: their files hold the model
//! alone.

use std::collections::HashMap;
use std::hash::Hasher;
use std::io::{self, Write};

use safetensors::tensor::TensorInfo;
use safetensors::{Dtype, SafeTensorError, SafeTensors};
use twox_hash::XxHash3_64;

use super::{Metadata, Weights, header};

const CHECKSUM: &str = "checksum";
const CHECKSUM_BYTES: usize = 8;
/// Numbers are converted, hashed and written in chunks of this size.
const CHUNK: usize = 64 * 1024;

/// What a file holds: metadata, and sets of weights, each with a prefix for its names.
pub(crate) struct Contents<'a> {
    pub(crate) metadata: Metadata,
    pub(crate) sets: Vec<(&'static str, &'a Weights)>,
    pub(crate) checksum: Checksum,
}

/// Whether a file has a checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checksum {
    /// The last tensor is the checksum.
    Last,
    /// There is no checksum.
    Absent,
}

/// Why the bytes of a file cannot be read as weights.
#[derive(Debug, thiserror::Error)]
pub enum WeightsFileError {
    /// The bytes are not in the safetensors format.
    #[error("it is cut off or no safetensors file ({0})")]
    Format(#[from] SafeTensorError),
    /// The bytes differ from those that were written.
    #[error("its checksum does not match: bytes were changed or lost after it was written")]
    Checksum,
    /// A tensor is not an f32 matrix.
    #[error(
        "`{name}` has the type {found} and {axes} axes, not f32 and two: save the weights as f32 matrices"
    )]
    NotF32Matrix {
        /// The tensor.
        name: String,
        /// Its type.
        found: Dtype,
        /// How many axes it has.
        axes: usize,
    },
}

impl Contents<'_> {
    /// About how many bytes [`Contents::write`] writes.
    pub(crate) fn bytes(&self) -> u64 {
        let numbers: usize =
            self.sets.iter().flat_map(|(_, weights)| weights.iter()).map(|(.., values)| values.len()).sum();
        let metadata: usize = self.metadata.values().map(String::len).sum();
        (numbers * 4 + metadata) as u64
    }

    /// Writes the file.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut out = Hashed { out, hash: XxHash3_64::new() };
        out.write_all(&self.header())?;
        let mut bytes = vec![[0; 4]; CHUNK];
        for (_, weights) in &self.sets {
            for (.., values) in weights.iter() {
                for chunk in values.chunks(CHUNK) {
                    for (bytes, value) in bytes.iter_mut().zip(chunk) {
                        *bytes = value.to_le_bytes();
                    }
                    out.write_all(bytes[..chunk.len()].as_flattened())?;
                }
            }
        }
        match self.checksum {
            Checksum::Last => out.out.write_all(&out.hash.finish().to_le_bytes()),
            Checksum::Absent => Ok(()),
        }
    }

    fn header(&self) -> Vec<u8> {
        let mut tensors = Vec::new();
        let mut end = 0;
        let mut allocate = |bytes: usize| {
            let start = end;
            end += bytes;
            (start, end)
        };
        for (prefix, weights) in &self.sets {
            for (name, shape, values) in weights.iter() {
                let data_offsets = allocate(4 * values.len());
                let info = TensorInfo { dtype: Dtype::F32, shape: shape.to_vec(), data_offsets };
                tensors.push((format!("{prefix}{name}"), info));
            }
        }
        if self.checksum == Checksum::Last {
            let data_offsets = allocate(CHECKSUM_BYTES);
            let info = TensorInfo { dtype: Dtype::U8, shape: vec![CHECKSUM_BYTES], data_offsets };
            tensors.push((CHECKSUM.to_owned(), info));
        }
        header(&self.metadata, &tensors)
    }
}

/// A file whose header has been parsed.
pub(crate) struct Opened<'a> {
    tensors: SafeTensors<'a>,
    /// In the order of the file.
    names: Vec<String>,
    metadata: HashMap<String, String>,
}

impl<'a> Opened<'a> {
    /// Parses the header of a file. With [`Checksum::Last`] it also verifies that every byte is as it was written.
    pub(crate) fn new(bytes: &'a [u8], checksum: Checksum) -> Result<Opened<'a>, WeightsFileError> {
        let (_, header) = SafeTensors::read_metadata(bytes)?;
        if checksum == Checksum::Last {
            let (hashed, checksum) =
                bytes.split_last_chunk::<CHECKSUM_BYTES>().ok_or(WeightsFileError::Checksum)?;
            if header.info(CHECKSUM).is_none() || XxHash3_64::oneshot(hashed) != u64::from_le_bytes(*checksum)
            {
                return Err(WeightsFileError::Checksum);
            }
        }
        let metadata = header.metadata().clone().unwrap_or_default();
        Ok(Opened { tensors: SafeTensors::deserialize(bytes)?, names: header.offset_keys(), metadata })
    }

    /// The value of a metadata key.
    pub(crate) fn metadata(&self, key: &str) -> Option<&str> {
        self.metadata.get(key).map(String::as_str)
    }

    /// The matrices whose names begin with `prefix`, with the prefix removed; `None` if there are none.
    pub(crate) fn weights(&self, prefix: &str) -> Result<Option<Weights>, WeightsFileError> {
        let mut matrices = Vec::new();
        let mut values = Vec::new();
        for name in &self.names {
            let Some(short) = name.strip_prefix(prefix).filter(|_| name != CHECKSUM) else { continue };
            let view = self.tensors.tensor(name)?;
            let (Dtype::F32, &[rows, width]) = (view.dtype(), view.shape()) else {
                let (name, found, axes) = (name.clone(), view.dtype(), view.shape().len());
                return Err(WeightsFileError::NotF32Matrix { name, found, axes });
            };
            matrices.push((short.to_owned(), [rows, width]));
            let (numbers, _) = view.data().as_chunks::<4>();
            values.extend(numbers.iter().map(|&bytes| f32::from_le_bytes(bytes)));
        }
        Ok((!matrices.is_empty()).then(|| Weights::from_matrices(matrices.into_iter(), values)))
    }
}

/// A writer that hashes what it writes.
struct Hashed<'a> {
    out: &'a mut dyn Write,
    hash: XxHash3_64,
}

impl Write for Hashed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hash.write(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
