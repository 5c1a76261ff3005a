//! The model that is exported, with what lies beside it in its folder.

use std::path::{Path, PathBuf};

use crate::Result;
use crate::data::tokenizer::Tokenizers;
use crate::exchange::origin;
use crate::layers::Positions;
use crate::store::weights::Weights;
use crate::tasks::ModelConfig;
use crate::tasks::folder::{ModelFolder, beside};
use crate::tasks::open::trained_length;

/// Rows of a table of sines and cosines, which has an end in other projects: longer than texts are by far.
const POSITIONS: usize = 2048;

pub(super) struct Original {
    pub(super) path: PathBuf,
    pub(super) config: ModelConfig,
    pub(super) tokenizers: Tokenizers,
    /// The SentencePiece models of sources and of targets, if the vocabularies were made of such.
    pub(super) pieces: Option<[Vec<u8>; 2]>,
    /// Files on where the model is from, and under which licence.
    pub(super) origin: Vec<(&'static str, Vec<u8>)>,
    trained: Option<usize>,
    folder: ModelFolder,
}

impl Original {
    /// Opens a folder; its weights are read by [`Original::weights`].
    pub(super) fn open(path: &Path) -> Result<Original> {
        let folder = ModelFolder::open(path)?;
        let block = match &folder.config {
            ModelConfig::Language(config) => config.block,
            _ => None,
        };
        let mut known = Vec::new();
        for name in origin::names() {
            known.extend(beside(path, name)?.map(|text| (name, text)));
        }
        Ok(Original {
            path: path.to_owned(),
            config: folder.config.clone(),
            tokenizers: folder.tokenizers()?,
            pieces: folder.pieces().map(|sides| sides.map(<[u8]>::to_vec)),
            origin: known,
            trained: trained_length(path).max(block),
            folder,
        })
    }

    /// Its parameters as f32, those of fewer bits too.
    pub(super) fn weights(&self) -> Result<Weights> {
        Ok(self.folder.weights()?)
    }

    /// How many positions a table of this kind has.
    pub(super) fn longest(&self, positions: Positions) -> usize {
        positions.longest().unwrap_or(POSITIONS.max(self.trained.unwrap_or(0)))
    }
}
