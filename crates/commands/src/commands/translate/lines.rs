//! Reads the lines to translate on a separate thread, so that decoding never waits for a slow producer.

use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use anyhow::Result;
use heedful::data::corpus::{Lines, LongLines};
use heedful::data::{Input, TextLimit};

use super::Arguments;
use super::prefixes::{Prefix, Prefixes};
use super::read_ahead::{ReadAhead, Reservation};
use crate::long_text::{LONGEST_LINE, Long};

/// Maximum number of lines read ahead.
const READ_AHEAD: usize = 4096;

/// A line to translate.
pub(super) struct Line {
    pub(super) text: String,
    /// The prefix of its translation.
    pub(super) prefix: Option<Prefix>,
    pub(super) location: Location,
    /// Its bytes in the read-ahead limit.
    _reservation: Reservation,
}

/// Where a line was read from, for messages.
#[derive(Clone)]
pub(super) struct Location {
    /// `None` for `--text`.
    pub(super) input: Option<Arc<Input>>,
    /// Counted from 1, in the part of the input that is read.
    pub(super) line: usize,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.input {
            None => write!(f, "--text, line {}", self.line),
            Some(input) => f.write_str(&input.location(self.line as u64)),
        }
    }
}

/// The lines of the command line, of the file or of standard input. An error is the last item. A line is read
/// only up to the model's limit.
pub(super) fn read(arguments: &Arguments, long: Long, limit: TextLimit) -> Result<Receiver<Result<Line>>> {
    let (max_bytes, long) = match long {
        Long::Error | Long::Cut => (limit.bytes_to_read(), LongLines::Cut),
        Long::Split => (LONGEST_LINE, LongLines::Refused),
    };
    let (sender, receiver) = sync_channel(READ_AHEAD);
    let ahead = ReadAhead::default();
    let prefixes = arguments.prefix.as_deref().map(Input::new);
    let mut prefixes = prefixes.map(Prefixes::open).transpose()?;
    if !arguments.text.is_empty() {
        let texts = arguments.text.clone();
        thread::spawn(move || {
            let unlimited = ReadAhead::default();
            for (number, text) in texts.into_iter().enumerate() {
                let location = Location { input: None, line: number + 1 };
                let prefix = prefixes.as_mut().map(|prefixes| prefixes.next(&location)).transpose();
                let line =
                    prefix.map(|prefix| Line { text, prefix, location, _reservation: unlimited.reserve(0) });
                if !send(&sender, line) {
                    return;
                }
            }
            send_end(&sender, prefixes);
        });
        return Ok(receiver);
    }
    let input = Arc::new(Input::of(arguments.file()));
    let mut lines = Lines::open(&input)?.bounded(max_bytes, long);
    thread::spawn(move || {
        for number in 0.. {
            let line = match lines.next() {
                Ok(None) => break,
                Ok(Some(text)) => {
                    let location = Location { input: Some(input.clone()), line: number + 1 };
                    let (text, _reservation) = (text.to_owned(), ahead.reserve(text.len()));
                    let prefix = prefixes.as_mut().map(|prefixes| prefixes.next(&location)).transpose();
                    prefix.map(|prefix| Line { text, prefix, location, _reservation })
                }
                Err(error) => Err(error.into()),
            };
            if !send(&sender, line) {
                return;
            }
        }
        send_end(&sender, prefixes);
    });
    Ok(receiver)
}

/// Sends a line or an error. Returns whether more can be sent: not after an error, nor after the receiver has
/// stopped.
fn send(sender: &SyncSender<Result<Line>>, line: Result<Line>) -> bool {
    let is_good = line.is_ok();
    sender.send(line).is_ok() && is_good
}

/// Called after the last line: sends an error if there are more prefixes.
fn send_end(sender: &SyncSender<Result<Line>>, prefixes: Option<Prefixes>) {
    if let Some(Err(error)) = prefixes.map(Prefixes::finish) {
        let _ = sender.send(Err(error));
    }
}
