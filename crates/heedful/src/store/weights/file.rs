//! Weights as a safetensors file.
//!
//! ```text
//! length of the header (8 bytes) · header (JSON: metadata, names, shapes, offsets) · tensor data
//! ```
//!
//! Every file has a checksum, the XXH3 of its bytes, in a form that other readers of the format accept. A
//! checkpoint has it in its last tensor (`checksum`), so that it is written in one pass. A model has it as
//! the first value of its metadata, so that its tensors are exactly its parameters; it is computed with zeros
//! in place of its own digits.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::hash::Hasher;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::path::Path;

use safetensors::tensor::{TensorInfo, TensorView};
use safetensors::{Dtype, SafeTensorError, SafeTensors};
use serde::Deserialize;
use twox_hash::XxHash3_64;

use super::{Metadata, Weights, header};

const CHECKSUM: &str = "checksum";
const CHECKSUM_BYTES: usize = 8;
/// The beginning of a header with the checksum in its metadata; no other metadata key may sort before it.
const BEFORE_DIGITS: &[u8] = br#"{"__metadata__":{"checksum":""#;
const NO_DIGITS: &[u8; 16] = b"0000000000000000";
/// The byte range of the checksum's digits in the file.
const DIGITS: Range<usize> = 8 + BEFORE_DIGITS.len()..8 + BEFORE_DIGITS.len() + NO_DIGITS.len();
/// Maximum length of a header, as in the safetensors crate.
const MAX_HEADER: u64 = 100_000_000;
/// Values are converted, hashed and written in chunks of this many elements.
const CHUNK: usize = 64 * 1024;

/// The contents of a file: metadata, tensors as bytes, and sets of f32 weights, each with a prefix for its
/// names.
pub(crate) struct Contents<'a> {
    pub(crate) metadata: Metadata,
    pub(crate) tensors: Vec<StoredTensor<'a>>,
    pub(crate) sets: Vec<(&'static str, &'a Weights)>,
    pub(crate) checksum: Checksum,
}

/// A tensor in its stored form.
pub(crate) struct StoredTensor<'a> {
    pub(crate) name: String,
    pub(crate) dtype: Dtype,
    pub(crate) shape: Vec<usize>,
    pub(crate) bytes: Cow<'a, [u8]>,
}

/// Where the checksum is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checksum {
    /// In the last tensor.
    Last,
    /// In the first metadata value.
    First,
}

/// Why the bytes of a file cannot be read as weights.
#[derive(Debug, thiserror::Error)]
pub enum WeightsFileError {
    /// The bytes are not in the safetensors format.
    #[error("it is truncated or not a safetensors file ({0})")]
    Format(#[from] SafeTensorError),
    /// The bytes differ from those that were written.
    #[error("its checksum does not match: bytes were changed or lost after it was written")]
    Checksum,
    /// The file has no checksum.
    #[error("it has no checksum")]
    NoChecksum,
    /// A tensor is not a matrix of a supported type.
    #[error(
        "`{name}` has the type {found} and {axes} axes, not f32 or bf16 and two: save the weights as such matrices"
    )]
    NotMatrix {
        /// The tensor.
        name: String,
        /// Its type.
        found: Dtype,
        /// Its rank.
        axes: usize,
    },
}

impl crate::error::Cause for WeightsFileError {}

impl Contents<'_> {
    /// The approximate number of bytes that [`Contents::write`] writes.
    pub(crate) fn bytes(&self) -> u64 {
        let values: usize =
            self.sets.iter().flat_map(|(_, weights)| weights.iter()).map(|(.., values)| values.len()).sum();
        let metadata: usize = self.metadata.values().map(String::len).sum();
        let tensors: usize = self.tensors.iter().map(|tensor| tensor.bytes.len()).sum();
        (tensors + values * 4 + metadata) as u64
    }

    /// Writes the file.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut header = self.header();
        match self.checksum {
            Checksum::Last => {
                let mut out = HashingWriter { out, hash: XxHash3_64::new() };
                out.write_all(&header)?;
                self.write_values(&mut out)?;
                out.out.write_all(&out.hash.finish().to_le_bytes())
            }
            Checksum::First => {
                let mut hashed = HashingWriter { out: &mut io::sink(), hash: XxHash3_64::new() };
                hashed.write_all(&header)?;
                self.write_values(&mut hashed)?;
                header[DIGITS].copy_from_slice(digits(&hashed.hash).as_bytes());
                out.write_all(&header)?;
                self.write_values(out)
            }
        }
    }

    fn write_values(&self, out: &mut dyn Write) -> io::Result<()> {
        for tensor in &self.tensors {
            out.write_all(&tensor.bytes)?;
        }
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
        Ok(())
    }

    fn header(&self) -> Vec<u8> {
        let mut tensors = Vec::new();
        let mut end = 0;
        let mut allocate = |bytes: usize| {
            let start = end;
            end += bytes;
            (start, end)
        };
        for StoredTensor { name, dtype, shape, bytes } in &self.tensors {
            let data_offsets = allocate(bytes.len());
            tensors.push((name.clone(), TensorInfo { dtype: *dtype, shape: shape.clone(), data_offsets }));
        }
        for (prefix, weights) in &self.sets {
            for (name, shape, values) in weights.iter() {
                let data_offsets = allocate(4 * values.len());
                let info = TensorInfo { dtype: Dtype::F32, shape: shape.to_vec(), data_offsets };
                tensors.push((format!("{prefix}{name}"), info));
            }
        }
        match self.checksum {
            Checksum::Last => {
                let data_offsets = allocate(CHECKSUM_BYTES);
                let info = TensorInfo { dtype: Dtype::U8, shape: vec![CHECKSUM_BYTES], data_offsets };
                tensors.push((CHECKSUM.to_owned(), info));
                header(&self.metadata, &tensors)
            }
            Checksum::First => {
                let mut metadata = self.metadata.clone();
                metadata.insert(CHECKSUM.to_owned(), String::from_utf8_lossy(NO_DIGITS).into_owned());
                let header = header(&metadata, &tensors);
                assert!(
                    header[8..].starts_with(BEFORE_DIGITS),
                    "a key of the metadata sorts before `{CHECKSUM}`"
                );
                header
            }
        }
    }
}

