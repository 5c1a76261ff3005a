//! `heedful export`: a model of ours as a folder of another project.
//!
//! | format | models |
//! |---|---|
//! | CTranslate2 | translators, language models, encoders of masked language models (`ctranslate2`) |
//! | Hugging Face | translators as MarianMT or Pegasus, language models as GPT-2 or OPT, masked language models as BERT or Megatron-BERT (`huggingface`) |
//!
//! What a format cannot express is refused by name before anything is written (`refusals`). Importing an export gives the same
//! weights, bit for bit: both go by the same tables of names.

mod original;
mod refusals;
mod spread;
mod vocabulary;

mod ctranslate2;
mod huggingface;

use std::fs;
use std::io;
use std::path::Path;

use serde_json::Value;

use self::original::Original;
use self::refusals::Refusals;
use crate::models::EncoderDecoderConfig;
use crate::store::durable;
use crate::store::formats::ctranslate2::Ctranslate2Contents;
use crate::store::formats::huggingface::write;
use crate::store::formats::written::WrittenTensor;
use crate::tasks::ModelConfig;
use crate::tasks::language::LanguageStack;
use crate::{Error, Result};

/// A project that models are exported for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// CTranslate2's `model.bin`.
    Ctranslate2,
    /// Hugging Face's transformers.
    HuggingFace,
}

/// A model in the files of another project, ready to be written.
pub struct Exported {
    kind: &'static str,
    files: Vec<(String, Contents)>,
}

/// What a file holds.
enum Contents {
    Bytes(Vec<u8>),
    Safetensors(Vec<WrittenTensor>),
    Ctranslate2(Ctranslate2Contents),
}

/// Reads the folder of a model or of a training run, and makes the files of another project of it. Nothing is written.
pub fn prepare(model: impl AsRef<Path>, format: ExportFormat) -> Result<Exported> {
    let model = model.as_ref();
    let original = Original::open(model)?;
    match (&original.config, format) {
        (ModelConfig::Translate(EncoderDecoderConfig::Transformer(config)), ExportFormat::Ctranslate2) => {
            ctranslate2::translator(&original, config)
        }
        (ModelConfig::Translate(EncoderDecoderConfig::Transformer(config)), ExportFormat::HuggingFace) => {
            huggingface::translator(&original, config)
        }
        (ModelConfig::Language(config), format) => match (&config.stack, format) {
            (LanguageStack::Transformer(stack), ExportFormat::Ctranslate2) => {
                ctranslate2::language(&original, config, stack)
            }
            (LanguageStack::Transformer(stack), ExportFormat::HuggingFace) => {
                huggingface::language(&original, config, stack)
            }
            (LanguageStack::Recurrent(_), _) => Err(other_model(&original, format)),
        },
        (ModelConfig::Masked(config), ExportFormat::Ctranslate2) => ctranslate2::masked(&original, config),
        (ModelConfig::Masked(config), ExportFormat::HuggingFace) => huggingface::masked(&original, config),
        _ => Err(other_model(&original, format)),
    }
}

/// The error about a family or a task that neither format has.
fn other_model(original: &Original, format: ExportFormat) -> Error {
    let mut refusals = Refusals::default();
    refusals.add(true, || {
        format!("{} of the {} family", original.config.task().model(), original.config.family())
    });
    let name = match format {
        ExportFormat::Ctranslate2 => "a CTranslate2 model",
        ExportFormat::HuggingFace => "a Hugging Face model",
    };
    let remedy = "Transformers are exported: translators, language models and masked language models";
    refusals.check(original, name, remedy).expect_err("there is a reason")
}

fn unwritable(path: &Path, error: &io::Error) -> Error {
    Error::new(format!("cannot write {}: {error}", path.display()))
}

impl Exported {
    fn new(kind: &'static str, original: &Original) -> Exported {
        let files =
            original.origin.iter().map(|(name, bytes)| ((*name).to_owned(), Contents::Bytes(bytes.clone())));
        Exported { kind, files: files.collect() }
    }

    /// What the model has become, with its article.
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// The names of its files, those in folders with these.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|(name, _)| name.as_str())
    }

    /// Writes the folder, creating it if needed; vocabularies of another export that was there are removed. The weights come last:
    /// without them there is no model.
    pub fn save(&self, folder: impl AsRef<Path>) -> Result<()> {
        let folder = folder.as_ref();
        let is_stale =
            |name: &&str| self.names().all(|written| written != *name) && folder.join(name).exists();
        for path in vocabulary::FILES.into_iter().filter(is_stale).map(|name| folder.join(name)) {
            fs::remove_file(&path).map_err(|error| unwritable(&path, &error))?;
        }
        for (name, contents) in &self.files {
            let path = folder.join(name);
            let above = path.parent().unwrap_or(folder);
            fs::create_dir_all(above).map_err(|error| unwritable(above, &error))?;
            match contents {
                Contents::Bytes(bytes) => durable::write_bytes(&path, bytes)?,
                Contents::Safetensors(tensors) => {
                    durable::write(&path, write::bytes(tensors), |out| write::write(out, tensors))?;
                }
                Contents::Ctranslate2(contents) => {
                    durable::write(&path, contents.bytes(), |out| contents.write(out))?;
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, name: impl Into<String>, contents: Contents) {
        self.files.push((name.into(), contents));
    }

    fn add_bytes(&mut self, name: &str, bytes: &[u8]) {
        self.add(name, Contents::Bytes(bytes.to_vec()));
    }

    fn add_json(&mut self, name: &str, value: &Value) {
        let text = serde_json::to_string_pretty(value).expect("names and numbers");
        self.add(name, Contents::Bytes(format!("{text}\n").into_bytes()));
    }

    fn add_text(&mut self, name: &str, text: &str) {
        self.add_bytes(name, text.as_bytes());
    }

    /// Adds the weights.
    fn finish(mut self, original: &Original, (name, weights): (&'static str, Contents)) -> Result<Exported> {
        if let Contents::Ctranslate2(contents) = &weights {
            let mut refusals = Refusals::default();
            if let Some(variable) = contents.first_too_large() {
                refusals.add(true, || format!("variables of more than 4 GiB, as `{variable}` would be"));
            }
            refusals.check(original, "a CTranslate2 model", "Train a smaller model")?;
        }
        self.add(name, weights);
        Ok(self)
    }
}

/// A number of ours with no more digits than it has, for files that people read.
fn shortest(number: f32) -> f64 {
    number.to_string().parse().unwrap_or(f64::from(number))
}
