//! Where the lines to translate come from. They are read by a thread of their own, so that translating never waits for
//! a slow producer.

use std::fmt;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use anyhow::Result;
use heedful::data::Input;
use heedful::data::corpus::Lines;

use super::Arguments;

/// Lines that are read ahead.
const AHEAD: usize = 4096;

/// A line to translate.
pub(super) struct Line {
    /// Counted from 0.
    pub(super) number: usize,
    pub(super) text: String,
    pub(super) place: Place,
}

/// Where a line stands, for messages.
pub(super) struct Place {
    file: String,
    line: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, line {}", self.file, self.line)
    }
}

/// The lines of the command line, of the file or of standard input. Ends when there are no more; an error is the last.
pub(super) fn read(arguments: &Arguments) -> Result<Receiver<Result<Line>>> {
    let (sender, receiver) = sync_channel(AHEAD);
    if !arguments.text.is_empty() {
        let texts = arguments.text.clone();
        thread::spawn(move || {
            let line = |(number, text)| Line {
                number,
                text,
                place: Place { file: "--text".to_owned(), line: number + 1 },
            };
            // A receiver that is gone wants no more.
            let _ = texts.into_iter().enumerate().map(line).try_for_each(|line| sender.send(Ok(line)));
        });
        return Ok(receiver);
    }
    let input = arguments.file.as_ref().map_or(Input::Standard, Input::new);
    let mut lines = Lines::open(&input)?;
    thread::spawn(move || {
        let file = input.to_string();
        for number in 0.. {
            let line = match lines.next() {
                Ok(None) => return,
                Ok(Some(text)) => Ok(Line {
                    number,
                    text: text.to_owned(),
                    place: Place { file: file.clone(), line: number + 1 },
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
