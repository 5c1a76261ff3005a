//! Texts with more tokens than a model's limit: the flags, the messages and the count of such texts.

use std::fmt::Display;

use anyhow::{Result, anyhow};
use clap::ValueEnum;
use heedful::data::TextLimit;
use heedful::data::text_limit::TooLong;

const HEADING: &str = "Long text";

/// Maximum bytes of a line that is kept in memory to be split.
pub(crate) const LONGEST_LINE: usize = 16 << 20;

/// Handling of a line that is too long, for commands that can join the results of its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Long {
    /// Stop with an error that names the line
    Error,
    /// Use its first tokens
    Cut,
    /// Split it at sentence ends, else at spaces, and join the results
    Split,
}

/// Handling of a text that is too long, for commands that cannot split it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LongWhole {
    /// Stop with an error
    Error,
    /// Use as many of its tokens as the limit allows
    Cut,
}

/// `--max-tokens`, the same for every command that reads text with a model.
#[derive(clap::Args)]
pub(crate) struct MaxTokens {
    /// Maximum number of tokens of a text [default: the number of learned positions; without learned
    /// positions, 1024 or the longest training text if that is longer]
    #[arg(id = "max_tokens", long = "max-tokens", value_name = "N", help_heading = HEADING)]
    pub(crate) tokens: Option<usize>,
}

/// The error for a text that is too long. `remedies` are flags that avoid it.
pub(crate) fn refused(place: impl Display, error: TooLong, remedies: &str) -> anyhow::Error {
    anyhow!("{place}: {error}; make it shorter, or use {remedies}")
}

/// Counts the texts that were cut or split, and reports the first at once and all at the end.
pub(crate) struct LongTexts {
    what: &'static str,
    limit: TextLimit,
    count: usize,
}

impl LongTexts {
    /// A count of zero; `what` is done to such texts: "cut" or "split".
    pub(crate) fn new(what: &'static str, limit: TextLimit) -> LongTexts {
        LongTexts { what, limit, count: 0 }
    }

    /// Counts one more text, found at `place`.
    pub(crate) fn add(&mut self, place: impl Display) {
        self.add_at(|| place);
    }

    /// As [`LongTexts::add`], for a place that takes time to compute.
    pub(crate) fn add_at<D: Display>(&mut self, place: impl FnOnce() -> D) {
        self.count += 1;
        if self.count == 1 {
            let place = place();
            eprintln!("heedful: {place}: more than {} tokens, so it is {}", self.limit.tokens(), self.what);
        }
    }

    /// The tokens of a text; if there are too many, the first of them or an error, depending on `long`.
    pub(crate) fn read<D: Display>(
        &mut self,
        text: &str,
        encode: impl Fn(&str) -> Vec<u32>,
        long: LongWhole,
        place: impl FnOnce() -> D,
    ) -> Result<Vec<u32>> {
        match (self.limit.encode(text, &encode), long) {
            (Ok(tokens), _) => Ok(tokens),
            (Err(error), LongWhole::Error) => Err(refused(place(), error, "--long cut or --max-tokens N")),
            (Err(_), LongWhole::Cut) => {
                self.add_at(place);
                Ok(self.limit.first(text, encode).tokens)
            }
        }
    }

    /// Reports the number of such texts if there were more than the one already reported.
    pub(crate) fn finish(&self) {
        if self.count > 1 {
            eprintln!(
                "heedful: {} texts of more than {} tokens were {}",
                self.count,
                self.limit.tokens(),
                self.what
            );
        }
    }
}
