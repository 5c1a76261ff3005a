//! The lines of one file.

use std::io::{self, BufRead, Read};

use super::error::CorpusError;
use super::input::{Compression, Input};

const BYTE_ORDER_MARK: &[u8] = "\u{FEFF}".as_bytes();

/// Default maximum number of bytes of a line; see [`Lines::bounded`]. It bounds the memory for a file that is
/// a single line.
const MAX_LINE_BYTES: usize = 1 << 30;

/// How lines over the byte limit are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LongLines {
    /// They are an error; the rest of the line is not read.
    Refused,
    /// They are truncated.
    Cut,
}

/// Reads the lines of one input and counts them. All lines share one buffer.
pub struct Lines {
    input: Input,
    compression: Compression,
    reader: Box<dyn BufRead + Send>,
    buffer: Vec<u8>,
    /// Number of lines read.
    count: u64,
    max_bytes: usize,
    long: LongLines,
    was_cut: bool,
    /// Whether the rest of a truncated line must still be skipped.
    has_rest: bool,
}

impl Lines {
    /// Opens a file, compressed or not.
    pub fn open(input: &Input) -> Result<Lines, CorpusError> {
        let (reader, compression) = input.open()?;
        Ok(Lines {
            input: input.clone(),
            compression,
            reader,
            buffer: Vec::new(),
            count: 0,
            max_bytes: MAX_LINE_BYTES,
            long: LongLines::Refused,
            was_cut: false,
            has_rest: false,
        })
    }

    /// The same with another maximum number of bytes of a line.
    pub fn bounded(self, max_bytes: usize, long: LongLines) -> Lines {
        Lines { max_bytes: max_bytes.min(MAX_LINE_BYTES), long, ..self }
    }

    /// The next line without its end; `None` at the end of the file.
    #[allow(clippy::should_implement_trait)] // It lends its buffer, which `Iterator` cannot.
    pub fn next(&mut self) -> Result<Option<&str>, CorpusError> {
        if !self.advance()? {
            return Ok(None);
        }
        let line = self.text();
        match std::str::from_utf8(line) {
            Ok(line) => Ok(Some(line)),
            // Truncated inside a character.
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

    /// The number of the last line read, counted from 1.
    pub fn number(&self) -> u64 {
        self.count
    }

    /// The source of the lines.
    pub fn input(&self) -> &Input {
        &self.input
    }

    /// Reads to the end of the file and counts the remaining lines.
    pub(super) fn count_rest(&mut self) -> Result<u64, CorpusError> {
        while self.advance()? {}
        Ok(self.number())
    }

    /// Reads one line into the buffer, with its line end; truncated if it is too long.
    fn advance(&mut self) -> Result<bool, CorpusError> {
        // Skipped here and not when the line was truncated: a caller that rejects the line need not read to
        // its end.
        if std::mem::take(&mut self.has_rest) {
            self.reader.skip_until(b'\n').map_err(|error| self.read_error(error))?;
        }
        self.buffer.clear();
        let (max, extra) = (self.max_bytes, BYTE_ORDER_MARK.len() + b"\r\n".len());
        let mut reader = self.reader.by_ref().take((max + extra) as u64);
        let count = reader.read_until(b'\n', &mut self.buffer).map_err(|error| self.read_error(error))?;
        self.count += u64::from(count > 0);
        self.was_cut = self.text().len() > max;
        if self.was_cut {
            if self.long == LongLines::Refused {
                return Err(CorpusError::LongLine { file: self.input.to_string(), line: self.number(), max });
            }
            self.has_rest = self.buffer.last() != Some(&b'\n');
            self.buffer.truncate(max);
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
        match self.compression.name() {
            None => self.input.unreadable(error),
            Some(format) => CorpusError::Damaged { file: self.input.to_string(), format, error },
        }
    }
}
