//! A corpus as token ids in one file, written once and then read block by block, so that it need not fit into
//! memory.
//!
//! ```text
//! magic, version
//! block …             pairs: source length, target length, source ids, target ids; all integers in LEB128
//! footer, as JSON     offset, size and checksum of each block, the fingerprint, the report
//! footer length, footer checksum, magic
//! ```

mod build;
mod error;
mod examples;
mod fingerprint;
mod format;
mod varint;

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

pub use self::error::EncodedError;
pub(crate) use self::examples::ExampleKind;
pub use self::examples::Examples;
pub use self::fingerprint::Fingerprint;

use self::format::{BlockEntry, Footer, FooterError};
use super::corpus::CorpusReport;

/// The ids of a source and of a target.
pub(crate) type EncodedPair = (Vec<u32>, Vec<u32>);

/// An open file of token ids.
#[derive(Debug)]
pub struct EncodedCorpus {
    path: PathBuf,
    file: Mutex<File>,
    footer: Footer,
}

impl EncodedCorpus {
    /// Opens a file that [`EncodedCorpus::build`] wrote. Damage is detected here or when the damaged block
    /// is read.
    pub fn open(path: &Path) -> Result<EncodedCorpus, EncodedError> {
        let read_error = |error| EncodedError::Read { file: path.display().to_string(), error };
        let mut file = File::open(path).map_err(read_error)?;
        let length = file.seek(SeekFrom::End(0)).map_err(read_error)?;
        let footer = Footer::read(&mut BufReader::new(&mut file), length).map_err(|error| match error {
            FooterError::Read(error) => read_error(error),
            FooterError::Damaged(reason) => {
                EncodedError::Damaged { file: path.display().to_string(), reason }
            }
        })?;
        Ok(EncodedCorpus { path: path.to_owned(), file: Mutex::new(file), footer })
    }

    /// How many pairs were read, kept and filtered when the file was built.
    pub fn report(&self) -> &CorpusReport {
        &self.footer.report
    }

    /// The fingerprint of the inputs that the file was built from.
    pub fn fingerprint(&self) -> Fingerprint {
        self.footer.fingerprint
    }

    /// The number of pairs.
    pub fn pairs(&self) -> u64 {
        self.footer.report.kept
    }

    /// The number of blocks.
    pub fn blocks(&self) -> usize {
        self.footer.blocks.len()
    }

    /// Reads one block.
    ///
    /// # Panics
    /// If there is no such block.
    pub fn read_block(&self, block: usize) -> Result<Vec<EncodedPair>, EncodedError> {
        let entry = &self.footer.blocks[block];
        let bytes = self.read_bytes(entry)?;
        let damaged = |reason: &str| EncodedError::Damaged { file: self.name(), reason: reason.to_owned() };
        if twox_hash::XxHash3_64::oneshot(&bytes) != entry.checksum {
            return Err(damaged("the checksum of a block does not match"));
        }
        format::decode_block(&bytes, entry.pairs).ok_or_else(|| damaged("a block ends too early"))
    }

    fn read_bytes(&self, entry: &BlockEntry) -> Result<Vec<u8>, EncodedError> {
        let read_error = |error| EncodedError::Read { file: self.name(), error };
        let mut bytes = vec![0; entry.bytes as usize];
        let mut file = self.file.lock().expect("no thread panics while it reads");
        file.seek(SeekFrom::Start(entry.offset)).map_err(read_error)?;
        file.read_exact(&mut bytes).map_err(read_error)?;
        Ok(bytes)
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }
}

#[cfg(test)]
mod tests;
