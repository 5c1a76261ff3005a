//! All shards of a folder, which are the whole when every one of them is there.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::Stem;
use super::manifest::{Found, Manifest};

/// How many missing shards a message names.
const NAMED: usize = 8;

/// The shards of a folder, checked.
pub(crate) struct Whole {
    /// The results, in order.
    pub(crate) files: Vec<PathBuf>,
    pub(crate) lines: u64,
    /// The instruction sets that they were computed with.
    pub(crate) instruction_sets: Vec<String>,
}

impl Whole {
    /// Checks that all shards are there, belong together, follow each other without a gap, and are as they were written.
    pub(crate) fn find(folder: &Path) -> Result<Whole> {
        let name = folder.display();
        let count = count(folder)?;
        let missing: Vec<u32> =
            (1..=count).filter(|&number| !manifest_path(folder, number, count).is_file()).collect();
        if let Some(&first) = missing.first() {
            let named: Vec<String> = missing.iter().take(NAMED).map(u32::to_string).collect();
            let more = if missing.len() > NAMED { ", …" } else { "" };
            bail!(
                "{name}: {} of {count} shards are not finished ({}{more}): run them again, for example with --shard {first}/{count}",
                missing.len(),
                named.join(", ")
            );
        }
        let mut whole = Whole { files: Vec::new(), lines: 0, instruction_sets: Vec::new() };
        let mut first: Option<Manifest> = None;
        let mut before: Option<Manifest> = None;
        for number in 1..=count {
            let path = manifest_path(folder, number, count);
            let manifest = Manifest::read_if_there(&path)?
                .with_context(|| format!("{} was removed: run the shard again", path.display()))?;
            let name = path.display();
            if let Some(difference) = first.as_ref().and_then(|first| first.difference_of_work(&manifest)) {
                bail!("{name} does not belong to the first shard: {difference}; run one of them again");
            }
            if !manifest.follows(before.as_ref(), number == count) {
                bail!("{name} does not begin where the shard before it ends: run both again");
            }
            let results = path.with_extension(manifest.extension());
            if manifest.check_results(&results)? != Found::Whole {
                bail!(
                    "{} was changed, damaged or removed: run its shard again with --overwrite",
                    results.display()
                );
            }
            whole.lines += manifest.lines();
            if !whole.instruction_sets.contains(&manifest.instruction_set) {
                whole.instruction_sets.push(manifest.instruction_set.clone());
            }
            whole.files.push(results);
            first.get_or_insert_with(|| manifest.clone());
            before = Some(manifest);
        }
        Ok(whole)
    }
}

fn manifest_path(folder: &Path, number: u32, count: u32) -> PathBuf {
    folder.join(format!("{}.json", Stem(number, count)))
}

/// Of how many shards the folder has some.
fn count(folder: &Path) -> Result<u32> {
    let name = folder.display();
    let mut found = None;
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {name}"))? {
        let file = entry.with_context(|| format!("cannot read {name}"))?.file_name();
        let stem = file.to_str().and_then(|file| file.strip_suffix(".json")).and_then(Stem::parse);
        match (stem, found) {
            (None, _) => {}
            (Some(Stem(_, count)), Some(known)) if count != known => {
                bail!(
                    "{name} has shards of a text in {known} parts and in {count}: remove those that are not wanted"
                )
            }
            (Some(Stem(_, count)), _) => found = Some(count),
        }
    }
    found.with_context(|| {
        format!("{name} has no finished shard: name the folder that --shard wrote into with -o")
    })
}
