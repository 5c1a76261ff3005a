//! SentencePiece models. A model's folder keeps them besides the tokenizers made from them, because some
//! export formats require them.

use std::path::Path;

use super::ImportError;
use crate::data::tokenizer::{JOINT_PIECES, SIDE_PIECES, SentencePiece};
use crate::store::formats::files::Files;
use crate::store::formats::{FileBytes, FormatError};

/// A SentencePiece file for a model's folder.
#[derive(Clone, Debug)]
pub(super) struct SentencePieceFile {
    /// Its name in the folder.
    pub(super) name: &'static str,
    pub(super) bytes: FileBytes,
}

/// The SentencePiece models of a translator.
pub(super) enum SentencePieceModels {
    Joint(SentencePiece),
    /// For sources and for targets.
    Sides([SentencePiece; 2]),
}

impl SentencePieceModels {
    /// The models for sources and for targets.
    pub(super) fn sides(&self) -> [&SentencePiece; 2] {
        match self {
            SentencePieceModels::Joint(joint) => [joint, joint],
            SentencePieceModels::Sides([source, target]) => [source, target],
        }
    }

    /// One model for both sides.
    pub(super) fn joint(
        label: &str,
        bytes: FileBytes,
    ) -> Result<(SentencePieceModels, Vec<SentencePieceFile>), ImportError> {
        let pieces = SentencePieceModels::Joint(SentencePiece::read(label, &bytes)?);
        Ok((pieces, vec![SentencePieceFile { name: JOINT_PIECES, bytes }]))
    }

    /// A model for each side.
    pub(super) fn separate(
        labels: [&str; 2],
        [source, target]: [FileBytes; 2],
    ) -> Result<(SentencePieceModels, Vec<SentencePieceFile>), ImportError> {
        let pieces = [SentencePiece::read(labels[0], &source)?, SentencePiece::read(labels[1], &target)?];
        let files = SIDE_PIECES.into_iter().zip([source, target]);
        Ok((
            SentencePieceModels::Sides(pieces),
            files.map(|(name, bytes)| SentencePieceFile { name, bytes }).collect(),
        ))
    }

    /// The models with these file names, which must exist.
    pub(super) fn of_sides(
        files: &Files,
        [source, target]: [&str; 2],
    ) -> Result<(SentencePieceModels, Vec<SentencePieceFile>), ImportError> {
        let labels = [files.label(source), files.label(target)];
        let bytes = [files.get(source)?, files.get(target)?];
        SentencePieceModels::separate([&labels[0], &labels[1]], bytes)
    }

    /// Opens files: one for both sides, or one for each.
    pub(super) fn open(
        paths: &[&Path],
    ) -> Result<(SentencePieceModels, Vec<SentencePieceFile>), ImportError> {
        let label = |path: &Path| path.display().to_string();
        let open = |path: &Path| -> Result<FileBytes, FormatError> { FileBytes::open(path) };
        match paths {
            [source, target] => SentencePieceModels::separate(
                [&label(source), &label(target)],
                [open(source)?, open(target)?],
            ),
            _ => {
                let joint = paths.first().copied().unwrap_or(Path::new(""));
                SentencePieceModels::joint(&label(joint), open(joint)?)
            }
        }
    }
}
