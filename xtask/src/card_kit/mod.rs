//! `cargo xtask card-kit [FOLDER]`: a folder with all that is run on a machine with a card, which needs no Rust.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::kit::{build, clear, copy, found};
use crate::step;
use crate::workspace::{root, target};

const PROGRAMS: [&str; 3] = ["heedful", "card", "search"];
/// Those with tests that need a card.
const TESTS: [&str; 6] = ["gradients", "devices", "recurrent_card", "card_decoding", "card", "card_search"];
/// The peers of the races and what they import.
const PEERS: [&str; 6] =
    ["card.py", "card_batches.py", "packed.py", "search.py", "transformer.py", "exchange.py"];
const SCRIPT: &str = include_str!("run.sh");

pub(crate) fn run(folder: Option<&str>) -> Result<()> {
    let folder = folder.map_or_else(|| target().join("card-kit"), PathBuf::from);
    let built = step::timed("build the programs and tests of the kit", || {
        build(&["--release", "--workspace"], &PROGRAMS, &TESTS)
    })?;
    for part in ["tests", "peers", "recipes"] {
        clear(&folder.join(part))?;
    }
    for name in PROGRAMS {
        copy(&found(&built, "bin", name)?, &folder.join(name))?;
    }
    for name in TESTS {
        copy(&found(&built, "test", name)?, &folder.join("tests").join(name))?;
    }
    for name in PEERS {
        copy(&root().join("bench/peers").join(name), &folder.join("peers").join(name))?;
    }
    let recipes = root().join("recipes");
    for entry in fs::read_dir(&recipes).with_context(|| format!("cannot list {}", recipes.display()))? {
        let entry = entry?;
        copy(&entry.path(), &folder.join("recipes").join(entry.file_name()))?;
    }
    let script = folder.join("run.sh");
    fs::write(&script, SCRIPT).with_context(|| format!("cannot write {}", script.display()))?;
    println!("{}: copy it to a machine with a card and run `sh run.sh` in it", folder.display());
    Ok(())
}
