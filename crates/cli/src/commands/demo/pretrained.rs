//! `heedful demo --pretrained FILE`: a model that somebody has trained, shown at once.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use heedful::decode::SearchOptions;
use heedful::models::DeviceChoice;
use heedful::tasks::OpenOptions;
use heedful::tasks::package::{EXAMPLES, MODEL_CARD, Package};
use heedful::tasks::translate::Translator;
use heedful::train::examples::examples as of_run;

use super::folder::Existing;
use super::trace::Trace;
use super::{LONGEST_PHRASE, folder, text_report};

/// Texts of a package that are translated.
const MOST_EXAMPLES: usize = 8;

/// Unpacks a model (or takes one that is a folder), translates texts, and shows the attention of the first.
pub(super) fn run(
    file: &Path,
    out: &Path,
    existing: Existing,
    texts: &[String],
    device: DeviceChoice,
) -> Result<()> {
    if let Some(long) = texts.iter().find(|text| text.chars().count() > LONGEST_PHRASE) {
        bail!("--text has {} characters: a text has at most {LONGEST_PHRASE}", long.chars().count());
    }
    device.choose().map_err(|why| anyhow!("{why}: use --device cpu or auto"))?;
    let model = place_of(file, out, existing)?;
    let translator = Translator::open_with(&model, &OpenOptions::new().device(device))?;
    let options = SearchOptions::default();

    let mut out = io::stdout().lock();
    if let Some(title) = title(&model) {
        writeln!(out, "{title}\n")?;
    }
    let texts = if texts.is_empty() { examples(&model)? } else { texts.to_vec() };
    if texts.is_empty() {
        bail!("{} has no texts to try it with: add --text TEXT", file.display());
    }
    for (text, translation) in texts.iter().zip(translator.translate(&texts, &options)?) {
        writeln!(out, "  {text}\n  → {}\n", translation.best())?;
    }
    text_report::attention(&Trace::new(&translator, &texts[0], &options)?, None, &[], &mut out)?;
    let (name, text) = (model.display(), texts[0].replace('\'', "'\\''"));
    writeln!(
        out,
        "\nThe model is in {name}. Try:\n\n  \
         echo '{text}' | heedful translate {name}\n  \
         heedful explain {name} '{text}' -o page.html\n  \
         heedful serve {name}\n"
    )?;
    Ok(())
}

/// The folder of the model.
fn place_of(file: &Path, out: &Path, existing: Existing) -> Result<PathBuf> {
    if file.is_dir() {
        return Ok(file.to_owned());
    }
    if !file.exists() {
        bail!("{} is not there: name the package of a model, or its folder", file.display());
    }
    let package = Package::open(file)?;
    folder::claim(out, existing)?;
    package.unpack(out)?;
    Ok(out.to_owned())
}

/// The first line of the model's card.
fn title(model: &Path) -> Option<String> {
    let card = fs::read_to_string(model.join(MODEL_CARD)).ok()?;
    let title = card.lines().find(|line| !line.trim().is_empty())?;
    Some(title.trim_start_matches('#').trim().to_owned())
}

/// The texts that came with the model, else some of its run.
fn examples(model: &Path) -> Result<Vec<String>> {
    let path = model.join(EXAMPLES);
    match fs::read_to_string(&path) {
        Ok(text) => {
            let usable = |line: &&str| !line.trim().is_empty() && line.chars().count() <= LONGEST_PHRASE;
            Ok(text.lines().filter(usable).take(MOST_EXAMPLES).map(str::to_owned).collect())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(of_run(model)),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}
