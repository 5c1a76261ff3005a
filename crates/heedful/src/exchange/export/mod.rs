//! `heedful export`: converts a heedful model to the format of another project.
//!
//! | format | models |
//! |---|---|
//! | CTranslate2 | translators, language models, encoders of masked language models (`ctranslate2`) |
//! | Hugging Face | translators as MarianMT or Pegasus, language models as GPT-2 or OPT, masked language models as BERT or Megatron-BERT (`huggingface`) |
//!
//! A model with features that a format cannot express is rejected with a list of them before anything is
//! written (`unsupported`). Importing an export restores the weights bit for bit: both use the same name
//! mappings.

mod exporter;
mod loaded_model;
mod unsupported;
mod vocabulary;

mod ctranslate2;
mod huggingface;

use std::fs;
use std::io;
use std::path::Path;

use serde_json::Value;

use self::loaded_model::LoadedModel;
use self::unsupported::UnsupportedFeatures;
use crate::models::EncoderDecoderConfig;
use crate::store::durable;
use crate::store::formats::ctranslate2::Ctranslate2Contents;
use crate::store::formats::huggingface::write;
use crate::store::formats::output_tensor::OutputTensor;
use crate::tasks::ModelConfig;
use crate::tasks::language::LanguageStack;
use crate::{Error, Result};

/// The format of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// CTranslate2's `model.bin`.
    Ctranslate2,
    /// Hugging Face's transformers.
    HuggingFace,
}

/// A converted model, ready to be written.
pub struct Exported {
    kind: &'static str,
    files: Vec<(String, Contents)>,
}

/// The contents of a file.
enum Contents {
    Bytes(Vec<u8>),
    Safetensors(Vec<OutputTensor>),
    Ctranslate2(Ctranslate2Contents),
}

/// Reads the folder of a model or of a training run and converts the model. Nothing is written.
pub fn prepare(model: impl AsRef<Path>, format: ExportFormat) -> Result<Exported> {
    let model = model.as_ref();
    let original = LoadedModel::open(model)?;
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
            (LanguageStack::Recurrent(_), _) => Err(unsupported_model(&original, format)),
        },
        (ModelConfig::Masked(config), ExportFormat::Ctranslate2) => ctranslate2::masked(&original, config),
        (ModelConfig::Masked(config), ExportFormat::HuggingFace) => huggingface::masked(&original, config),
        _ => Err(unsupported_model(&original, format)),
    }
}

/// The error for a family or a task that neither format supports.
fn unsupported_model(original: &LoadedModel, format: ExportFormat) -> Error {
    let mut unsupported = UnsupportedFeatures::default();
    unsupported.add(true, || {
        format!("{} of the {} family", original.config.task().model(), original.config.family())
    });
    let name = match format {
        ExportFormat::Ctranslate2 => "a CTranslate2 model",
        ExportFormat::HuggingFace => "a Hugging Face model",
    };
    let remedy = "Only Transformers can be exported: translators, language models and masked language models";
    unsupported.check(original, name, remedy).expect_err("an unsupported feature")
}

fn unwritable(path: &Path, error: &io::Error) -> Error {
    Error::new(format!("cannot write {}: {error}", path.display()))
}

impl Exported {
    fn new(kind: &'static str, original: &LoadedModel) -> Exported {
        let files =
            original.origin.iter().map(|(name, bytes)| ((*name).to_owned(), Contents::Bytes(bytes.clone())));
        Exported { kind, files: files.collect() }
    }

    /// The kind of the exported model, with an article: `a GPT-2 model of Hugging Face`.
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// The names of its files, relative to the export folder.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|(name, _)| name.as_str())
    }

    /// Writes the folder, creating it if needed, and removes stale vocabulary files of an earlier export. The
    /// weights are written last: a folder without them is not a model.
    pub fn save(&self, folder: impl AsRef<Path>) -> Result<()> {
        let folder = folder.as_ref();
        let is_stale =
            |name: &&str| self.names().all(|written| written != *name) && folder.join(name).exists();
        for path in vocabulary::FILES.into_iter().filter(is_stale).map(|name| folder.join(name)) {
            fs::remove_file(&path).map_err(|error| unwritable(&path, &error))?;
        }
        for (name, contents) in &self.files {
            let path = folder.join(name);
            let parent = path.parent().unwrap_or(folder);
            fs::create_dir_all(parent).map_err(|error| unwritable(parent, &error))?;
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
        let text = serde_json::to_string_pretty(value).expect("serializable settings");
        self.add(name, Contents::Bytes(format!("{text}\n").into_bytes()));
    }

    fn add_text(&mut self, name: &str, text: &str) {
        self.add_bytes(name, text.as_bytes());
    }

    /// Adds the weights.
    fn finish(
        mut self,
        original: &LoadedModel,
        (name, weights): (&'static str, Contents),
    ) -> Result<Exported> {
        if let Contents::Ctranslate2(contents) = &weights {
            let mut unsupported = UnsupportedFeatures::default();
            if let Some(variable) = contents.first_too_large() {
                unsupported.add(true, || format!("variables of more than 4 GiB, such as `{variable}`"));
            }
            unsupported.check(original, "a CTranslate2 model", "Train a smaller model")?;
        }
        self.add(name, weights);
        Ok(self)
    }
}

/// An f32 as the f64 with the same shortest decimal digits, for files that people read.
fn shortest(number: f32) -> f64 {
    number.to_string().parse().unwrap_or(f64::from(number))
}
