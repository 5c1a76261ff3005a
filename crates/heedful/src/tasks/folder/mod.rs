//! A model on disk: a folder.
//!
//! ```text
//! config.json                task, family, configuration, version of this format, optionally the languages
//! model.safetensors          every parameter by name, in f32, bf16 or int8; its metadata contains the seal
//! tokenizer.json             one vocabulary for both sides, or
//! source.tokenizer.json      one for each side
//! target.tokenizer.json
//! labels.json                the names of a classifier's labels
//! shortlist.bin              candidate target tokens for each source token, if a shortlist was learned
//! sentencepiece.model        the SentencePiece model from which the vocabulary was converted, or those of both sides
//! source.spm, target.spm
//! ```
//!
//! Model folders are checksummed: the seal lists the other files with their sizes and hashes, and has a
//! checksum of the weights. A damaged, missing or mismatched file is rejected with its name. The seal is
//! part of the weights file because that file is written last and replaced atomically: at every moment
//! there is a complete model or none. [`ModelFolder::seal`] renews the seal.
//!
//! The folder of a training run is a model folder too: it contains the best model so far. A package
//! ([`crate::tasks::package`]) is opened like a folder, and is read-only (`storage`).

mod config;
mod error;
mod files;
mod install;
mod storage;

use std::path::{Path, PathBuf};

pub use config::Languages;
pub use error::FolderError;
use files::ModelFiles;
pub use files::{MODEL_FILES, TokenizerFiles};
use heedful_tensor::{Params, Precision};
pub(crate) use storage::ModelStorage;
pub use storage::{is_package, read_model_file};

use crate::Result;
use crate::data::labels::{LABELS_FILE, Labels, LabelsError};
use crate::data::shortlist::{SHORTLIST_FILE, Shortlist, ShortlistError};
use crate::data::tokenizer::{JOINT_FILE, JOINT_PIECES, SIDE_PIECES, SOURCE_FILE, TARGET_FILE, Tokenizers};
use crate::data::{Tokenizer, TokenizerError};
use crate::models::Model;
use crate::store::durable;
use crate::store::seal::Seal;
use crate::store::weights::file::{Checksum, Contents, StoredTensor};
use crate::store::weights::reduced::{self, ReducedWeights};
use crate::store::weights::{Metadata, Weights, WeightsFileError, WeightsMismatch};
use crate::tasks::ModelConfig;

/// The version of the format, in `config.json` and in `model.safetensors`.
pub const FORMAT: u64 = 2;

const CONFIG: &str = "config.json";
/// The weights.
pub const MODEL: &str = "model.safetensors";

/// The folder or package of a model, with its configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelFolder {
    /// The path of the folder or package.
    pub path: PathBuf,
    /// The model's configuration.
    pub config: ModelConfig,
    /// The languages of a translator, if known.
    pub languages: Option<Languages>,
    files: ModelFiles,
    /// The package in memory that was opened; other models are read at `path`.
    package: Option<ModelStorage>,
}

impl ModelFolder {
    /// Reads all files except the weights, and checks them against the seal. The folder of a training run
    /// without a saved model can be opened too.
    pub fn open(path: &Path) -> Result<ModelFolder, FolderError> {
        let storage = ModelStorage::of(path)?;
        let seal = if storage.has(MODEL) { Some(read_seal(path, &storage)?) } else { None };
        ModelFolder::read(path, &storage, seal.as_ref())
    }

    /// As [`ModelFolder::open`], for a package in memory; `name` is used in messages. It is read-only, like
    /// every package.
    pub fn of_package(name: &str, bytes: Vec<u8>) -> Result<ModelFolder, FolderError> {
        let (path, storage) = (Path::new(name), ModelStorage::in_memory(name, bytes)?);
        let seal = read_seal(path, &storage)?;
        let folder = ModelFolder::read(path, &storage, Some(&seal))?;
        Ok(ModelFolder { package: Some(storage), ..folder })
    }

