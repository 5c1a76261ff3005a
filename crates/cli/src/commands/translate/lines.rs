//! Reads the lines to translate in a thread of its own, so that decoding never waits for a slow producer.

use std::fmt;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use anyhow::Result;
use heedful::data::corpus::{Lines, LongLines};
use heedful::data::{Input, TextLimit};

use super::Arguments;
use super::read_ahead::{Held, ReadAhead};
use crate::long_text::{LONGEST_LINE, Long};

/// Number of lines that are read ahead, at most.
const READ_AHEAD: usize = 4096;

/// A line to translate.
pub(super) struct Line {
    /// Counted from 0.
    pub(super) number: usize,
    pub(super) text: String,
    pub(super) location: Location,
    /// Its share of what is read ahead.
    _held: Held,
}

/// Where a line was read, for messages.
pub(super) struct Location {
    file: String,
    line: usize,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, line {}", self.file, self.line)
    }
}

/// The lines of the command line, of the file or of standard input. An error is the last item. Of a line, no more is read
/// than the model will.
pub(super) fn read(arguments: &Arguments, long: Long, limit: TextLimit) -> Result<Receiver<Result<Line>>> {
    let (most_bytes, long) = match long {
        Long::Error | Long::Cut => (limit.bytes_to_read(), LongLines::Cut),
        Long::Split => (LONGEST_LINE, LongLines::Refused),
    };
    let (sender, receiver) = sync_channel(READ_AHEAD);
    let ahead = ReadAhead::default();
    if !arguments.text.is_empty() {
        let texts = arguments.text.clone();
        thread::spawn(move || {
            let line = |(number, text)| Line {
                number,
                text,
                location: Location { file: "--text".to_owned(), line: number + 1 },
                _held: ReadAhead::default().hold(0),
            };
            // Sending fails when the receiver has stopped, which is no error here.
            let _ = texts.into_iter().enumerate().map(line).try_for_each(|line| sender.send(Ok(line)));
        });
        return Ok(receiver);
    }
    let input = arguments.file.as_ref().map_or(Input::Standard, Input::new);
    let mut lines = Lines::open(&input)?.bounded(most_bytes, long);
    thread::spawn(move || {
        let file = input.to_string();
        for number in 0.. {
            let line = match lines.next() {
                Ok(None) => return,
                Ok(Some(text)) => Ok(Line {
                    number,
                    text: text.to_owned(),
                    location: Location { file: file.clone(), line: number + 1 },
                    _held: ahead.hold(text.len()),
                }),
                Err(error) => Err(error.into()),
            };
            let failed = line.is_err();
            if sender.send(line).is_err() || failed {
                return;
            }
        }
    });
    Ok(receiver)
}
