//! Opening a file, whatever it is packed in.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;

use super::error::CorpusError;
use super::zstd::ZstdFrames;

const BUFFER: usize = 1 << 16;

/// Where text comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A file, plain or compressed.
    File(PathBuf),
    /// Standard input, plain or compressed.
    Standard,
}

impl Input {
    /// `-` is standard input, everything else a path.
    pub fn new(name: impl AsRef<Path>) -> Input {
        match name.as_ref() {
            name if name == Path::new("-") => Input::Standard,
            path => Input::File(path.to_owned()),
        }
    }

    /// The bytes as they lie on disk.
    pub(crate) fn open_raw(&self) -> Result<Box<dyn BufRead + Send>, CorpusError> {
        match self {
            Input::File(path) => {
                let file =
                    File::open(path).and_then(refuse_folder).map_err(|error| self.unreadable(error))?;
                Ok(Box::new(BufReader::with_capacity(BUFFER, file)))
            }
            Input::Standard => Ok(Box::new(BufReader::with_capacity(BUFFER, io::stdin()))),
        }
    }

    /// The text. Whether and how it is compressed is seen from its first bytes, not from its name.
    pub(super) fn open(&self) -> Result<(Box<dyn BufRead + Send>, Packing), CorpusError> {
        let raw = self.open_raw()?;
        let (raw, start) = peek(raw).map_err(|error| self.unreadable(error))?;
        let packing = Packing::of(&start);
        let text: Box<dyn BufRead + Send> = match packing {
            Packing::Plain => raw,
            Packing::Gzip => Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(raw))),
            Packing::Xz => Box::new(BufReader::with_capacity(BUFFER, XzReader::new(raw, true))),
            Packing::Zstd => Box::new(BufReader::with_capacity(BUFFER, ZstdFrames::new(raw))),
        };
        Ok((text, packing))
    }

    pub(super) fn unreadable(&self, error: io::Error) -> CorpusError {
        CorpusError::Read { file: self.to_string(), error }
    }
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Input::File(path) => write!(f, "{}", path.display()),
            Input::Standard => write!(f, "standard input"),
        }
    }
}

/// Opening a folder works on Unix; only reading it fails, and then without its name.
fn refuse_folder(file: File) -> io::Result<File> {
    if file.metadata()?.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder, not a file"));
    }
    Ok(file)
}

/// The first bytes, and a reader that still has them. A pipe may give fewer bytes at once than were asked for.
fn peek(mut raw: Box<dyn BufRead + Send>) -> io::Result<(Box<dyn BufRead + Send>, Vec<u8>)> {
    let mut start = Vec::with_capacity(Packing::LONGEST_MAGIC);
    raw.by_ref().take(Packing::LONGEST_MAGIC as u64).read_to_end(&mut start)?;
    let whole = io::Cursor::new(start.clone()).chain(raw);
    Ok((Box::new(whole), start))
}

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    Plain,
    Gzip,
    Xz,
    Zstd,
}

impl Packing {
    const LONGEST_MAGIC: usize = 6;

    fn of(start: &[u8]) -> Packing {
        match start {
            [0x1F, 0x8B, ..] => Packing::Gzip,
            [0xFD, b'7', b'z', b'X', b'Z', 0, ..] => Packing::Xz,
            // A frame, or a skippable frame (zstd's parallel form begins with one).
            [0x28, 0xB5, 0x2F, 0xFD, ..] | [0x50..=0x5F, 0x2A, 0x4D, 0x18, ..] => Packing::Zstd,
            _ => Packing::Plain,
        }
    }

    pub(super) fn name(self) -> Option<&'static str> {
        match self {
            Packing::Plain => None,
            Packing::Gzip => Some("gzip"),
            Packing::Xz => Some("xz"),
            Packing::Zstd => Some("zstd"),
        }
    }
}
