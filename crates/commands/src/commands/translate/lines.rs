//! Reads the lines to translate in a thread of its own, so that decoding never waits for a slow producer.

use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use anyhow::Result;
use heedful::data::corpus::{Lines, LongLines};
use heedful::data::{Input, TextLimit};

use super::Arguments;
use super::prefixes::{Prefix, Prefixes};
use super::read_ahead::{Held, ReadAhead};
use crate::long_text::{LONGEST_LINE, Long};

/// Number of lines that are read ahead, at most.
const READ_AHEAD: usize = 4096;

/// A line to translate.
pub(super) struct Line {
    pub(super) text: String,
    /// What its translation begins with.
    pub(super) prefix: Option<Prefix>,
    pub(super) location: Location,
    /// Its share of what is read ahead.
    _held: Held,
}

/// Where a line was read, for messages.
#[derive(Clone)]
pub(super) struct Location {
    /// None if it is that of `--text`.
    pub(super) input: Option<Arc<Input>>,
    /// Counted from 1, in what is read of the input.
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

/// The lines of the command line, of the file or of standard input. An error is the last item. Of a line, no more is read
/// than the model will.
pub(super) fn read(arguments: &Arguments, long: Long, limit: TextLimit) -> Result<Receiver<Result<Line>>> {
    let (most_bytes, long) = match long {
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
            let held = ReadAhead::default();
            for (number, text) in texts.into_iter().enumerate() {
                let location = Location { input: None, line: number + 1 };
                let prefix = prefixes.as_mut().map(|prefixes| prefixes.next(&location)).transpose();
                let line = prefix.map(|prefix| Line { text, prefix, location, _held: held.hold(0) });
                if !send(&sender, line) {
                    return;
                }
            }
            send_end(&sender, prefixes);
        });
        return Ok(receiver);
    }
    let input = Arc::new(Input::of(arguments.file()));
    let mut lines = Lines::open(&input)?.bounded(most_bytes, long);
    thread::spawn(move || {
        for number in 0.. {
            let line = match lines.next() {
                Ok(None) => break,
                Ok(Some(text)) => {
                    let location = Location { input: Some(input.clone()), line: number + 1 };
                    let (text, _held) = (text.to_owned(), ahead.hold(text.len()));
                    let prefix = prefixes.as_mut().map(|prefixes| prefixes.next(&location)).transpose();
                    prefix.map(|prefix| Line { text, prefix, location, _held })
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

/// Whether more can be sent: neither was this an error, nor has the receiver stopped, which is no error here.
fn send(sender: &SyncSender<Result<Line>>, line: Result<Line>) -> bool {
    let is_good = line.is_ok();
    sender.send(line).is_ok() && is_good
}

/// There are no more lines: no prefix may be left.
fn send_end(sender: &SyncSender<Result<Line>>, prefixes: Option<Prefixes>) {
    if let Some(Err(error)) = prefixes.map(Prefixes::finish) {
        let _ = sender.send(Err(error));
    }
}
