//! The manifest of a shard: what was read, by which model, with which options, and what was written.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use anyhow::{Context, Result, bail};
use heedful::data::corpus::{FileRange, Shard};
use heedful::store::seal::RunningHash;
use heedful::tasks::folder::ModelFolder;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Format, Stem, Work};

/// The most bytes of a manifest that are read.
const LARGEST: u64 = 1 << 20;

/// What a shard is, as JSON beside its results.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Manifest {
    command: String,
    /// Counted from 1.
    shard: u32,
    shards: u32,
    /// The file that is cut, then those that stand beside it.
    inputs: Vec<InputPart>,
    /// The checksums of the models, which seal all of their files.
    models: Vec<String>,
    options: Map<String, Value>,
    /// Of the program.
    version: String,
    /// Results have the same bits on one instruction set.
    pub(super) instruction_set: String,
    /// Number and hash of the bytes that were written.
    results: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct InputPart {
    file: String,
    /// Of the whole file.
    size: u64,
    first_byte: u64,
    /// Behind the last one.
    end_byte: u64,
    lines: u64,
    /// Number and hash of the bytes that were read.
    contents: String,
}

/// What is there of the results that a manifest describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Whole,
    Missing,
    Changed,
}

impl Manifest {
    /// That of a shard which is to be done, with the ranges of its inputs.
    pub(super) fn of(shard: Shard, input: &Path, work: &Work<'_>) -> Result<(Manifest, Vec<FileRange>)> {
        let first = FileRange::of_shard(input, shard)?;
        let beside = work.beside.iter().map(|other| first.beside(other)).collect::<Result<Vec<_>, _>>()?;
        let ranges: Vec<FileRange> = std::iter::once(first).chain(beside).collect();
        let models = work.models.iter().map(|folder| ModelFolder::open(folder)?.checksum());
        let manifest = Manifest {
            command: work.command.to_owned(),
            shard: shard.number(),
            shards: shard.count(),
            inputs: ranges.iter().map(InputPart::of).collect::<Result<_>>()?,
            models: models.collect::<Result<_, _>>()?,
            options: work.options.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            instruction_set: work.computed_by.clone(),
            results: String::new(),
        };
        Ok((manifest, ranges))
    }

    /// The manifest in a file; none if there is no such file.
    pub(super) fn read_if_there(path: &Path) -> Result<Option<Manifest>> {
        let mut text = String::new();
        let read = File::open(path).and_then(|file| file.take(LARGEST).read_to_string(&mut text));
        match read {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
            Ok(_) => {}
        }
        let manifest = serde_json::from_str(&text);
        let name = path.display();
        manifest.map(Some).with_context(|| {
            format!("{name} is not the manifest of a shard: remove it, or name another folder with -o")
        })
    }

    /// The lines that the shard has.
    pub(super) fn lines(&self) -> u64 {
        self.inputs.first().map_or(0, |input| input.lines)
    }

