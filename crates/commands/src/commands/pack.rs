//! `heedful pack`: packs a model into one file.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use heedful::tasks::folder::read_model_file;
use heedful::tasks::package::{self, EXAMPLES as EXAMPLES_FILE, MODEL_CARD};
use heedful::train::examples::examples as of_model;

use crate::output::Force;
use crate::progress::{Bar, Quiet, Verbosity};

/// Pack a model into one file for distribution
///
/// The file is a zip archive with weights, configuration and vocabulary; the model card, licence and origin;
/// and example texts, by default a few lines of the validation text. Checkpoints and training text are left
/// out, and of a run's recipe only the names of the text files and their lengths are included. Packing the
/// same model gives the same file, byte for byte. Every command and the Python package accept the file in
/// place of the folder, and `heedful import FILE -o FOLDER` unpacks it. Quantize a model first to make it
/// small.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Folder of a model or of a training run
    model: PathBuf,
    /// File to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Model card: languages, data, scores [default: MODEL_CARD.md in the model's folder]
    #[arg(id = "card", long = "card", value_name = "FILE")]
    model_card: Option<PathBuf>,
    /// Licence [default: LICENSE in the model's folder]
    #[arg(long, value_name = "FILE")]
    license: Option<PathBuf>,
    /// Example texts to try the model with, one per line [default: examples.txt in the model's folder, else
    /// lines of its validation text]
    #[arg(long, value_name = "FILE")]
    examples: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    quiet: Quiet,
}

const EXAMPLES: &str = "\
Examples:
  heedful quantize run --to int8 -o small
  heedful pack small -o en-de.zip --card card.md --license LICENSE
  heedful serve en-de.zip";

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let Arguments { model, output, model_card, license, examples, force, quiet } = arguments;
    let given = [(MODEL_CARD, model_card), ("LICENSE", license), (EXAMPLES_FILE, examples)];
    let mut inputs: Vec<&Path> = vec![model];
    inputs.extend(given.iter().filter_map(|(_, file)| file.as_deref()));
    let file = force.open(output, &inputs)?;
    let mut documents = Vec::new();
    for (name, path) in given {
        if let Some(path) = path {
            let text = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
            documents.push((name, text));
        }
    }
    let verbosity = quiet.verbosity();
    if examples.is_none() && read_model_file(model, EXAMPLES_FILE)?.is_none() {
        let texts = of_model(model);
        if verbosity == Verbosity::Normal {
            eprintln!("heedful: {}", about_examples(&texts));
        }
        if !texts.is_empty() {
            documents.push((EXAMPLES_FILE, (texts.join("\n") + "\n").into_bytes()));
        }
    }
    let bar = Bar::with_time_left(verbosity, 0);
    bar.show(0, 0.0, || format!("packing {}", model.display()));
    let packed = package::pack(model, &documents)?;
    bar.finish();
    file.finish_with(&packed)?;
    if verbosity == Verbosity::Normal {
        eprintln!("{}: {:.1} MB", output.display(), packed.len() as f64 / 1e6);
    }
    Ok(())
}

/// The message about examples that were chosen from the validation text.
fn about_examples(texts: &[String]) -> String {
    match texts {
        [] => {
            "the package has no example texts, so users cannot try the model with one: name a file of them \
               (--examples FILE), one per line"
                .to_owned()
        }
        [text] => {
            format!("the example text is “{text}”, from the validation text; --examples FILE names others")
        }
        [first, ..] => format!(
            "the {} example texts are from the validation text (“{first}” …); --examples FILE names others",
            texts.len()
        ),
    }
}