/// A file whose header has been parsed.
pub(crate) struct WeightsFile<'a> {
    tensors: SafeTensors<'a>,
    /// In file order.
    names: Vec<String>,
    metadata: HashMap<String, String>,
}

impl<'a> WeightsFile<'a> {
    /// Verifies the checksum and parses the header.
    pub(crate) fn new(bytes: &'a [u8], checksum: Checksum) -> Result<WeightsFile<'a>, WeightsFileError> {
        let opened = WeightsFile::unverified(bytes)?;
        match checksum {
            Checksum::Last if opened.names.last().is_none_or(|name| name != CHECKSUM) => {
                return Err(WeightsFileError::Checksum);
            }
            Checksum::Last => verify_last(bytes)?,
            Checksum::First => verify_first(bytes)?,
        }
        Ok(opened)
    }

    /// Parses the header without verifying the checksum.
    pub(crate) fn unverified(bytes: &'a [u8]) -> Result<WeightsFile<'a>, WeightsFileError> {
        let (_, header) = SafeTensors::read_metadata(bytes)?;
        let metadata = header.metadata().clone().unwrap_or_default();
        Ok(WeightsFile { tensors: SafeTensors::deserialize(bytes)?, names: header.offset_keys(), metadata })
    }

    /// The value of a metadata key.
    pub(crate) fn metadata(&self, key: &str) -> Option<&str> {
        self.metadata.get(key).map(String::as_str)
    }

    /// All metadata.
    pub(crate) fn all_metadata(&self) -> Metadata {
        self.metadata.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// The names of the tensors in file order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str).filter(|name| *name != CHECKSUM)
    }

    pub(super) fn tensor(&self, name: &str) -> Result<TensorView<'_>, WeightsFileError> {
        Ok(self.tensors.tensor(name)?)
    }

    /// A tensor in its stored form, for copying to another file.
    pub(crate) fn stored(&self, name: &str) -> Result<StoredTensor<'a>, WeightsFileError> {
        let tensor = self.tensors.tensor(name)?;
        let (dtype, shape) = (tensor.dtype(), tensor.shape().to_vec());
        Ok(StoredTensor { name: name.to_owned(), dtype, shape, bytes: Cow::Borrowed(tensor.data()) })
    }

    /// The matrices whose names begin with `prefix`, with the prefix removed; `None` if there are none.
    pub(crate) fn weights(&self, prefix: &str) -> Result<Option<Weights>, WeightsFileError> {
        let mut matrices = Vec::new();
        let mut values = Vec::new();
        for name in &self.names {
            let Some(short) = name.strip_prefix(prefix).filter(|_| name != CHECKSUM) else { continue };
            if self.is_scales(name) {
                continue;
            }
            let stored = self.matrix(name)?;
            matrices.push((short.to_owned(), stored.shape()));
            stored.append_to(&mut values);
        }
        Ok((!matrices.is_empty()).then(|| Weights::from_matrices(matrices.into_iter(), values)))
    }
}

/// The metadata of a file, read from its header without verification.
pub(crate) fn read_metadata(path: &Path) -> io::Result<Metadata> {
    metadata_of(File::open(path)?)
}

/// As [`read_metadata`], from the beginning of a file.
pub(crate) fn metadata_of(mut file: impl Read) -> io::Result<Metadata> {
    #[derive(Deserialize)]
    struct Header {
        #[serde(rename = "__metadata__", default)]
        metadata: Metadata,
    }
    let mut length = [0; 8];
    file.read_exact(&mut length)?;
    let mut header = Vec::new();
    file.take(u64::from_le_bytes(length).min(MAX_HEADER)).read_to_end(&mut header)?;
    Ok(serde_json::from_slice::<Header>(&header)?.metadata)
}

fn verify_last(bytes: &[u8]) -> Result<(), WeightsFileError> {
    match bytes.split_last_chunk::<CHECKSUM_BYTES>() {
        Some((hashed, found)) if XxHash3_64::oneshot(hashed) == u64::from_le_bytes(*found) => Ok(()),
        _ => Err(WeightsFileError::Checksum),
    }
}

fn verify_first(bytes: &[u8]) -> Result<(), WeightsFileError> {
    let digits_of_file = bytes.get(DIGITS).filter(|_| bytes[8..].starts_with(BEFORE_DIGITS));
    let found = digits_of_file.ok_or(WeightsFileError::NoChecksum)?;
    let mut hash = XxHash3_64::new();
    hash.write(&bytes[..DIGITS.start]);
    hash.write(NO_DIGITS);
    hash.write(&bytes[DIGITS.end..]);
    if digits(&hash).as_bytes() == found { Ok(()) } else { Err(WeightsFileError::Checksum) }
}

fn digits(hash: &XxHash3_64) -> String {
    format!("{:016x}", hash.finish())
}

/// A writer that hashes what it writes.
struct HashingWriter<'a> {
    out: &'a mut dyn Write,
    hash: XxHash3_64,
}

impl Write for HashingWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hash.write(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
