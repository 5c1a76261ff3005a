//! Learning and saving a vocabulary.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use heedful::data::tokenizer::{Sharing, Tokenizers, VocabularyOptions};
use heedful::data::{CorpusFiles, Input};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::Arguments;

pub(super) fn run(arguments: &Arguments, out: &Path) -> Result<()> {
    let place = Place::new(out, arguments.separate)?;
    let options = VocabularyOptions {
        kind: arguments.kind.into(),
        size: arguments.size,
        normalization: arguments.normalize.into(),
        boundaries: arguments.boundaries.into(),
        min_frequency: arguments.min_frequency,
        coverage: arguments.coverage,
    };
    let sharing = if arguments.separate { Sharing::Separate } else { Sharing::Joint };
    let files = CorpusFiles::new(&inputs(&arguments.src), &inputs(&arguments.tgt), &inputs(&arguments.tsv))?;
    let start = Instant::now();
    let talk = Talk::new(arguments.quiet);
    let mut read = 0;
    let tokenizers = Tokenizers::train(&files, &options, sharing, &mut |pairs| {
        read = pairs;
        talk.read(pairs);
    })?;
    place.save(&tokenizers)?;
    talk.finish();
    if !arguments.quiet {
        let sizes = match sharing {
            Sharing::Joint => format!("{} tokens", tokenizers.source.size()),
            Sharing::Separate => {
                format!("{} source and {} target tokens", tokenizers.source.size(), tokenizers.target.size())
            }
        };
        let seconds = start.elapsed().as_secs_f64();
        eprintln!("learned {sizes} from {read} pairs in {seconds:.1} s: {}", out.display());
    }
    Ok(())
}

fn inputs(paths: &[PathBuf]) -> Vec<Input> {
    paths.iter().map(Input::new).collect()
}

/// Where vocabularies are saved.
enum Place {
    Folder(PathBuf),
    File(PathBuf),
}

impl Place {
    fn new(out: &Path, separate: bool) -> Result<Place> {
        let is_file = out.extension().is_some_and(|extension| extension == "json");
        match (is_file, separate) {
            (true, true) => bail!("{} is one file, but --separate makes two: give a folder", out.display()),
            (true, false) => Ok(Place::File(out.to_owned())),
            (false, _) => Ok(Place::Folder(out.to_owned())),
        }
    }

    fn save(&self, tokenizers: &Tokenizers) -> Result<()> {
        match self {
            Place::Folder(folder) => tokenizers.save(folder)?,
            Place::File(file) => tokenizers.source.save(file)?,
        }
        Ok(())
    }
}

/// A counter on a terminal, nothing elsewhere.
struct Talk {
    spinner: Option<ProgressBar>,
}

impl Talk {
    fn new(quiet: bool) -> Talk {
        let spinner = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let style = ProgressStyle::with_template("{spinner} {msg}, {elapsed}").expect("a good template");
            let spinner = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).with_style(style);
            spinner.enable_steady_tick(Duration::from_millis(100));
            spinner
        });
        Talk { spinner }
    }

    fn read(&self, pairs: u64) {
        if let Some(spinner) = &self.spinner {
            spinner.set_message(format!("{pairs} pairs read, learning pieces"));
        }
    }

    fn finish(&self) {
        if let Some(spinner) = &self.spinner {
            spinner.finish_and_clear();
        }
    }
}
