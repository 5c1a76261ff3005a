//! `--shard`: one part of a file, so that many processes or machines can share the work. The same for every command that has it.
//!
//! ```text
//! FOLDER/00003-of-00016.txt      the results of the lines of shard 3; .jsonl with --json
//! FOLDER/00003-of-00016.json     its manifest, written last: what was read, by which model, with which options
//! ```
//!
//! A shard whose manifest agrees with what is asked for is finished. Results and manifest appear whole or not at all, and one
//! process at a time works on a shard.

mod auto;

mod manifest;

mod open;

mod whole;

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use heedful::data::corpus::Shard;
use heedful::store::seal::RunningHash;
use heedful::store::unfinished::Claim;
use serde_json::{Map, Value};

use self::auto::find;
use self::manifest::{Found, Manifest};
pub(crate) use self::open::OpenShard;
pub(crate) use self::whole::Whole;
use crate::output::Force;
use crate::progress::Verbosity;

/// `--shard` and `--overwrite`.
#[derive(clap::Args)]
pub(crate) struct ShardArguments {
    /// Read only part I of N of the file, for example 3/16, and write it into the folder -o; finished shards are skipped. `auto`
    /// takes I and N from Slurm or MPI; with `auto/N`, or HEEDFUL_SHARDS=N, I comes from Kubernetes or GNU parallel too
    #[arg(long, value_name = "I/N|auto", value_parser = choice, requires = "output", help_heading = "Shards")]
    shard: Option<Choice>,
    /// Replace a finished shard that has another input, model or options than this one
    #[arg(long, requires = "shard", help_heading = "Shards")]
    overwrite: bool,
}

/// What `--shard` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    Exactly(Shard),
    /// The environment says which; perhaps not of how many.
    Auto(Option<u32>),
}

fn choice(value: &str) -> Result<Choice, String> {
    let wrong = || "write I/N with I from 1 to N, for example 3/16; or auto, or auto/16".to_owned();
    let number = |text: &str| text.parse::<u32>().ok().filter(|&number| number > 0);
    match value.split_once('/') {
        None if value == "auto" => Ok(Choice::Auto(None)),
        Some(("auto", count)) => number(count).map(|count| Choice::Auto(Some(count))).ok_or_else(wrong),
        Some((index, count)) => {
            let shard = number(index).zip(number(count)).and_then(|(index, count)| Shard::new(index, count));
            shard.map(Choice::Exactly).ok_or_else(wrong)
        }
        None => Err(wrong()),
    }
}

/// What a command does, as far as it decides the results.
pub(crate) struct Work<'a> {
    pub(crate) command: &'static str,
    /// The file that is cut; none if texts come from elsewhere.
    pub(crate) input: Option<&'a Path>,
    /// Files with a line for each line of the input.
    pub(crate) beside: Vec<&'a Path>,
    pub(crate) models: Vec<&'a Path>,
    /// `-o`.
    pub(crate) folder: Option<&'a Path>,
    pub(crate) format: Format,
    pub(crate) options: Map<String, Value>,
    /// What computes, of which the last bits of results are a function.
    pub(crate) computed_by: String,
    pub(crate) force: &'a Force,
    /// A flag that cannot be divided among processes, if one is given.
    pub(crate) undivided: Option<&'static str>,
    pub(crate) verbosity: Verbosity,
}

/// The options of a [`Work`].
pub(crate) fn as_map(options: Value) -> Map<String, Value> {
    match options {
        Value::Object(options) => options,
        other => Map::from_iter([("options".to_owned(), other)]),
    }
}

/// Number and hash of a file's bytes, for files that decide the results of every line.
pub(crate) fn hash_of(file: &Path) -> Result<String> {
    let bytes = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let mut hash = RunningHash::default();
    hash.add(&bytes);
    Ok(hash.to_string())
}

/// What the lines of results are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    Json,
}

impl Format {
    /// As `--json` says.
    pub(crate) fn of(is_json: bool) -> Format {
        if is_json { Format::Json } else { Format::Text }
    }

    fn extension(self) -> &'static str {
        match self {
            Format::Text => "txt",
            Format::Json => "jsonl",
        }
    }
}

/// What is to be done.
pub(crate) enum Begun {
    /// Everything: no shard is asked for.
    Undivided,
    /// Nothing.
    Finished,
    /// This shard.
    Open(Box<OpenShard>),
}

