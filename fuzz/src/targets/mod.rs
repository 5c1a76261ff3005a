//! The fuzz targets, one file for each group.

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

/// A reader of untrusted input.
#[derive(Clone)]
pub struct Target {
    /// Its name on the command line.
    pub name: &'static str,
    /// Opens it; its files go into the given folder.
    pub open: fn(&Path) -> Opened,
    /// Words of its format, which are inserted into inputs.
    pub words: &'static [&'static str],
    /// The number of inputs in the default tests: all targets together take a few seconds.
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

/// An opened target.
pub struct Opened {
    /// Valid inputs, which are mutated.
    pub seeds: Vec<Vec<u8>>,
    /// Reads an input to its end.
    pub read: Reader,
}

/// Reads an input and returns its verdict.
pub type Reader = Box<dyn FnMut(&[u8]) -> Verdict>;

/// The verdict of a target on an input. Both are fine; a panic is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The input was read.
    Accepted,
    /// The input was rejected with an error.
    Rejected,
}

impl Verdict {
    /// The verdict of a result, whose value is dropped.
    pub fn of<T, E>(result: Result<T, E>) -> Verdict {
        if result.is_ok() { Verdict::Accepted } else { Verdict::Rejected }
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