    /// A document of the folder or package, such as its model card; `None` if it does not exist.
    pub fn document(&self, name: &str) -> Result<Option<Vec<u8>>, FolderError> {
        self.storage()?.read(name)
    }

    /// The files.
    pub(crate) fn storage(&self) -> Result<ModelStorage, FolderError> {
        self.package.clone().map_or_else(|| ModelStorage::of(&self.path), Ok)
    }

    fn read(path: &Path, storage: &ModelStorage, seal: Option<&Seal>) -> Result<ModelFolder, FolderError> {
        if !storage.has(CONFIG) {
            return Err(FolderError::NoConfig { path: path.join(CONFIG) });
        }
        let files = ModelFiles::read(storage, seal)?;
        match seal {
            Some(seal) => files.check(path, seal)?,
            None => drop(TokenizerFiles::find(path)?),
        }
        let (config, languages) = config::parse(&path.join(CONFIG), files.get(CONFIG).unwrap_or_default())?;
        Ok(ModelFolder { path: path.to_owned(), config, languages, files, package: None })
    }

    /// Writes a folder, creating it if needed: configuration, vocabularies, and the names of a classifier's
    /// labels. [`ModelFolder::save`] adds the weights.
    pub fn create(
        path: &Path,
        config: ModelConfig,
        tokenizers: &TokenizerFiles,
        labels: Option<&Labels>,
    ) -> Result<ModelFolder, FolderError> {
        let mut files = ModelFiles::default();
        files.add_tokenizers(tokenizers)?;
        files.add(CONFIG, config::to_json(&config, None).into_bytes());
        if let Some(labels) = labels {
            files.add(LABELS_FILE, labels.to_json().into_bytes());
        }
        files.write(path)?;
        Ok(ModelFolder { path: path.to_owned(), config, languages: None, files, package: None })
    }

    /// Records the languages of a translator. [`ModelFolder::save`] seals them.
    pub(crate) fn set_languages(&mut self, languages: Languages) -> Result<(), FolderError> {
        let config = config::to_json(&self.config, Some(&languages)).into_bytes();
        durable::write_bytes(&self.path.join(CONFIG), &config)?;
        self.files.add(CONFIG, config);
        self.languages = Some(languages);
        Ok(())
    }

    /// Adds the SentencePiece model that a vocabulary was converted from. [`ModelFolder::save`] seals it.
    pub(crate) fn add_pieces(&mut self, name: &'static str, bytes: &[u8]) -> Result<(), FolderError> {
        durable::write_bytes(&self.path.join(name), bytes)?;
        self.files.add(name, bytes.to_vec());
        Ok(())
    }

    /// The SentencePiece models of the source and target sides, if the vocabularies were converted from them.
    pub(crate) fn pieces(&self) -> Option<[&[u8]; 2]> {
        let side = |name: &str| self.files.get(JOINT_PIECES).or(self.files.get(name));
        Some([side(SIDE_PIECES[0])?, side(SIDE_PIECES[1])?])
    }

    /// Copies all files except the weights to another folder.
    pub fn copy_to(&self, path: &Path) -> Result<ModelFolder, FolderError> {
        self.files.write(path)?;
        Ok(ModelFolder { path: path.to_owned(), package: None, ..self.clone() })
    }

    /// Replaces the weights of the folder atomically: if the process is killed, either the old or the new
    /// weights remain. The seal covers the other files as they were opened or created.
    pub fn save(&self, weights: &Weights) -> Result<(), FolderError> {
        self.write(self.metadata(), Vec::new(), weights)
    }

    /// [`ModelFolder::save`] with matrix product weights in bf16 or int8; returns the number of matrices.
    pub fn save_narrow(&self, params: &Params, precision: Precision) -> Result<usize, FolderError> {
        let narrow = ReducedWeights::of(params, precision);
        let mut metadata = self.metadata();
        metadata.extend(narrow.metadata());
        self.write(metadata, narrow.tensors(), &narrow.rest)?;
        Ok(narrow.len())
    }

