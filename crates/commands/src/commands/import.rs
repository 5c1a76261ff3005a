//! `heedful import`: converts models of other projects.

use std::path::PathBuf;

use anyhow::Result;
use heedful::exchange::import;
use heedful::tasks::Task;
use heedful::tasks::package::{self, Package};

use crate::output::Force;
use crate::progress::{Bar, Quiet, Verbosity};

/// Convert a CTranslate2, Argos, Marian or Hugging Face model to heedful's format
///
/// The format is detected from the files: a CTranslate2 folder with its SentencePiece model, an .argosmodel,
/// Marian's .npz or .bin with its .spm in the same folder, or a Hugging Face folder of MarianMT (OPUS-MT),
/// Pegasus, BERT, Megatron-BERT, GPT-2 or OPT with safetensors. Quantized and half-precision weights become
/// f32; heedful quantize makes them small again. If heedful does not support a feature of the model, an error
/// names the feature and nothing is written. Settings of generation_config.json are applied or refused;
/// options that are flags in heedful, such as num_beams, are listed. The model's licence and origin are
/// written to ORIGIN.md. A package of heedful pack is unpacked to a folder.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// File or folder of the model
    path: PathBuf,
    /// Folder of the new model
    #[arg(short, long, value_name = "MODEL")]
    output: PathBuf,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    quiet: Quiet,
}

const EXAMPLES: &str = "\
Examples:
  heedful import translate-zh_en-1_9.argosmodel -o zh-en
  heedful translate zh-en < source.txt
  heedful quantize zh-en --to int8 -o zh-en-small";

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    arguments.force.check_empty_folder(&arguments.output, &[&arguments.path])?;
    if package::is_heedful_package(&arguments.path) {
        let model = Package::open(&arguments.path)?.unpack(&arguments.output)?;
        if arguments.quiet.verbosity() == Verbosity::Normal {
            eprintln!("{}: {}, unpacked", arguments.output.display(), model.config.summary());
        }
        return Ok(());
    }
    let bar = Bar::with_time_left(arguments.quiet.verbosity(), 0);
    bar.show(0, 0.0, || format!("reading {}", arguments.path.display()));
    let imported = import::read(&arguments.path)?;
    imported.save(&arguments.output)?;
    bar.finish();
    for note in &imported.notes {
        eprintln!("heedful: {note}");
    }
    if arguments.quiet.verbosity() == Verbosity::Normal {
        let output = arguments.output.display();
        let millions = imported.parameters() as f64 / 1e6;
        eprintln!("{output}: {}, {millions:.1} million parameters", imported.config.summary());
        let next = match imported.config.task() {
            Task::Translate => format!("heedful translate {output} < source.txt"),
            Task::Language => format!("heedful generate {output} --prompt \"Once upon a time\""),
            Task::Masked => format!("heedful train --task classify --init-from {output} …"),
            Task::Classify => format!("heedful classify {output} < texts.txt"),
        };
        eprintln!("try: {next}");
    }
    Ok(())
}
