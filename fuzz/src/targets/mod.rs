//! What reads input, one file for each group.

mod compressed;
mod exercises;
mod foreign;
mod logs;
mod models;
mod pages;
mod recipes;
mod requests;
mod sealing;
mod small_model;
mod texts;
mod token_files;
mod writers;

use std::path::Path;

/// Something that reads bytes that anyone may have written.
#[derive(Clone)]
pub struct Target {
    /// Its name on the command line.
    pub name: &'static str,
    /// Prepares it; its files go into a folder of its own.
    pub open: fn(&Path) -> Opened,
    /// Words of its format, which are put into inputs.
    pub words: &'static [&'static str],
    /// How many inputs the default tests give it: all targets together take a few seconds.
    pub short: u64,
}

fn target(
    name: &'static str,
    open: fn(&Path) -> Opened,
    words: &'static [&'static str],
    short: u64,
) -> Target {
    Target { name, open, words, short }
}

/// A target that is ready.
pub struct Opened {
    /// Inputs that it takes, which the others are made from.
    pub good: Vec<Vec<u8>>,
    /// Reads an input to its end.
    pub read: Reader,
}

/// Reads an input and says what it thinks of it.
pub type Reader = Box<dyn FnMut(&[u8]) -> Verdict>;

/// What a target says about an input. Both are fine; a panic is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It could be read.
    Taken,
    /// It was refused, with a reason.
    Refused,
}

impl Verdict {
    /// A result that nobody looks into.
    pub fn of<T, E>(result: Result<T, E>) -> Verdict {
        if result.is_ok() { Verdict::Taken } else { Verdict::Refused }
    }
}

/// All targets.
pub fn all() -> Vec<Target> {
    let groups = [
        models::targets(),
        foreign::targets(),
        token_files::targets(),
        recipes::targets(),
        logs::targets(),
        texts::targets(),
        compressed::targets(),
        pages::targets(),
        requests::targets(),
        exercises::targets(),
    ];
    groups.into_iter().flatten().collect()
}

const JSON: &[&str] = &[
    "null", "true", "{}", "[]", "[", "{", "\"", "\":", ",", "-1", "1e400", "\\u0000", "\\ud800", "\"\"",
    "\u{feff}",
];
