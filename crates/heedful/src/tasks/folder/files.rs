//! The files of a model except its weights. Each is read once, so that the verified bytes are the ones in use
//! even if another model is copied into the folder at the same time.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use super::{CONFIG, FolderError, MODEL, ModelStorage, is_package};
use crate::data::labels::LABELS_FILE;
use crate::data::shortlist::SHORTLIST_FILE;
use crate::data::tokenizer::{JOINT_FILE, JOINT_PIECES, SIDE_PIECES, SOURCE_FILE, TARGET_FILE};
use crate::store::durable;
use crate::store::seal::Seal;

/// The names of all files that can belong to a model. Other files in its folder are ignored.
pub const MODEL_FILES: [&str; 10] = [
    CONFIG,
    MODEL,
    JOINT_FILE,
    SOURCE_FILE,
    TARGET_FILE,
    LABELS_FILE,
    SHORTLIST_FILE,
    JOINT_PIECES,
    SIDE_PIECES[0],
    SIDE_PIECES[1],
];

/// The files of a model's vocabularies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenizerFiles {
    /// One for both sides.
    Joint(PathBuf),
    /// One for each side.
    Separate {
        /// The vocabulary of the source.
        source: PathBuf,
        /// The vocabulary of the target.
        target: PathBuf,
    },
}

/// The contents of a model's files by name, except the weights.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct ModelFiles {
    bytes: BTreeMap<&'static str, Vec<u8>>,
}

impl ModelFiles {
    /// Reads the files that the seal lists; without a seal, those that exist.
    pub(super) fn read(storage: &ModelStorage, seal: Option<&Seal>) -> Result<ModelFiles, FolderError> {
        let is_sealed = |name: &str| seal.is_none_or(|seal| seal.names().any(|sealed| sealed == name));
        let mut files = ModelFiles::default();
        for name in MODEL_FILES.into_iter().filter(|name| *name != MODEL && is_sealed(name)) {
            if let Some(bytes) = storage.read(name)? {
                files.add(name, bytes);
            }
        }
        Ok(files)
    }

    pub(super) fn add(&mut self, name: &'static str, bytes: Vec<u8>) {
        self.bytes.insert(name, bytes);
    }

    /// Adds the vocabularies under their standard names.
    pub(super) fn add_tokenizers(&mut self, tokenizers: &TokenizerFiles) -> Result<(), FolderError> {
        let mut add = |name, path: &Path| {
            self.add(name, fs::read(path).map_err(|cause| FolderError::read(path, cause))?);
            Ok(())
        };
        match tokenizers {
            TokenizerFiles::Joint(file) => add(JOINT_FILE, file),
            TokenizerFiles::Separate { source, target } => {
                add(SOURCE_FILE, source)?;
                add(TARGET_FILE, target)
            }
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&[u8]> {
        self.bytes.get(name).map(Vec::as_slice)
    }

    pub(super) fn seal(&self) -> Seal {
        Seal::of(self.bytes.iter().map(|(name, bytes)| (*name, bytes.as_slice())))
    }

    /// Checks the files against the seal of the weights.
    pub(super) fn check(&self, folder: &Path, seal: &Seal) -> Result<(), FolderError> {
        match seal.difference(&self.seal()) {
            None => Ok(()),
            Some(difference) => Err(FolderError::differs(folder, difference)),
        }
    }

    /// Writes the files into a folder, each atomically.
    pub(super) fn write(&self, folder: &Path) -> Result<(), FolderError> {
        if is_package(folder) {
            return Err(FolderError::Packed { path: folder.to_owned() });
        }
        fs::create_dir_all(folder).map_err(|cause| FolderError::write(folder, cause))?;
        for (name, bytes) in &self.bytes {
            durable::write_bytes(&folder.join(name), bytes)?;
        }
        Ok(())
    }
}

/// Prints names, sizes and hashes: the contents are too large.
impl fmt::Debug for ModelFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.seal().fmt(f)
    }
}

impl TokenizerFiles {
    /// The vocabularies in a folder.
    pub fn find(folder: &Path) -> Result<TokenizerFiles, FolderError> {
        let [joint, source, target] = [JOINT_FILE, SOURCE_FILE, TARGET_FILE].map(|name| folder.join(name));
        match (joint.exists(), source.exists(), target.exists()) {
            (true, false, false) => Ok(TokenizerFiles::Joint(joint)),
            (false, true, true) => Ok(TokenizerFiles::Separate { source, target }),
            (true, ..) => Err(FolderError::TwoTokenizers { folder: folder.to_owned() }),
            (false, true, false) => Err(FolderError::NoTokenizer { path: target }),
            (false, false, true) => Err(FolderError::NoTokenizer { path: source }),
            (false, false, false) => Err(FolderError::NoTokenizer { path: joint }),
        }
    }
}
