//! `cargo xtask gpu-kit [FOLDER]`: packages tests, benches and quality runs for a GPU machine without Rust.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::kit::{build, clear, copy, copy_all, path_of};
use crate::step;
use crate::workspace::target;

const PROGRAMS: [&str; 5] = ["heedful", "gpu", "search", "seq2seq", "classify"];
/// Test programs with tests that need a GPU.
const TESTS: [&str; 6] = ["gradients", "devices", "recurrent_gpu", "gpu_decoding", "gpu", "gpu_search"];
/// Scripts of the kit: tests and benches (run.sh), and quality runs with their list.
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
        copy(&path_of(&built, "bin", name)?, &folder.join(name))?;
    }
    for name in TESTS {
        copy(&path_of(&built, "test", name)?, &folder.join("tests").join(name))?;
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