impl ShardArguments {
    /// Finds what is to be done, before a model is read.
    pub(crate) fn begin<'a>(&self, work: impl FnOnce() -> Result<Work<'a>>) -> Result<Begun> {
        let Some(choice) = self.shard else { return Ok(Begun::Undivided) };
        let work = work()?;
        let shard = match choice {
            Choice::Exactly(shard) => shard,
            Choice::Auto(count) => find(count, |name| std::env::var(name).ok())?,
        };
        if let Some(flag) = work.undivided {
            bail!("{flag} is about all lines, and --shard reads some of them: leave one of them out");
        }
        let Some(input) = work.input.filter(|input| *input != Path::new("-")) else {
            bail!("--shard reads a part of a file: name a file of text, one line for each");
        };
        let folder = work.folder.context("--shard writes into a folder: name it with -o")?;
        work.force.check_folder(folder, &work.models)?;
        std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let names = Names::new(folder, shard, work.format);
        let Some(claim) =
            Claim::of(&names.results).with_context(|| format!("cannot write into {}", folder.display()))?
        else {
            bail!("another process is working on {shard} in {}: wait for it", folder.display());
        };
        let (wanted, ranges) = Manifest::of(shard, input, &work)?;
        manifest::check_others(folder, &wanted, self.overwrite)?;
        if self.is_finished(&names, &wanted)? {
            if work.verbosity == Verbosity::Normal {
                eprintln!("heedful: {shard} is finished: {}", names.results.display());
            }
            return Ok(Begun::Finished);
        }
        let mut read: Vec<&Path> = work.models.clone();
        read.extend(ranges.iter().map(|range| range.path()));
        let output = work.force.open(&names.results, &read)?;
        Ok(Begun::Open(Box::new(OpenShard::new(names, claim, wanted, ranges, output, work.verbosity))))
    }

    /// Whether the folder has the shard that is wanted. It is an error if it has another one.
    fn is_finished(&self, names: &Names, wanted: &Manifest) -> Result<bool> {
        let Some(found) = Manifest::read_if_there(&names.manifest)? else { return Ok(false) };
        let name = names.manifest.display();
        let remedy = "name another folder, or add --overwrite to compute it again";
        match found.difference(wanted) {
            Some(_) if self.overwrite => return Ok(false),
            Some(difference) => bail!("{name}: this shard was done otherwise: {difference}; {remedy}"),
            None => {}
        }
        match found.check_results(&names.results)? {
            Found::Whole => Ok(true),
            // Its results were removed, so they are wanted again.
            Found::Missing => Ok(false),
            Found::Changed if self.overwrite => Ok(false),
            Found::Changed => {
                let results = names.results.display();
                bail!("{results} was changed or damaged since it was written: {remedy}")
            }
        }
    }
}

/// The files of a shard.
struct Names {
    shard: Shard,
    results: PathBuf,
    manifest: PathBuf,
}

impl Names {
    fn new(folder: &Path, shard: Shard, format: Format) -> Names {
        let manifest = folder.join(format!("{}.json", Stem(shard.number(), shard.count())));
        Names { shard, results: manifest.with_extension(format.extension()), manifest }
    }
}

/// `00003-of-00016`: names that are ordered as the shards are.
struct Stem(u32, u32);

impl Stem {
    fn parse(name: &str) -> Option<Stem> {
        let (number, count) = name.split_once("-of-")?;
        let is_number = |text: &str| text.len() >= 5 && text.bytes().all(|byte| byte.is_ascii_digit());
        (is_number(number) && is_number(count)).then_some(Stem(number.parse().ok()?, count.parse().ok()?))
    }
}

impl fmt::Display for Stem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.1.to_string().len().max(5);
        write!(f, "{:0width$}-of-{:0width$}", self.0, self.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_named_by_number_and_count() {
        assert_eq!(choice("3/16"), Ok(Choice::Exactly(Shard::new(3, 16).expect("a shard"))));
        assert_eq!(choice("auto"), Ok(Choice::Auto(None)));
        assert_eq!(choice("auto/4"), Ok(Choice::Auto(Some(4))));
        for wrong in ["0/4", "5/4", "1/0", "auto/0", "auto/", "3", "3/", "/3", "1/2/3", "-1/3", "automatic"] {
            assert!(choice(wrong).expect_err("no shard").contains("3/16"), "{wrong}");
        }
    }

    #[test]
    fn names_are_ordered_as_the_shards_are() {
        assert_eq!(Stem(3, 16).to_string(), "00003-of-00016");
        assert_eq!(Stem(3, 1_000_000).to_string(), "0000003-of-1000000");
        assert!(matches!(Stem::parse("00003-of-00016"), Some(Stem(3, 16))));
        for other in ["3-of-16", "00003-of-", "00003-of-0001x", "page-of-00002", "00003"] {
            assert!(Stem::parse(other).is_none(), "{other}");
        }
    }
}
