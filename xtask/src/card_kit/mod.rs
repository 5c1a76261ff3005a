//! `cargo xtask card-kit [FOLDER]`: a folder with all that is run on a machine with a card, which needs no Rust.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::kit::{build, clear, copy, found};
use crate::step;
use crate::workspace::{root, target};

const PROGRAMS: [&str; 5] = ["heedful", "card", "search", "seq2seq", "classify"];
/// Those with tests that need a card.
const TESTS: [&str; 6] = ["gradients", "devices", "recurrent_card", "card_decoding", "card", "card_search"];
/// The peers of the races and what they import.
const PEERS: [&str; 16] = [
    "card.py",
    "card_batches.py",
    "packed.py",
    "search.py",
    "search_model.py",
    "search_beam.py",
    "search_graphs.py",
    "search_ctranslate2.py",
    "ctranslate2_model.py",
    "seq2seq.py",
    "classify.py",
    "classifier.py",
    "card_steps.py",
    "study.py",
    "transformer.py",
    "exchange.py",
];
/// What is run there: tests and races; trainings to their end, and which.
const SCRIPTS: [(&str, &str); 3] = [
    ("run.sh", include_str!("run.sh")),
    ("quality.sh", include_str!("quality.sh")),
    ("quality.txt", include_str!("quality.txt")),
];

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
    for (name, text) in SCRIPTS {
        let script = folder.join(name);
        fs::write(&script, text).with_context(|| format!("cannot write {}", script.display()))?;
    }
    println!("{}: copy it to a machine with a card and run `sh run.sh` in it", folder.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_finds_what_it_imports_in_the_kit() {
        let folder = root().join("bench/peers");
        let known: Vec<String> = fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        for peer in PEERS {
            let text = fs::read_to_string(folder.join(peer)).unwrap();
            let imports = text.lines().filter_map(|line| line.strip_prefix("from ")?.split(' ').next());
            for module in imports.map(|name| format!("{name}.py")).filter(|name| known.contains(name)) {
                assert!(
                    PEERS.contains(&module.as_str()),
                    "{peer} imports {module}, which the kit does not have"
                );
            }
        }
    }

    #[test]
    fn every_recipe_of_the_quality_runs_exists() {
        let list = include_str!("quality.txt");
        let named: Vec<&str> = list.split_whitespace().filter(|word| word.ends_with(".toml")).collect();
        assert!(!named.is_empty());
        for recipe in named {
            assert!(root().join(recipe).is_file(), "there is no {recipe}");
        }
    }
}
