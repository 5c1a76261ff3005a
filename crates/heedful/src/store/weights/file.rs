//! Weights as a safetensors file.
//!
//! ```text
//! length of the header (8 bytes) · header (JSON: metadata, names, shapes, offsets) · numbers
//! ```
//!
//! Every file has a checksum, the XXH3 of its bytes, where every reader of the format opens the file. A checkpoint ends
//! with it, as its last tensor (`checksum`), and is written in one pass. A model has it as the first value of its metadata,
//! so that its tensors are its parameters and nothing else; it counts with zeros for its own digits.

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
/// What a file begins with, after the length of its header, if the metadata has its checksum: no key sorts before it.
const BEFORE_DIGITS: &[u8] = br#"{"__metadata__":{"checksum":""#;
const NO_DIGITS: &[u8; 16] = b"0000000000000000";
/// The digits of the checksum in the file.
const DIGITS: Range<usize> = 8 + BEFORE_DIGITS.len()..8 + BEFORE_DIGITS.len() + NO_DIGITS.len();
/// No header is longer; the safetensors format has the same limit.
const LONGEST_HEADER: u64 = 100_000_000;
/// Numbers are converted, hashed and written in chunks of this size.
const CHUNK: usize = 64 * 1024;

/// What a file holds: metadata, tensors as bytes, and sets of f32 weights, each with a prefix for its names.
pub(crate) struct Contents<'a> {
    pub(crate) metadata: Metadata,
    pub(crate) tensors: Vec<StoredTensor<'a>>,
    pub(crate) sets: Vec<(&'static str, &'a Weights)>,
    pub(crate) checksum: Checksum,
}

/// A tensor in a file's own bytes.
pub(crate) struct StoredTensor<'a> {
    pub(crate) name: String,
    pub(crate) dtype: Dtype,
    pub(crate) shape: Vec<usize>,
    pub(crate) bytes: Cow<'a, [u8]>,
}

/// Where a file has its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checksum {
    /// It is the last tensor.
    Last,
    /// It is the first value of the metadata.
    First,
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
    /// The file has no checksum.
    #[error("it has no checksum")]
    NoChecksum,
    /// A tensor is no matrix of a known type.
    #[error(
        "`{name}` has the type {found} and {axes} axes, not f32 or bf16 and two: save the weights as such matrices"
    )]
    NotMatrix {
        /// The tensor.
        name: String,
        /// Its type.
        found: Dtype,
        /// How many axes it has.
        axes: usize,
    },
}

impl crate::error::Cause for WeightsFileError {}

impl Contents<'_> {
    /// About how many bytes [`Contents::write`] writes.
    pub(crate) fn bytes(&self) -> u64 {
        let numbers: usize =
            self.sets.iter().flat_map(|(_, weights)| weights.iter()).map(|(.., values)| values.len()).sum();
        let metadata: usize = self.metadata.values().map(String::len).sum();
        let tensors: usize = self.tensors.iter().map(|tensor| tensor.bytes.len()).sum();
        (tensors + numbers * 4 + metadata) as u64
    }

    /// Writes the file.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut header = self.header();
        match self.checksum {
            Checksum::Last => {
                let mut out = Hashed { out, hash: XxHash3_64::new() };
                out.write_all(&header)?;
                self.write_numbers(&mut out)?;
                out.out.write_all(&out.hash.finish().to_le_bytes())
            }
            Checksum::First => {
                let mut hashed = Hashed { out: &mut io::sink(), hash: XxHash3_64::new() };
                hashed.write_all(&header)?;
                self.write_numbers(&mut hashed)?;
                header[DIGITS].copy_from_slice(digits(&hashed.hash).as_bytes());
                out.write_all(&header)?;
                self.write_numbers(out)
            }
        }
    }

    fn write_numbers(&self, out: &mut dyn Write) -> io::Result<()> {
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
pub(crate) struct Opened<'a> {
    tensors: SafeTensors<'a>,
    /// In the order of the file.
    names: Vec<String>,
    metadata: HashMap<String, String>,
}

impl<'a> Opened<'a> {
    /// Verifies that every byte is as it was written, and parses the header.
    pub(crate) fn new(bytes: &'a [u8], checksum: Checksum) -> Result<Opened<'a>, WeightsFileError> {
        let opened = Opened::unverified(bytes)?;
        match checksum {
            Checksum::Last if opened.names.last().is_none_or(|name| name != CHECKSUM) => {
                return Err(WeightsFileError::Checksum);
            }
            Checksum::Last => verify_last(bytes)?,
            Checksum::First => verify_first(bytes)?,
        }
        Ok(opened)
    }

    /// Parses the header of a file whose bytes may be anyone's.
    pub(crate) fn unverified(bytes: &'a [u8]) -> Result<Opened<'a>, WeightsFileError> {
        let (_, header) = SafeTensors::read_metadata(bytes)?;
        let metadata = header.metadata().clone().unwrap_or_default();
        Ok(Opened { tensors: SafeTensors::deserialize(bytes)?, names: header.offset_keys(), metadata })
    }

    /// The value of a metadata key.
    pub(crate) fn metadata(&self, key: &str) -> Option<&str> {
        self.metadata.get(key).map(String::as_str)
    }

    /// All metadata.
    pub(crate) fn all_metadata(&self) -> Metadata {
        self.metadata.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// The tensors' names, in the order of the file.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str).filter(|name| *name != CHECKSUM)
    }

    pub(super) fn tensor(&self, name: &str) -> Result<TensorView<'_>, WeightsFileError> {
        Ok(self.tensors.tensor(name)?)
    }

    /// A tensor as it is in the file, for another file.
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
            if self.is_part_of_another(name) {
                continue;
            }
            let stored = self.matrix(name)?;
            matrices.push((short.to_owned(), stored.shape()));
            stored.append_to(&mut values);
        }
        Ok((!matrices.is_empty()).then(|| Weights::from_matrices(matrices.into_iter(), values)))
    }
}

/// The metadata of a file, from its header alone: nothing is verified.
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
    file.take(u64::from_le_bytes(length).min(LONGEST_HEADER)).read_to_end(&mut header)?;
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
