//! The lines of one file.

use std::io::{self, BufRead};

use super::error::CorpusError;
use super::input::{Input, Packing};

const BYTE_ORDER_MARK: &[u8] = "\u{FEFF}".as_bytes();

/// Reads the lines of one input and counts them. All lines share one buffer.
pub struct Lines {
    input: Input,
    packing: Packing,
    reader: Box<dyn BufRead + Send>,
    buffer: Vec<u8>,
    number: u64,
}

impl Lines {
    /// Opens a file, compressed or not.
    pub fn open(input: &Input) -> Result<Lines, CorpusError> {
        let (reader, packing) = input.open()?;
        Ok(Lines { input: input.clone(), packing, reader, buffer: Vec::new(), number: 0 })
    }

    /// The next line without its end; `None` at the end of the file.
    #[allow(clippy::should_implement_trait)] // It lends its buffer, which an iterator cannot.
    pub fn next(&mut self) -> Result<Option<&str>, CorpusError> {
        if !self.advance()? {
            return Ok(None);
        }
        let line = text_of(&self.buffer, self.number);
        match std::str::from_utf8(line) {
            Ok(line) => Ok(Some(line)),
            Err(error) => Err(CorpusError::NotUtf8 {
                file: self.input.to_string(),
                line: self.number,
                byte: error.valid_up_to() + 1,
            }),
        }
    }

    /// The number of the line that was read last, counted from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Where the lines come from.
    pub fn input(&self) -> &Input {
        &self.input
    }

    /// Reads to the end of the file and counts the remaining lines.
    pub(super) fn count_rest(&mut self) -> Result<u64, CorpusError> {
        while self.advance()? {}
        Ok(self.number)
    }

    /// Reads one line into the buffer, its end included.
    fn advance(&mut self) -> Result<bool, CorpusError> {
        self.buffer.clear();
        let count =
            self.reader.read_until(b'\n', &mut self.buffer).map_err(|error| self.read_error(error))?;
        self.number += u64::from(count > 0);
        Ok(count > 0)
    }

    fn read_error(&self, error: io::Error) -> CorpusError {
        match self.packing.name() {
            None => self.input.unreadable(error),
            Some(format) => CorpusError::Damaged { file: self.input.to_string(), format, error },
        }
    }
}

fn text_of(line: &[u8], number: u64) -> &[u8] {
    let line = match line {
        [text @ .., b'\r', b'\n'] | [text @ .., b'\n'] | text => text,
    };
    match line.strip_prefix(BYTE_ORDER_MARK) {
        Some(text) if number == 1 => text,
        _ => line,
    }
}
