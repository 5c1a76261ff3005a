//! Models that go along with a release: each in a folder of its own, with its card, its licence and texts to try it with.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::step;

/// The most bytes of a packed model.
const MOST_BYTES: u64 = 20_000_000;
/// What a model has to have beside itself, before others get it.
const TEXTS: [&str; 3] = ["MODEL_CARD.md", "LICENSE", "examples.txt"];

/// Packs every model in a folder with the program, which is for this machine.
pub(super) fn pack(models: &Path, program: &Path, folder: &Path) -> Result<()> {
    let cannot = || format!("cannot read {}", models.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(models).with_context(cannot)? {
        names.push(entry.with_context(cannot)?.file_name());
    }
    ensure!(!names.is_empty(), "{} has no models", models.display());
    names.sort();
    for name in names {
        let model = models.join(&name);
        for text in TEXTS {
            let path = model.join(text);
            ensure!(path.is_file(), "{} is missing: a model is not given away without it", path.display());
        }
        let packed = folder.join(&name).with_extension("zip");
        step::command(Command::new(program).arg("pack").arg(&model).arg("-o").arg(&packed))?;
        let bytes = fs::metadata(&packed).with_context(|| format!("cannot read {}", packed.display()))?.len();
        ensure!(
            bytes <= MOST_BYTES,
            "{} has {bytes} bytes, more than {MOST_BYTES}: quantize the model, or train a smaller one",
            packed.display()
        );
    }
    Ok(())
}
