//! Opening text files, plain or compressed.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;

use super::error::CorpusError;
use super::zstd::ZstdFrames;

const BUFFER: usize = 1 << 16;

/// A source of text.
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

    /// The named file, or standard input for `None`.
    pub fn of(name: Option<&Path>) -> Input {
        name.map_or(Input::Standard, Input::new)
    }

    /// An input for each name.
    pub fn list(names: &[PathBuf]) -> Vec<Input> {
        names.iter().map(Input::new).collect()
    }

    /// The raw bytes, not decompressed.
    pub(crate) fn open_raw(&self) -> Result<Box<dyn BufRead + Send>, CorpusError> {
        match self {
            Input::File(path) => {
                let file =
                    File::open(path).and_then(reject_folder).map_err(|error| self.unreadable(error))?;
                Ok(Box::new(BufReader::with_capacity(BUFFER, file)))
            }
            Input::Standard => Ok(Box::new(BufReader::with_capacity(BUFFER, io::stdin()))),
        }
    }

    /// The decompressed text. The compression is detected from the first bytes, not from the name.
    pub(super) fn open(&self) -> Result<(Box<dyn BufRead + Send>, Compression), CorpusError> {
        let raw = self.open_raw()?;
        let (raw, compression) = peek(raw).map_err(|error| self.unreadable(error))?;
        let text: Box<dyn BufRead + Send> = match compression {
            Compression::Plain => raw,
            Compression::Gzip => Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(raw))),
            Compression::Xz => Box::new(BufReader::with_capacity(BUFFER, XzReader::new(raw, true))),
            Compression::Zstd => Box::new(BufReader::with_capacity(BUFFER, ZstdFrames::new(raw))),
        };
        Ok((text, compression))
    }

    /// The name of the input and a line number counted from 1, for messages.
    pub fn location(&self, line: u64) -> String {
        format!("{self}, line {line}")
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

/// On Unix, opening a folder succeeds and only reading it fails, with an error that lacks its name.
fn reject_folder(file: File) -> io::Result<File> {
    if file.metadata()?.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder, not a file"));
    }
    Ok(file)
}

/// Detects the compression, and returns a reader that still has the first bytes. Reads no more bytes than
/// necessary: at a terminal, every line must be processed before the next one is typed.
fn peek(mut raw: Box<dyn BufRead + Send>) -> io::Result<(Box<dyn BufRead + Send>, Compression)> {
    let mut start = Vec::new();
    while Compression::may_begin_with(&start) {
        let before = start.len();
        raw.by_ref().take(1).read_to_end(&mut start)?;
        if start.len() == before {
            break;
        }
    }
    let compression = Compression::of(&start);
    Ok((Box::new(io::Cursor::new(start).chain(raw)), compression))
}

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compression {
    Plain,
    Gzip,
    Xz,
    Zstd,
}

/// Magic bytes of each format. zstd files begin with a frame, or with one of 16 kinds of skippable frames of
/// other tools.
const MAGIC: [(Compression, &[RangeInclusive<u8>]); 4] = [
    (Compression::Gzip, &[0x1F..=0x1F, 0x8B..=0x8B]),
    (Compression::Xz, &[0xFD..=0xFD, 0x37..=0x37, 0x7A..=0x7A, 0x58..=0x58, 0x5A..=0x5A, 0..=0]),
    (Compression::Zstd, &[0x28..=0x28, 0xB5..=0xB5, 0x2F..=0x2F, 0xFD..=0xFD]),
    (Compression::Zstd, &[0x50..=0x5F, 0x2A..=0x2A, 0x4D..=0x4D, 0x18..=0x18]),
];

impl Compression {
    /// Whether one more byte could show that the file is compressed.
    fn may_begin_with(start: &[u8]) -> bool {
        MAGIC.iter().any(|(_, magic)| start.len() < magic.len() && matches_magic(start, magic))
    }

    fn of(start: &[u8]) -> Compression {
        let found = MAGIC.iter().find(|(_, magic)| start.len() == magic.len() && matches_magic(start, magic));
        found.map_or(Compression::Plain, |(compression, _)| *compression)
    }

    pub(super) fn name(self) -> Option<&'static str> {
        match self {
            Compression::Plain => None,
            Compression::Gzip => Some("gzip"),
            Compression::Xz => Some("xz"),
            Compression::Zstd => Some("zstd"),
        }
    }
}

fn matches_magic(start: &[u8], magic: &[RangeInclusive<u8>]) -> bool {
    start.iter().zip(magic).all(|(byte, range)| range.contains(byte))
}
