//! Reads all frames of a zstd file. The `ruzstd` decoder reads single frames and leaves checking their
//! checksums to the caller.

use std::io::{self, BufRead, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

pub(super) struct ZstdFrames<R> {
    compressed: R,
    decoder: FrameDecoder,
    state: State,
}

enum State {
    BetweenFrames,
    InFrame,
}

impl<R: BufRead> ZstdFrames<R> {
    pub(super) fn new(compressed: R) -> ZstdFrames<R> {
        ZstdFrames { compressed, decoder: FrameDecoder::new(), state: State::BetweenFrames }
    }

    /// Opens the next frame; false at the end of the file.
    fn next_frame(&mut self) -> io::Result<bool> {
        while !self.compressed.fill_buf()?.is_empty() {
            match self.decoder.reset(&mut self.compressed) {
                Ok(()) => {
                    self.state = State::InFrame;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => self.skip(u64::from(length))?,
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        Ok(false)
    }

    fn skip(&mut self, length: u64) -> io::Result<()> {
        let skipped = io::copy(&mut self.compressed.by_ref().take(length), &mut io::sink())?;
        if skipped < length {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file ends in a skippable frame"));
        }
        Ok(())
    }

    fn close_frame(&mut self) -> io::Result<()> {
        let stored = self.decoder.get_checksum_from_data();
        if stored.is_some() && stored != self.decoder.get_calculated_checksum() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the checksum of a frame does not match"));
        }
        self.state = State::BetweenFrames;
        Ok(())
    }
}

impl<R: BufRead> Read for ZstdFrames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.state {
                State::BetweenFrames => {
                    if !self.next_frame()? {
                        return Ok(0);
                    }
                }
                State::InFrame => {
                    while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                        let one = BlockDecodingStrategy::UptoBlocks(1);
                        self.decoder.decode_blocks(&mut self.compressed, one).map_err(io::Error::other)?;
                    }
                    let count = self.decoder.read(buffer)?;
                    if count > 0 || buffer.is_empty() {
                        return Ok(count);
                    }
                    self.close_frame()?;
                }
            }
        }
    }
}