    /// How the names of its results end.
    pub(super) fn extension(&self) -> &'static str {
        Format::of(self.options.get("json") == Some(&Value::Bool(true))).extension()
    }

    /// Whether its lines follow those of the shard before it, to the end of the files if it is the last one.
    pub(super) fn follows(&self, before: Option<&Manifest>, is_last: bool) -> bool {
        let begins = |(index, part): (usize, &InputPart)| {
            let end = |before: &Manifest| before.inputs.get(index).map(|part| part.end_byte);
            before.map_or(Some(0), end) == Some(part.first_byte)
        };
        let ends = self.inputs.iter().all(|part| !is_last || part.end_byte == part.size);
        ends && self.inputs.iter().enumerate().all(begins)
    }

    /// Whether the inputs are still as they were.
    pub(super) fn check_inputs(&self, ranges: &[FileRange]) -> Result<()> {
        for (part, range) in self.inputs.iter().zip(ranges) {
            if InputPart::of(range)?.contents != part.contents {
                bail!("{} was changed while it was read: run the shard again", part.file);
            }
        }
        Ok(())
    }

    /// The manifest as a file has it, with what was written.
    pub(super) fn with_results(mut self, results: &RunningHash) -> String {
        self.results = results.to_string();
        serde_json::to_string_pretty(&self).expect("text and numbers") + "\n"
    }

    /// Whether the results are those that the manifest describes.
    pub(super) fn check_results(&self, path: &Path) -> Result<Found> {
        let hash = || -> io::Result<RunningHash> {
            let (mut file, mut hash, mut buffer) =
                (File::open(path)?, RunningHash::default(), vec![0; 1 << 16]);
            loop {
                match file.read(&mut buffer)? {
                    0 => return Ok(hash),
                    count => hash.add(&buffer[..count]),
                }
            }
        };
        match hash() {
            Ok(found) if found.to_string() == self.results => Ok(Found::Whole),
            Ok(_) => Ok(Found::Changed),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Found::Missing),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    /// How what is wanted differs from what this one describes, in words. Where the input lies does not count.
    pub(super) fn difference(&self, wanted: &Manifest) -> Option<String> {
        let parts = |manifest: &Manifest| -> Vec<(u64, u64, String)> {
            let part = |input: &InputPart| (input.first_byte, input.end_byte, input.contents.clone());
            manifest.inputs.iter().map(part).collect()
        };
        self.difference_of_work(wanted).or_else(|| {
            let (before, now) = (parts(self), parts(wanted));
            let index = (0..before.len().min(now.len())).find(|&index| before[index] != now[index])?;
            Some(format!("{} had other lines in this shard", wanted.inputs[index].file))
        })
    }

    /// [`Manifest::difference`] in what all shards have in common.
    pub(super) fn difference_of_work(&self, wanted: &Manifest) -> Option<String> {
        if self.command != wanted.command {
            return Some(format!("by heedful {}, and this is heedful {}", self.command, wanted.command));
        }
        let sizes = |manifest: &Manifest| manifest.inputs.iter().map(|input| input.size).collect::<Vec<_>>();
        if self.models != wanted.models {
            return Some("with another model".to_owned());
        }
        let keys = self.options.keys().chain(wanted.options.keys());
        let differs = |key: &&String| self.options.get(*key) != wanted.options.get(*key);
        if let Some(key) = keys.into_iter().find(differs) {
            let value = |options: &Map<String, Value>| {
                options.get(key).map_or("not given".to_owned(), Value::to_string)
            };
            return Some(format!("{key} was {} and is {}", value(&self.options), value(&wanted.options)));
        }
        if sizes(self) != sizes(wanted) {
            return Some(format!("the input files had {:?} bytes and have {:?}", sizes(self), sizes(wanted)));
        }
        None
    }
}

impl InputPart {
    fn of(range: &FileRange) -> Result<InputPart> {
        let contents = range.contents()?;
        Ok(InputPart {
            file: range.path().display().to_string(),
            size: range.size(),
            first_byte: range.bytes().start,
            end_byte: range.bytes().end,
            lines: contents.lines,
            contents: contents.hash,
        })
    }
}

/// Whether the other shards in the folder belong to the same work. Their names are read, and of one of them the manifest: with
/// as many processes as shards, each reading all, files would be read n² times.
pub(super) fn check_others(folder: &Path, wanted: &Manifest, overwrite: bool) -> Result<()> {
    let name = folder.display();
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {name}"))?;
    let mut nearest: Option<u32> = None;
    for entry in entries {
        let file = entry.with_context(|| format!("cannot read {name}"))?.file_name();
        let stem = file.to_str().and_then(|file| file.strip_suffix(".json")).and_then(Stem::parse);
        let Some(Stem(number, count)) = stem else { continue };
        if count != wanted.shards {
            bail!(
                "{name} has shards of a text in {count} parts ({}), and this is one of {}: name another folder, or remove them",
                file.display(),
                wanted.shards
            );
        }
        if number != wanted.shard && nearest.is_none_or(|nearest| number < nearest) {
            nearest = Some(number);
        }
    }
    let Some(number) = nearest.filter(|_| !overwrite) else { return Ok(()) };
    let path = folder.join(format!("{}.json", Stem(number, wanted.shards)));
    // One that is gone was removed in between.
    let Some(other) = Manifest::read_if_there(&path)? else { return Ok(()) };
    match other.difference_of_work(wanted) {
        None => Ok(()),
        Some(difference) => bail!(
            "{}: another shard of this folder was done otherwise: {difference}; name another folder, or add --overwrite",
            path.display()
        ),
    }
}
