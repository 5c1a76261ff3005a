//! Texts of more tokens than a model reads at a time: the flags, the messages and the count of them.

use std::fmt::Display;

use anyhow::{Result, anyhow};
use clap::ValueEnum;
use heedful::data::TextLimit;
use heedful::data::text_limit::TooLong;

const HEADING: &str = "Long text";

/// The most bytes of a line that is split: no more of it is kept in memory.
pub(crate) const LONGEST_LINE: usize = 16 << 20;

/// What to do with a line that is too long, where its parts have results that can be joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Long {
    /// Stop with an error that names the line
    Error,
    /// Use its first tokens
    Cut,
    /// Split it at the ends of sentences, else at spaces, and join the results
    Split,
}

/// What to do with a text that is too long, where it must stay whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LongWhole {
    /// Stop with an error
    Error,
    /// Use as many of its tokens as the model reads
    Cut,
}

/// `--max-tokens`, the same for every command that reads text with a model.
#[derive(clap::Args)]
pub(crate) struct MaxTokens {
    /// Maximum number of tokens of a text [default: the positions that the model has learned; without such 1024, or the
    /// longest text of its training if that is longer]
    #[arg(id = "max_tokens", long = "max-tokens", value_name = "N", help_heading = HEADING)]
    pub(crate) tokens: Option<usize>,
}

/// A text that is too long for a command that may not change it. `remedies` are the flags that help.
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
    /// None yet; `what` was done to them: "cut", "split".
    pub(crate) fn new(what: &'static str, limit: TextLimit) -> LongTexts {
        LongTexts { what, limit, count: 0 }
    }

    /// One more, with its place.
    pub(crate) fn add(&mut self, place: impl Display) {
        self.add_at(|| place);
    }

    /// As [`LongTexts::add`], for a place that takes time to find.
    pub(crate) fn add_at<D: Display>(&mut self, place: impl FnOnce() -> D) {
        self.count += 1;
        if self.count == 1 {
            let place = place();
            eprintln!("heedful: {place}: more than {} tokens, so it is {}", self.limit.tokens(), self.what);
        }
    }

    /// The tokens of a text; the first of them where there are too many and `long` says so.
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

    /// Reports how many there were, if it was more than the one that is known.
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
