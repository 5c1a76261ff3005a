//! `--prefix`: target prefixes, one line for each line of the text.

use std::sync::Arc;

use anyhow::{Result, bail};
use heedful::data::Input;
use heedful::data::corpus::Lines;

use super::lines::Location;

/// The lines of the prefix file, read in parallel with those of the text.
pub(super) struct Prefixes {
    lines: Lines,
    input: Arc<Input>,
    read: usize,
}

/// The prefix of one translation; blank for none.
pub(super) struct Prefix {
    pub(super) text: String,
    pub(super) location: Location,
}

impl Prefixes {
    pub(super) fn open(input: Input) -> Result<Prefixes> {
        Ok(Prefixes { lines: Lines::open(&input)?, input: Arc::new(input), read: 0 })
    }

    /// The prefix of the next line of the text.
    pub(super) fn next(&mut self, line: &Location) -> Result<Prefix> {
        let Some(text) = self.lines.next()? else {
            bail!(
                "{}: it ends after line {}, but {line} is still to be translated: give one prefix for each line, blank for none",
                self.input,
                self.lines.number()
            );
        };
        let text = text.to_owned();
        self.read += 1;
        let location = Location { input: Some(self.input.clone()), line: self.read };
        Ok(Prefix { text, location })
    }

    /// Checks that no prefix is left when the text has ended.
    pub(super) fn finish(mut self) -> Result<()> {
        if self.lines.next()?.is_some() {
            bail!(
                "{}: it has more lines than the text, which ends after line {}: give one prefix for each line",
                self.input,
                self.lines.number() - 1
            );
        }
        Ok(())
    }
}