    /// Writes the model with a shortlist to a folder, which may be this one. The weights keep their precision.
    pub fn save_with_shortlist(
        &self,
        path: &Path,
        params: &Params,
        shortlist: &Shortlist,
    ) -> Result<ModelFolder, FolderError> {
        let precision = self.precision()?;
        let mut with_shortlist = self.clone();
        with_shortlist.files.add(SHORTLIST_FILE, shortlist.to_bytes());
        let folder = with_shortlist.copy_to(path)?;
        folder.save_in(params, precision)?;
        Ok(folder)
    }

    fn save_in(&self, params: &Params, precision: Precision) -> Result<(), FolderError> {
        match precision {
            Precision::F32 => self.save(&Weights::of(params)),
            narrow => self.save_narrow(params, narrow).map(drop),
        }
    }

    /// The precision of the saved weights of matrix products.
    pub fn precision(&self) -> Result<Precision, FolderError> {
        ModelFolder::precision_in(&self.path)
    }

    /// [`ModelFolder::precision`] of an unopened folder: reads only the header of the weights.
    pub fn precision_in(folder: &Path) -> Result<Precision, FolderError> {
        Ok(reduced::precision(&ModelStorage::of(folder)?.metadata()?))
    }

    /// The checksum of the weights and of the seal; it identifies the model and is verified on reading.
    pub fn checksum(&self) -> Result<String, FolderError> {
        let (path, storage) = (self.path.join(MODEL), self.storage()?);
        if !storage.has(MODEL) {
            return Err(FolderError::NoModel { path });
        }
        storage.metadata()?.get("checksum").cloned().ok_or_else(|| FolderError::unsealed(&path))
    }

    fn metadata(&self) -> Metadata {
        let mut metadata = Metadata::from([
            ("format".to_owned(), FORMAT.to_string()),
            ("task".to_owned(), self.config.task().to_string()),
        ]);
        metadata.extend(self.files.seal().to_metadata());
        metadata
    }

    fn write(
        &self,
        metadata: Metadata,
        tensors: Vec<StoredTensor<'_>>,
        weights: &Weights,
    ) -> Result<(), FolderError> {
        let contents = Contents { metadata, tensors, sets: vec![("", weights)], checksum: Checksum::First };
        Ok(durable::write(&self.path.join(MODEL), contents.bytes(), |out| contents.write(out))?)
    }

    /// Seals a folder whose files were changed deliberately or written by another program. The weights must
    /// fit the configuration; damaged weights are rejected.
    pub fn seal(path: &Path) -> Result<ModelFolder> {
        let storage = ModelStorage::of(path)?;
        if matches!(storage, ModelStorage::Package(_)) {
            return Err(FolderError::Packed { path: path.to_owned() }.into());
        }
        let folder = ModelFolder::read(path, &storage, None)?;
        let model = folder.build()?;
        folder.install_checked(|_| Ok(()), model.params())?;
        folder.shortlist(&folder.tokenizers()?)?;
        if folder.files.get(LABELS_FILE).is_some() {
            folder.labels()?;
        }
        folder.save_in(model.params(), folder.precision()?)?;
        Ok(folder)
    }

    /// Seals the weights of the folder, if any, with the other files as they were created: a resumed run
    /// may have changed the configuration.
    pub(crate) fn renew_seal(&self) -> Result<(), FolderError> {
        let storage = ModelStorage::of(&self.path)?;
        if !storage.has(MODEL) || read_seal(&self.path, &storage)? == self.files.seal() {
            return Ok(());
        }
        self.save(&self.weights_checked(|_| Ok(()))?)
    }

