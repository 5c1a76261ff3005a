//! The model that is exported, with the other files of its folder.

use std::path::{Path, PathBuf};

use crate::Result;
use crate::data::tokenizer::Tokenizers;
use crate::exchange::origin;
use crate::layers::Positions;
use crate::store::weights::Weights;
use crate::tasks::ModelConfig;
use crate::tasks::folder::{ModelFolder, read_model_file};
use crate::tasks::open::trained_length;

/// Rows of a table of sinusoids, which is finite in other projects: far longer than usual texts.
const POSITIONS: usize = 2048;

pub(super) struct LoadedModel {
    pub(super) path: PathBuf,
    pub(super) config: ModelConfig,
    pub(super) tokenizers: Tokenizers,
    /// The SentencePiece models of sources and targets, if the vocabularies were made from them.
    pub(super) pieces: Option<[Vec<u8>; 2]>,
    /// Origin and licence files.
    pub(super) origin: Vec<(&'static str, Vec<u8>)>,
    trained: Option<usize>,
    folder: ModelFolder,
}

impl LoadedModel {
    /// Opens a folder; its weights are read by [`LoadedModel::weights`].
    pub(super) fn open(path: &Path) -> Result<LoadedModel> {
        let folder = ModelFolder::open(path)?;
        let block = match &folder.config {
            ModelConfig::Language(config) => config.block,
            _ => None,
        };
        let mut origin_files = Vec::new();
        for name in origin::names() {
            origin_files.extend(read_model_file(path, name)?.map(|text| (name, text)));
        }
        Ok(LoadedModel {
            path: path.to_owned(),
            config: folder.config.clone(),
            tokenizers: folder.tokenizers()?,
            pieces: folder.pieces().map(|sides| sides.map(<[u8]>::to_vec)),
            origin: origin_files,
            trained: trained_length(path).max(block),
            folder,
        })
    }

    /// Its parameters, converted to f32.
    pub(super) fn weights(&self) -> Result<Weights> {
        Ok(self.folder.weights()?)
    }

    /// Number of rows of the position table.
    pub(super) fn longest(&self, positions: Positions) -> usize {
        positions.longest().unwrap_or(POSITIONS.max(self.trained.unwrap_or(0)))
    }
}
