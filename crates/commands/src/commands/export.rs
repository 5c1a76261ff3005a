//! `heedful export`: converts models to the formats of other projects.

use std::path::PathBuf;

use anyhow::Result;
use clap::ValueEnum;
use heedful::exchange::export::{self, ExportFormat};
use heedful::tasks::folder::ModelFolder;
use heedful::tensor::Precision;

use crate::output::Force;
use crate::progress::{Bar, Quiet, Verbosity};

/// Convert a heedful model to CTranslate2 or Hugging Face format
///
/// Converts translators, language models and masked language models of the Transformer family, with their
/// tokenizer files. For CTranslate2, writes a folder for its Translator, Generator or Encoder with a script
/// that runs it; for transformers, MarianMT or Pegasus, GPT-2 or OPT, BERT or Megatron-BERT: whichever
/// computes the same function. If the target format does not support a feature of the model, an error names
/// the feature and nothing is written. Weights are written as f32 with the same values; heedful import
/// restores them bit for bit. ORIGIN.md and licences are copied.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Folder of a model or of a training run, or a package
    model: PathBuf,
    /// Target format
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: Format,
    /// Folder to write
    #[arg(short, long, value_name = "FOLDER")]
    output: PathBuf,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    quiet: Quiet,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// CTranslate2's model.bin with its vocabularies
    Ctranslate2,
    /// A folder for from_pretrained of Hugging Face's transformers
    Huggingface,
}

const EXAMPLES: &str = "\
Examples:
  heedful export run --to ctranslate2 -o translator
  python translator/translate.py < source.txt

  heedful export run --to huggingface -o for-transformers";

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    arguments.force.check_empty_folder(&arguments.output, &[&arguments.model])?;
    let bar = Bar::with_time_left(arguments.quiet.verbosity(), 0);
    bar.show(0, 0.0, || format!("reading {}", arguments.model.display()));
    let format = match arguments.to {
        Format::Ctranslate2 => ExportFormat::Ctranslate2,
        Format::Huggingface => ExportFormat::HuggingFace,
    };
    let exported = export::prepare(&arguments.model, format)?;
    exported.save(&arguments.output)?;
    bar.finish();
    if arguments.quiet.verbosity() == Verbosity::Normal {
        let output = arguments.output.display();
        eprintln!("{output}: {}", exported.kind());
        let narrow = ModelFolder::precision_in(&arguments.model)?;
        if narrow != Precision::F32 {
            let way = match arguments.to {
                Format::Ctranslate2 if narrow == Precision::Int8 => "compute_type=\"int8\"",
                Format::Ctranslate2 => "compute_type=\"bfloat16\"",
                Format::Huggingface => "dtype=torch.bfloat16",
            };
            eprintln!(
                "its {narrow} weights are written as f32, with the same values: load it with {way} to compute in {narrow}"
            );
        }
        match exported.names().find(|name| name.ends_with(".py")) {
            Some(script) => eprintln!("try: python {output}/{script}"),
            None => eprintln!("see {output}/README.md"),
        }
    }
    Ok(())
}
