//! Learns and saves a vocabulary.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Result, bail};
use heedful::data::tokenizer::{Sharing, Tokenizers, VocabularyOptions};
use heedful::data::{CorpusFiles, Input};

use super::Arguments;
use crate::progress::{Bar, Verbosity};

pub(super) fn run(arguments: &Arguments, out: &Path) -> Result<()> {
    let options = VocabularyOptions {
        kind: arguments.kind.into(),
        size: arguments.size,
        normalization: arguments.normalize.into(),
        boundaries: arguments.boundaries.into(),
        min_frequency: arguments.min_frequency,
        coverage: arguments.coverage,
    };
    let sharing = if arguments.separate { Sharing::Separate } else { Sharing::Joint };
    let destination = Destination::new(out, sharing)?;
    destination.check(arguments)?;
    let files = files(arguments)?;
    let what = if arguments.tgt.is_empty() && arguments.tsv.is_empty() { "lines" } else { "pairs" };
    let start = Instant::now();
    let verbosity = arguments.quiet.verbosity();
    let progress = Bar::new(verbosity, 0, "{msg}, {elapsed}");
    let mut read = 0;
    let tokenizers = Tokenizers::train(&files, &options, sharing, &mut |pairs| {
        read = pairs;
        progress.show(0, 0.0, || format!("{pairs} {what} read, learning pieces"));
    })?;
    destination.save(&tokenizers)?;
    progress.finish();
    if verbosity == Verbosity::Normal {
        let sizes = match sharing {
            Sharing::Joint => format!("{} tokens", tokenizers.source.size()),
            Sharing::Separate => {
                format!("{} source and {} target tokens", tokenizers.source.size(), tokenizers.target.size())
            }
        };
        let seconds = start.elapsed().as_secs_f64();
        eprintln!("learned {sizes} from {read} {what} in {seconds:.1} s: {}", out.display());
    }
    Ok(())
}

/// The texts to learn from, in one or two languages.
fn files(arguments: &Arguments) -> Result<CorpusFiles> {
    let Arguments { src, tgt, tsv, text, separate, .. } = arguments;
    let is_one = !text.is_empty() || tgt.is_empty() && tsv.is_empty() && !src.is_empty();
    if is_one && *separate {
        bail!("--separate learns a vocabulary for each of two languages, but --src is only one: add --tgt");
    }
    Ok(if is_one {
        CorpusFiles::plain(&inputs(if text.is_empty() { src } else { text }))?
    } else {
        CorpusFiles::new(&inputs(src), &inputs(tgt), &inputs(tsv))?
    })
}

fn inputs(paths: &[PathBuf]) -> Vec<Input> {
    paths.iter().map(Input::new).collect()
}

/// Destination of the vocabulary.
enum Destination {
    Folder(PathBuf),
    File(PathBuf),
}

impl Destination {
    fn new(out: &Path, sharing: Sharing) -> Result<Destination> {
        let is_file = out.extension().is_some_and(|extension| extension == "json");
        match (is_file, sharing) {
            (true, Sharing::Separate) => {
                bail!("{} is one file, but --separate writes two: give a folder", out.display())
            }
            (true, Sharing::Joint) => Ok(Destination::File(out.to_owned())),
            (false, _) => Ok(Destination::Folder(out.to_owned())),
        }
    }

    /// Checks that it can be written, and is neither one of the texts nor part of a model.
    fn check(&self, arguments: &Arguments) -> Result<()> {
        let texts = [&arguments.src, &arguments.tgt, &arguments.tsv].into_iter().flatten();
        let inputs: Vec<&Path> = texts.map(PathBuf::as_path).collect();
        match self {
            Destination::File(file) => arguments.force.open(file, &inputs).map(drop),
            Destination::Folder(folder) => arguments.force.check_vocabulary_folder(folder),
        }
    }

    fn save(&self, tokenizers: &Tokenizers) -> Result<()> {
        match self {
            Destination::Folder(folder) => tokenizers.save(folder)?,
            Destination::File(file) => tokenizers.source.save(file)?,
        }
        Ok(())
    }
}
