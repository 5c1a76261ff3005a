//! The lines of one file.

use std::io::{self, BufRead, Read};

use super::error::CorpusError;
use super::input::{Input, Packing};

const BYTE_ORDER_MARK: &[u8] = "\u{FEFF}".as_bytes();

/// The most bytes of a line, unless [`Lines::bounded`] says otherwise. A corpus may be one line, but no more than this is kept
/// in memory for it.
const LONGEST_LINE: usize = 1 << 30;

/// What becomes of a line that has more bytes than it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LongLines {
    /// An error; the rest of the line is not read.
    Refused,
    /// Its beginning is the line.
    Cut,
}

/// Reads the lines of one input and counts them. All lines share one buffer.
pub struct Lines {
    input: Input,
    packing: Packing,
    reader: Box<dyn BufRead + Send>,
    buffer: Vec<u8>,
    /// Lines that were read.
    count: u64,
    most_bytes: usize,
    long: LongLines,
    was_cut: bool,
    /// Whether the rest of a line that was cut is still to be skipped.
    has_rest: bool,
}

impl Lines {
    /// Opens a file, compressed or not.
    pub fn open(input: &Input) -> Result<Lines, CorpusError> {
        let (reader, packing) = input.open()?;
        Ok(Lines {
            input: input.clone(),
            packing,
            reader,
            buffer: Vec::new(),
            count: 0,
            most_bytes: LONGEST_LINE,
            long: LongLines::Refused,
            was_cut: false,
            has_rest: false,
        })
    }

    /// The same with another limit of a line's bytes.
    pub fn bounded(self, most_bytes: usize, long: LongLines) -> Lines {
        Lines { most_bytes: most_bytes.min(LONGEST_LINE), long, ..self }
    }

    /// The next line without its end; `None` at the end of the file.
    #[allow(clippy::should_implement_trait)] // It lends its buffer, which an iterator cannot.
    pub fn next(&mut self) -> Result<Option<&str>, CorpusError> {
        if !self.advance()? {
            return Ok(None);
        }
        let line = self.text();
        match std::str::from_utf8(line) {
            Ok(line) => Ok(Some(line)),
            // Cut in the middle of a character.
            Err(error) if self.was_cut && error.error_len().is_none() => {
                Ok(std::str::from_utf8(&line[..error.valid_up_to()]).ok())
            }
            Err(error) => Err(CorpusError::NotUtf8 {
                file: self.input.to_string(),
                line: self.number(),
                byte: error.valid_up_to() + 1,
            }),
        }
    }

    /// The number of the line that was read last, counted from 1. Before that of a range, the beginning of its file is read.
    pub fn number(&self) -> u64 {
        self.count
    }

    /// Where the lines come from.
    pub fn input(&self) -> &Input {
        &self.input
    }

    /// Reads to the end of the file and counts the remaining lines.
    pub(super) fn count_rest(&mut self) -> Result<u64, CorpusError> {
        while self.advance()? {}
        Ok(self.number())
    }

    /// Reads one line into the buffer, its end included; the beginning of a line that is too long.
    fn advance(&mut self) -> Result<bool, CorpusError> {
        // Not when the line was cut: whoever refuses such a line need not wait for its end.
        if std::mem::take(&mut self.has_rest) {
            self.reader.skip_until(b'\n').map_err(|error| self.read_error(error))?;
        }
        self.buffer.clear();
        let (most, around) = (self.most_bytes, BYTE_ORDER_MARK.len() + b"\r\n".len());
        let mut reader = self.reader.by_ref().take((most + around) as u64);
        let count = reader.read_until(b'\n', &mut self.buffer).map_err(|error| self.read_error(error))?;
        self.count += u64::from(count > 0);
        self.was_cut = self.text().len() > most;
        if self.was_cut {
            if self.long == LongLines::Refused {
                return Err(CorpusError::LongLine {
                    file: self.input.to_string(),
                    line: self.number(),
                    most,
                });
            }
            self.has_rest = self.buffer.last() != Some(&b'\n');
            self.buffer.truncate(most);
        }
        Ok(count > 0)
    }

    /// The line in the buffer without its end.
    fn text(&self) -> &[u8] {
        let line = match self.buffer.as_slice() {
            [text @ .., b'\r', b'\n'] | [text @ .., b'\n'] | text => text,
        };
        match line.strip_prefix(BYTE_ORDER_MARK) {
            Some(text) if self.count == 1 => text,
            _ => line,
        }
    }

    fn read_error(&self, error: io::Error) -> CorpusError {
        match self.packing.name() {
            None => self.input.unreadable(error),
            Some(format) => CorpusError::Damaged { file: self.input.to_string(), format, error },
        }
    }
}
