//! A model on disk: a folder.
//!
//! ```text
//! config.json                its task, its family, its configuration, the version of this format, perhaps its languages
//! model.safetensors          every parameter by name, f32, bf16 or int8; its metadata is the seal
//! tokenizer.json             one vocabulary for both sides, or
//! source.tokenizer.json      one for each
//! target.tokenizer.json
//! labels.json                the names of a classifier's labels
//! shortlist.bin              which target tokens a source may need, if that was learned
//! sentencepiece.model        the SentencePiece model that the vocabulary was made of, or those of both sides
//! source.spm, target.spm
//! ```
//!
//! The seal names the other files with their sizes and hashes, and has a checksum of the weights: the files know each other,
//! and one that is damaged, missing or another model's is refused. It is part of the weights because these are written last
//! and replaced atomically: at every moment there is one whole model or none. [`ModelFolder::seal`] renews it.
//!
//! The folder of a training run is a model's folder too: it holds the best model so far. The file that [`crate::tasks::package`]
//! makes of a folder is opened as the folder is, and never written into (`place`).

mod config;
mod error;
mod files;
mod place;

use std::path::{Path, PathBuf};

pub use config::Languages;
pub use error::FolderError;
use files::ModelFiles;
pub use files::{MODEL_FILES, TokenizerFiles};
use heedful_tensor::{Params, Precision};
pub(crate) use place::Place;
pub use place::{beside, is_package};

use crate::Result;
use crate::data::labels::{LABELS_FILE, Labels, LabelsError};
use crate::data::shortlist::{SHORTLIST_FILE, Shortlist, ShortlistError};
use crate::data::tokenizer::{JOINT_FILE, JOINT_PIECES, SIDE_PIECES, SOURCE_FILE, TARGET_FILE, Tokenizers};
use crate::data::{Tokenizer, TokenizerError};
use crate::models::Model;
use crate::store::durable;
use crate::store::formats::FileBytes;
use crate::store::seal::Seal;
use crate::store::weights::file::{Checksum, Contents, Opened, StoredTensor};
use crate::store::weights::narrow::{self, InstallError, NarrowWeights};
use crate::store::weights::{Metadata, Weights, WeightsFileError, WeightsMismatch};
use crate::tasks::ModelConfig;

/// The version of the format, in `config.json` and in `model.safetensors`.
pub const FORMAT: u64 = 2;

const CONFIG: &str = "config.json";
/// The weights.
pub const MODEL: &str = "model.safetensors";

/// A model's folder, or its package, with its configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelFolder {
    /// Where it is.
    pub path: PathBuf,
    /// The model's configuration.
    pub config: ModelConfig,
    /// Those of a translator, if they are known.
    pub languages: Option<Languages>,
    files: ModelFiles,
}

impl ModelFolder {
    /// Reads all files but the weights, and checks that they are those that the weights were saved with. A training run
    /// that has not saved a model yet can be opened too.
    pub fn open(path: &Path) -> Result<ModelFolder, FolderError> {
        let place = Place::of(path)?;
        let seal = if place.has(MODEL) { Some(read_seal(path, &place)?) } else { None };
        ModelFolder::read(path, &place, seal.as_ref())
    }

    fn read(path: &Path, place: &Place, seal: Option<&Seal>) -> Result<ModelFolder, FolderError> {
        if !place.has(CONFIG) {
            return Err(FolderError::NoConfig { path: path.join(CONFIG) });
        }
        let files = ModelFiles::read(place, seal)?;
        match seal {
            Some(seal) => files.check(path, seal)?,
            None => drop(TokenizerFiles::find(path)?),
        }
        let (config, languages) = config::parse(&path.join(CONFIG), files.get(CONFIG).unwrap_or_default())?;
        Ok(ModelFolder { path: path.to_owned(), config, languages, files })
    }

