//! `heedful import`: converts a model of another project to heedful's format.
//!
//! | format | models |
//! |---|---|
//! | CTranslate2, Argos | Transformers, pre- and post-norm: translators, language models, encoders (`ctranslate2`) |
//! | Marian | translators, also with SSRU layers in the decoder (`marian`) |
//! | Hugging Face | MarianMT and Pegasus (`translator`), BERT and Megatron-BERT (`bert`, `bert_classifier`), GPT-2 (`gpt2`), OPT (`opt`) |
//!
//! An unsupported feature of a model is an error before anything is written. That includes every variable
//! that the import does not read (`importer`).

mod error;
mod importer;
mod pieces;
mod positions;

mod ctranslate2;
mod marian;
mod settings;
mod tables;

mod generation;
mod ids;
mod padding;

mod bert;
mod bert_classifier;
mod gpt2;
pub(super) mod huggingface;
mod opt;
mod translator;

use std::fs;
use std::path::Path;

pub(crate) use error::ImportError;
pub(super) use opt::OFFSET as OPT_OFFSET;
use pieces::SentencePieceFile;

use crate::data::labels::Labels;
use crate::data::tokenizer::Tokenizers;
use crate::models::Model;
use crate::store::durable::replace;
use crate::store::formats::{ForeignFormat, JsonObject, recognise};
use crate::store::weights::Weights;
use crate::tasks::ModelConfig;
use crate::tasks::folder::{Languages, ModelFolder, TokenizerFiles};

pub use crate::exchange::origin::ORIGIN;

/// An imported model, with everything that a heedful model folder needs.
pub struct Imported {
    /// Its configuration.
    pub config: ModelConfig,
    /// Its vocabularies.
    pub tokenizers: Tokenizers,
    /// The names of a classifier's labels.
    pub labels: Option<Labels>,
    /// The languages of a translator, if its files name them.
    pub languages: Option<Languages>,
    /// Its origin and licence, in Markdown.
    pub origin: String,
    /// Notes for the user about settings that were not imported.
    pub notes: Vec<String>,
    pieces: Vec<SentencePieceFile>,
    weights: Weights,
}

/// Reads a model of another project; its format is detected from its content. Nothing is written.
pub fn read(path: impl AsRef<Path>) -> crate::Result<Imported> {
    let path = path.as_ref();
    let mut imported = match recognise(path)? {
        ForeignFormat::Argos => ctranslate2::argos(path),
        ForeignFormat::Ctranslate2 => ctranslate2::folder(path),
        ForeignFormat::Marian(model) => marian::read(&model),
        ForeignFormat::HuggingFace => huggingface::read(path),
    }?;
    imported.check(path)?;
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    imported.origin = format!("# Origin\n\nImported from `{name}`.\n{}", imported.origin);
    Ok(imported)
}

/// The language codes in a settings file, such as `zh`.
fn languages(settings: &JsonObject, [source, target]: [&str; 2]) -> Option<Languages> {
    let code = |key: &str| {
        let code = settings.get(key)?.as_str()?.trim();
        (!code.is_empty()).then(|| code.to_owned())
    };
    Some(Languages { source: code(source)?, target: code(target)? })
}

impl Imported {
    /// Checks that the weights fit the configuration and are finite.
    fn check(&self, path: &Path) -> Result<(), ImportError> {
        let model = self.config.build(0)?;
        let file = path.display().to_string();
        self.weights
            .install(model.params())
            .map_err(|cause| ImportError::Weights { file: file.clone(), cause })?;
        match self.weights.first_not_finite() {
            Some(name) => Err(ImportError::NotFinite { file, name: name.to_owned() }),
            None => Ok(()),
        }
    }

    /// Every parameter by name.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// Its number of parameters.
    pub fn parameters(&self) -> usize {
        self.weights.iter().map(|(_, [rows, width], _)| rows * width).sum()
    }

    /// Writes the model's folder, creating it if needed.
    pub fn save(&self, folder: impl AsRef<Path>) -> crate::Result<()> {
        let folder = folder.as_ref();
        let created = fs::create_dir_all(folder);
        let write = |error| ImportError::Write { file: folder.join(ORIGIN).display().to_string(), error };
        created.map_err(write)?;
        replace(&folder.join(ORIGIN), |file| std::io::Write::write_all(file, self.origin.as_bytes()))
            .map_err(write)?;
        self.tokenizers.save(folder)?;
        let (tokenizers, labels) = (TokenizerFiles::find(folder)?, self.labels.as_ref());
        let mut saved = ModelFolder::create(folder, self.config.clone(), &tokenizers, labels)?;
        if let Some(languages) = &self.languages {
            saved.set_languages(languages.clone())?;
        }
        for file in &self.pieces {
            saved.add_pieces(file.name, &file.bytes)?;
        }
        Ok(saved.save(&self.weights)?)
    }
}
