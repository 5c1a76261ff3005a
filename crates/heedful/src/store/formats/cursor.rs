//! A reader of little-endian integers and byte ranges, whose errors state the position.

use std::ops::Range;

use super::FormatError;

pub(super) struct Cursor<'a> {
    file: &'a str,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(file: &'a str, bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { file, bytes, at: 0 }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// An error at the current position.
    pub(super) fn damaged(&self, problem: impl Into<String>) -> FormatError {
        FormatError::damaged(self.file, format!("byte {}", self.at), problem)
    }

    /// The range of the next `count` bytes; an error if fewer are left.
    pub(super) fn range(&mut self, count: u64, what: &str) -> Result<Range<usize>, FormatError> {
        match usize::try_from(count).ok().filter(|&count| count <= self.left()) {
            Some(count) => {
                self.at += count;
                Ok(self.at - count..self.at)
            }
            None => {
                Err(self.damaged(format!("{what} takes {count} bytes, but only {} are left", self.left())))
            }
        }
    }

    pub(super) fn take(&mut self, count: u64, what: &str) -> Result<&'a [u8], FormatError> {
        let range = self.range(count, what)?;
        Ok(&self.bytes[range])
    }

    fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], FormatError> {
        let bytes = self.take(N as u64, what)?;
        Ok(bytes.try_into().expect("as many as were taken"))
    }

    pub(super) fn u8(&mut self, what: &str) -> Result<u8, FormatError> {
        Ok(self.array::<1>(what)?[0])
    }

    pub(super) fn u16(&mut self, what: &str) -> Result<u16, FormatError> {
        self.array(what).map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self, what: &str) -> Result<u32, FormatError> {
        self.array(what).map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self, what: &str) -> Result<u64, FormatError> {
        self.array(what).map(u64::from_le_bytes)
    }

    /// A NUL-terminated UTF-8 string of `count` bytes, without the NUL.
    pub(super) fn text_with_nul(&mut self, count: u64, what: &str) -> Result<&'a str, FormatError> {
        let bytes = self.take(count, what)?;
        let text = bytes.split_last().filter(|&(&last, text)| last == 0 && !text.contains(&0));
        text.and_then(|(_, text)| str::from_utf8(text).ok())
            .ok_or_else(|| self.damaged(format!("{what} is not a NUL-terminated text")))
    }
}