    /// Checks the vocabularies and labels in the folder of a run against the seal of its saved model, if
    /// any. The configuration is not checked: the run rewrites it.
    pub fn check_text_files(path: &Path) -> Result<(), FolderError> {
        let storage = ModelStorage::of(path)?;
        if !storage.has(MODEL) {
            return Ok(());
        }
        let seal = read_seal(path, &storage)?;
        let found = text_files_of(ModelFiles::read(&storage, Some(&seal))?.seal());
        match text_files_of(seal).difference(&found) {
            None => Ok(()),
            Some(difference) => Err(FolderError::differs(path, difference)),
        }
    }

    /// The names of the files besides the weights.
    pub fn names(&self) -> Vec<String> {
        self.files.seal().names().map(str::to_owned).collect()
    }

    /// Sizes and hashes of the vocabularies and labels, which map the model's ids to text.
    pub(crate) fn text_files(&self) -> Seal {
        text_files_of(self.files.seal())
    }

    /// Reads the weights and builds the model.
    pub fn load(&self) -> Result<Box<dyn Model>, FolderError> {
        let model = self.build()?;
        self.install(model.params())?;
        Ok(model)
    }

    /// The vocabularies.
    pub fn tokenizers(&self) -> Result<Tokenizers, TokenizerError> {
        let tokenizer = |name: &str, bytes| Tokenizer::from_bytes(&self.path.join(name), bytes);
        match [JOINT_FILE, SOURCE_FILE, TARGET_FILE].map(|name| self.files.get(name)) {
            [None, Some(source), Some(target)] => {
                Ok(Tokenizers::separate(tokenizer(SOURCE_FILE, source)?, tokenizer(TARGET_FILE, target)?))
            }
            [joint, ..] => Ok(Tokenizers::joint(tokenizer(JOINT_FILE, joint.unwrap_or_default())?)),
        }
    }

    /// The names of a classifier's labels.
    pub fn labels(&self) -> Result<Labels, LabelsError> {
        Labels::from_bytes(&self.path.join(LABELS_FILE), self.files.get(LABELS_FILE).unwrap_or_default())
    }

    /// The shortlist, if one was learned; `tokenizers` are those of the folder.
    pub fn shortlist(&self, tokenizers: &Tokenizers) -> Result<Option<Shortlist>, ShortlistError> {
        let sizes = [tokenizers.source.size(), tokenizers.target.size()];
        let parse = |bytes| Shortlist::from_bytes(&self.path.join(SHORTLIST_FILE), bytes, sizes);
        self.files.get(SHORTLIST_FILE).map(parse).transpose()
    }

    fn build(&self) -> Result<Box<dyn Model>, FolderError> {
        let path = || self.path.join(CONFIG);
        self.config.build(0).map_err(|cause| FolderError::Unbuildable { path: path(), cause })
    }

    fn mismatch(&self, mismatch: WeightsMismatch) -> FolderError {
        let [path, config] = [MODEL, CONFIG].map(|name| self.path.join(name));
        FolderError::WeightsMismatch { path, config, mismatch }
    }
}

/// The part of the seal that covers the vocabularies and labels.
fn text_files_of(seal: Seal) -> Seal {
    let seal = seal.without(CONFIG).without(SHORTLIST_FILE);
    SIDE_PIECES.into_iter().chain([JOINT_PIECES]).fold(seal, |seal, name| seal.without(name))
}

/// The seal, read from the header of the weights file.
fn read_seal(path: &Path, storage: &ModelStorage) -> Result<Seal, FolderError> {
    let weights = &path.join(MODEL);
    let seal = Seal::in_metadata(&storage.metadata()?).ok_or_else(|| FolderError::unsealed(weights))?;
    let names = |some: &[&str]| seal.names().any(|name| some.contains(&name));
    if !names(&[CONFIG]) || !names(&[JOINT_FILE, SOURCE_FILE, TARGET_FILE]) {
        let damage = WeightsFileError::Checksum;
        return Err(FolderError::Damaged { path: weights.to_owned(), damage });
    }
    Ok(seal)
}

#[cfg(test)]
mod tests;
