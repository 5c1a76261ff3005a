//! The binary format of the file: blocks and the footer.

use std::io::{self, Read, Seek, SeekFrom, Write};

use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

use super::varint;
use super::{EncodedPair, Fingerprint};
use crate::data::corpus::CorpusReport;

const MAGIC: &[u8; 8] = b"HEEDIDS\x01";
/// Footer length, footer checksum, magic.
const TAIL: u64 = 24;

/// Maximum number of pairs of a block. Small, because blocks are shuffled as units.
const BLOCK_PAIRS: u32 = 1024;
/// Or at this many tokens, whichever comes first: a block of very long lines is no larger than one of short
/// lines.
const BLOCK_TOKENS: u64 = 1 << 17;

/// Offset, size and checksum of a block.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct BlockEntry {
    pub(super) offset: u64,
    pub(super) bytes: u64,
    pub(super) pairs: u32,
    pub(super) checksum: u64,
}

/// Why a footer cannot be read.
pub(super) enum FooterError {
    /// The system's error.
    Read(io::Error),
    /// Description of the damage.
    Damaged(String),
}

impl From<io::Error> for FooterError {
    fn from(error: io::Error) -> FooterError {
        FooterError::Read(error)
    }
}

/// The footer after the blocks.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Footer {
    pub(super) fingerprint: Fingerprint,
    pub(super) report: CorpusReport,
    pub(super) blocks: Vec<BlockEntry>,
}

impl Footer {
    /// Reads the footer of a file.
    pub(super) fn read(file: &mut (impl Read + Seek), length: u64) -> Result<Footer, FooterError> {
        let damaged = |reason: &str| Err(FooterError::Damaged(reason.to_owned()));
        let magic = MAGIC.len() as u64;
        if length < magic + TAIL {
            return damaged("it is too short");
        }
        let mut start = [0; MAGIC.len()];
        file.seek(SeekFrom::Start(0))?;
        file.read_exact(&mut start)?;
        let mut tail = [0; TAIL as usize];
        file.seek(SeekFrom::Start(length - TAIL))?;
        file.read_exact(&mut tail)?;
        let number = |at: usize| u64::from_le_bytes(tail[at..at + 8].try_into().expect("eight bytes"));
        if start != *MAGIC || tail[16..] != *MAGIC {
            return damaged("it is cut off, or not a file of token ids");
        }
        let (json_length, checksum) = (number(0), number(8));
        let Some(json_start) = (length - TAIL).checked_sub(json_length).filter(|&start| start >= magic)
        else {
            return damaged("its footer is longer than the file");
        };
        let mut json = vec![0; json_length as usize];
        file.seek(SeekFrom::Start(json_start))?;
        file.read_exact(&mut json)?;
        if XxHash3_64::oneshot(&json) != checksum {
            return damaged("the checksum of its footer does not match");
        }
        let footer: Footer =
            serde_json::from_slice(&json).map_err(|error| FooterError::Damaged(error.to_string()))?;
        // Checked because `read_block` allocates the size of a block before reading it.
        let blocks = magic..json_start + 1;
        let is_inside = |block: &BlockEntry| {
            let end = block.offset.checked_add(block.bytes);
            blocks.contains(&block.offset) && end.is_some_and(|end| blocks.contains(&end))
        };
        if !footer.blocks.iter().all(is_inside) {
            return damaged("its footer names a block that is not in the file");
        }
        Ok(footer)
    }
}

/// Writes blocks and finally the footer.
pub(super) struct Writer<W> {
    file: W,
    offset: u64,
    block: Vec<u8>,
    pairs: u32,
    tokens: u64,
    blocks: Vec<BlockEntry>,
}

impl<W: Write> Writer<W> {
    pub(super) fn new(mut file: W) -> io::Result<Writer<W>> {
        file.write_all(MAGIC)?;
        Ok(Writer {
            file,
            offset: MAGIC.len() as u64,
            block: Vec::new(),
            pairs: 0,
            tokens: 0,
            blocks: Vec::new(),
        })
    }

    pub(super) fn add(&mut self, (source, target): &EncodedPair) -> io::Result<()> {
        for length in [source.len(), target.len()] {
            let length =
                u32::try_from(length).map_err(|_| io::Error::other("a line has over 4 billion tokens"))?;
            varint::write(length, &mut self.block);
        }
        for &id in source.iter().chain(target) {
            varint::write(id, &mut self.block);
        }
        self.pairs += 1;
        self.tokens += (source.len() + target.len()) as u64;
        if self.pairs == BLOCK_PAIRS || self.tokens >= BLOCK_TOKENS {
            self.close_block()?;
        }
        Ok(())
    }

    pub(super) fn finish(mut self, fingerprint: Fingerprint, report: CorpusReport) -> io::Result<()> {
        if self.pairs > 0 {
            self.close_block()?;
        }
        let json = serde_json::to_vec(&Footer { fingerprint, report, blocks: self.blocks })?;
        self.file.write_all(&json)?;
        self.file.write_all(&(json.len() as u64).to_le_bytes())?;
        self.file.write_all(&XxHash3_64::oneshot(&json).to_le_bytes())?;
        self.file.write_all(MAGIC)
    }

    fn close_block(&mut self) -> io::Result<()> {
        self.file.write_all(&self.block)?;
        let bytes = self.block.len() as u64;
        let checksum = XxHash3_64::oneshot(&self.block);
        self.blocks.push(BlockEntry { offset: self.offset, bytes, pairs: self.pairs, checksum });
        self.offset += bytes;
        self.block.clear();
        (self.pairs, self.tokens) = (0, 0);
        Ok(())
    }
}

/// The pairs of a block; `None` if its bytes do not hold exactly that many.
pub(super) fn decode_block(mut bytes: &[u8], pairs: u32) -> Option<Vec<EncodedPair>> {
    // The lengths of a pair take at least two bytes: a damaged number never allocates more than the block
    // can hold.
    let mut decoded = Vec::with_capacity((pairs as usize).min(bytes.len() / 2));
    for _ in 0..pairs {
        let lengths = [varint::read(&mut bytes)? as usize, varint::read(&mut bytes)? as usize];
        // A token takes at least one byte, so a damaged length never allocates more than the block can hold.
        if lengths[0].checked_add(lengths[1])? > bytes.len() {
            return None;
        }
        let [source, target] =
            lengths.map(|length| (0..length).map(|_| varint::read(&mut bytes)).collect::<Option<Vec<u32>>>());
        decoded.push((source?, target?));
    }
    bytes.is_empty().then_some(decoded)
}