    /// Writes a folder, creating it if needed: configuration, vocabularies, and the names of a classifier's labels.
    /// [`ModelFolder::save`] adds the weights.
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
        Ok(ModelFolder { path: path.to_owned(), config, languages: None, files })
    }

    /// Records the languages of a translator. [`ModelFolder::save`] seals them.
    pub(crate) fn set_languages(&mut self, languages: Languages) -> Result<(), FolderError> {
        let config = config::to_json(&self.config, Some(&languages)).into_bytes();
        durable::write_bytes(&self.path.join(CONFIG), &config)?;
        self.files.add(CONFIG, config);
        self.languages = Some(languages);
        Ok(())
    }

    /// Adds a SentencePiece model that a vocabulary was made of, for other programs. [`ModelFolder::save`] seals it.
    pub(crate) fn add_pieces(&mut self, name: &'static str, bytes: &[u8]) -> Result<(), FolderError> {
        durable::write_bytes(&self.path.join(name), bytes)?;
        self.files.add(name, bytes.to_vec());
        Ok(())
    }

    /// The SentencePiece models of sources and of targets, if the vocabularies were made of such.
    pub(crate) fn pieces(&self) -> Option<[&[u8]; 2]> {
        let side = |name: &str| self.files.get(JOINT_PIECES).or(self.files.get(name));
        Some([side(SIDE_PIECES[0])?, side(SIDE_PIECES[1])?])
    }

    /// Writes another folder for the same model: its configuration, its vocabularies, the names of its labels.
    pub fn copy_to(&self, path: &Path) -> Result<ModelFolder, FolderError> {
        self.files.write(path)?;
        Ok(ModelFolder { path: path.to_owned(), ..self.clone() })
    }

    /// Replaces the folder's weights atomically: a kill at any moment leaves the old ones or the new ones. The other files,
    /// as they were opened or created, are sealed with them.
    pub fn save(&self, weights: &Weights) -> Result<(), FolderError> {
        self.write(self.metadata(), Vec::new(), weights)
    }

    /// [`ModelFolder::save`] with the weights of products in fewer bits: bf16 or int8. Returns how many matrices these are.
    pub fn save_narrow(&self, params: &Params, precision: Precision) -> Result<usize, FolderError> {
        let narrow = NarrowWeights::of(params, precision);
        let mut metadata = self.metadata();
        metadata.extend(narrow.metadata());
        self.write(metadata, narrow.tensors(), &narrow.rest)?;
        Ok(narrow.len())
    }

    /// Writes a folder, which may be this one, with the same model and a shortlist. The weights are saved in the numbers that
    /// this folder has them in.
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

    /// In what numbers the weights of products are saved.
    pub fn precision(&self) -> Result<Precision, FolderError> {
        ModelFolder::precision_in(&self.path)
    }

    /// [`ModelFolder::precision`] of a folder that is not opened: only the header of its weights is read.
    pub fn precision_in(folder: &Path) -> Result<Precision, FolderError> {
        Ok(narrow::precision(&Place::of(folder)?.metadata()?))
    }

    /// The checksum of the weights, which seals the other files too: another model has another one. It is checked against the
    /// bytes when the weights are read.
    pub fn checksum(&self) -> Result<String, FolderError> {
        let (path, place) = (self.path.join(MODEL), Place::of(&self.path)?);
        if !place.has(MODEL) {
            return Err(FolderError::NoModel { path });
        }
        place.metadata()?.get("checksum").cloned().ok_or_else(|| FolderError::unsealed(&path))
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

    /// Seals a folder whose files were changed on purpose, or written by another program. The weights must fit the
    /// configuration; damaged ones are refused.
    pub fn seal(path: &Path) -> Result<ModelFolder> {
        let place = Place::of(path)?;
        if matches!(place, Place::Package(_)) {
            return Err(FolderError::Packed { path: path.to_owned() }.into());
        }
        let folder = ModelFolder::read(path, &place, None)?;
        let model = folder.build()?;
        folder.install_where(|_| Ok(()), model.params())?;
        folder.shortlist(&folder.tokenizers()?)?;
        if folder.files.get(LABELS_FILE).is_some() {
            folder.labels()?;
        }
        folder.save_in(model.params(), folder.precision()?)?;
        Ok(folder)
    }

    /// Seals the weights of the folder, if there are any, with its other files as they were created: a resumed run may have
    /// changed its configuration.
    pub(crate) fn renew_seal(&self) -> Result<(), FolderError> {
        let place = Place::of(&self.path)?;
        if !place.has(MODEL) || read_seal(&self.path, &place)? == self.files.seal() {
            return Ok(());
        }
        self.save(&self.weights_where(|_| Ok(()))?)
    }

    /// Checks that the vocabularies and labels in the folder of a run are those that its model, if it has saved one, was
    /// saved with. Its configuration is not checked: the run writes it anew.
    pub fn check_text_files(path: &Path) -> Result<(), FolderError> {
        let place = Place::of(path)?;
        if !place.has(MODEL) {
            return Ok(());
        }
        let seal = read_seal(path, &place)?;
        let found = text_files_of(ModelFiles::read(&place, Some(&seal))?.seal());
        match text_files_of(seal).difference(&found) {
            None => Ok(()),
            Some(difference) => Err(FolderError::differs(path, difference)),
        }
    }

    /// The names of the files besides the weights.
    pub fn names(&self) -> Vec<String> {
        self.files.seal().names().map(str::to_owned).collect()
    }

    /// Sizes and hashes of the vocabularies and of the labels: what gives the model's numbers their meaning.
    pub(crate) fn text_files(&self) -> Seal {
        text_files_of(self.files.seal())
    }

    /// Reads the weights and builds the model.
    pub fn load(&self) -> Result<Box<dyn Model>, FolderError> {
        let model = self.build()?;
        self.install(model.params())?;
        Ok(model)
    }

    /// Reads the weights into a model that was built from the configuration.
    pub fn install(&self, params: &Params) -> Result<(), FolderError> {
        self.install_where(self.sealed(), params)
    }

    fn install_where(
        &self,
        accept: impl FnOnce(Option<Seal>) -> Result<(), FolderError>,
        params: &Params,
    ) -> Result<(), FolderError> {
        self.opened(accept, |opened, file| {
            opened.install(params, file).map_err(|error| match error {
                InstallError::File(damage) => FolderError::Damaged { path: self.path.join(MODEL), damage },
                InstallError::Mismatch(mismatch) => self.mismatch(mismatch),
                InstallError::NotFinite { name } => {
                    FolderError::NotFinite { name, path: self.path.join(MODEL) }
                }
            })
        })
    }

    /// Reads the weights, and checks that every byte of them and of the other files is as it was saved.
    pub fn weights(&self) -> Result<Weights, FolderError> {
        self.weights_where(self.sealed())
    }

    /// Accepts weights whose seal is that of the other files.
    fn sealed(&self) -> impl FnOnce(Option<Seal>) -> Result<(), FolderError> {
        |seal| {
            let sealed = seal.ok_or_else(|| FolderError::unsealed(&self.path.join(MODEL)))?;
            self.files.check(&self.path, &sealed)
        }
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

    /// Which target tokens a source may need, if that was learned; the vocabularies are those of the folder.
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

    /// Reads the weights if `accept` agrees with their seal; `None` is the seal of a file that has no checksum.
    fn weights_where(
        &self,
        accept: impl FnOnce(Option<Seal>) -> Result<(), FolderError>,
    ) -> Result<Weights, FolderError> {
        let path = self.path.join(MODEL);
        self.opened(accept, |file, _| {
            let weights =
                file.weights("").map_err(|damage| FolderError::Damaged { path: path.clone(), damage })?;
            let weights = weights.ok_or_else(|| FolderError::NoWeights { path: path.clone() })?;
            match weights.first_not_finite() {
                Some(name) => Err(FolderError::NotFinite { name: name.to_owned(), path: path.clone() }),
                None => Ok(weights),
            }
        })
    }

    /// Opens the file of the weights and uses it if `accept` agrees with its seal; `None` is the seal of a file that has no
    /// checksum.
    fn opened<R>(
        &self,
        accept: impl FnOnce(Option<Seal>) -> Result<(), FolderError>,
        work: impl FnOnce(&Opened<'_>, &FileBytes) -> Result<R, FolderError>,
    ) -> Result<R, FolderError> {
        let path = self.path.join(MODEL);
        let Some(bytes) = Place::of(&self.path)?.weights()? else {
            return Err(FolderError::NoModel { path });
        };
        let damaged = |damage| FolderError::Damaged { path: path.clone(), damage };
        let (file, is_sealed) = match Opened::new(&bytes, Checksum::First) {
            Err(WeightsFileError::NoChecksum) => (Opened::unverified(&bytes).map_err(damaged)?, false),
            opened => (opened.map_err(damaged)?, true),
        };
        if let Some(found) = file.metadata("format").filter(|found| *found != FORMAT.to_string()) {
            return Err(FolderError::Version { path, found: found.to_owned() });
        }
        accept(Seal::in_metadata(&file.all_metadata()).filter(|_| is_sealed))?;
        work(&file, &bytes)
    }
}

/// The seal of the vocabularies and of the labels.
fn text_files_of(seal: Seal) -> Seal {
    let seal = seal.without(CONFIG).without(SHORTLIST_FILE);
    SIDE_PIECES.into_iter().chain([JOINT_PIECES]).fold(seal, |seal, name| seal.without(name))
}

/// The seal of weights, from the header of their file alone.
fn read_seal(path: &Path, place: &Place) -> Result<Seal, FolderError> {
    let weights = &path.join(MODEL);
    let seal = Seal::in_metadata(&place.metadata()?).ok_or_else(|| FolderError::unsealed(weights))?;
    let names = |some: &[&str]| seal.names().any(|name| some.contains(&name));
    if !names(&[CONFIG]) || !names(&[JOINT_FILE, SOURCE_FILE, TARGET_FILE]) {
        let damage = WeightsFileError::Checksum;
        return Err(FolderError::Damaged { path: weights.to_owned(), damage });
    }
    Ok(seal)
}

#[cfg(test)]
mod tests;
