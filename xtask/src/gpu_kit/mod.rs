//! `cargo xtask gpu-kit [FOLDER]`: a folder with all that is run on a machine with a GPU, which needs no Rust.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::kit::{build, clear, copy, copy_all, found};
use crate::step;
use crate::workspace::target;

const PROGRAMS: [&str; 5] = ["heedful", "gpu", "search", "seq2seq", "classify"];
/// Those with tests that need a GPU.
const TESTS: [&str; 6] = ["gradients", "devices", "recurrent_gpu", "gpu_decoding", "gpu", "gpu_search"];
/// What is run there: tests and races; trainings to their end, and which.
const SCRIPTS: [(&str, &str); 3] = [
    ("run.sh", include_str!("run.sh")),
    ("quality.sh", include_str!("quality.sh")),
    ("quality.txt", include_str!("quality.txt")),
];

pub(crate) fn run(folder: Option<&str>) -> Result<()> {
    let folder = folder.map_or_else(|| target().join("gpu-kit"), PathBuf::from);
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
    copy_all("bench/peers", &folder.join("peers"))?;
    copy_all("recipes", &folder.join("recipes"))?;
    for (name, text) in SCRIPTS {
        let script = folder.join(name);
        fs::write(&script, text).with_context(|| format!("cannot write {}", script.display()))?;
    }
    println!("{}: copy it to a machine with a GPU and run `sh run.sh` in it", folder.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::workspace::root;

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
