//! SentencePiece models, which a model's folder keeps beside what is made of them: an export gives them to those who read nothing
//! else.

use std::path::Path;

use super::ImportError;
use crate::data::tokenizer::{JOINT_PIECES, SIDE_PIECES, SentencePiece};
use crate::store::formats::files::Files;
use crate::store::formats::{FileBytes, FormatError};

/// A SentencePiece model for the folder of a model.
#[derive(Clone, Debug)]
pub(super) struct PiecesFile {
    /// Its name there.
    pub(super) name: &'static str,
    pub(super) bytes: FileBytes,
}

/// Where a project has SentencePiece models.
pub(super) enum Pieces {
    Joint(SentencePiece),
    /// Of sources and of targets.
    Sides([SentencePiece; 2]),
}

impl Pieces {
    /// The model for sources and that for targets.
    pub(super) fn sides(&self) -> [&SentencePiece; 2] {
        match self {
            Pieces::Joint(joint) => [joint, joint],
            Pieces::Sides([source, target]) => [source, target],
        }
    }

    /// One model for both sides.
    pub(super) fn joint(label: &str, bytes: FileBytes) -> Result<(Pieces, Vec<PiecesFile>), ImportError> {
        let pieces = Pieces::Joint(SentencePiece::read(label, &bytes)?);
        Ok((pieces, vec![PiecesFile { name: JOINT_PIECES, bytes }]))
    }

    /// A model for each side.
    pub(super) fn separate(
        labels: [&str; 2],
        [source, target]: [FileBytes; 2],
    ) -> Result<(Pieces, Vec<PiecesFile>), ImportError> {
        let pieces = [SentencePiece::read(labels[0], &source)?, SentencePiece::read(labels[1], &target)?];
        let files = SIDE_PIECES.into_iter().zip([source, target]);
        Ok((Pieces::Sides(pieces), files.map(|(name, bytes)| PiecesFile { name, bytes }).collect()))
    }

    /// Those of these names, which must be there.
    pub(super) fn of_sides(
        files: &Files,
        [source, target]: [&str; 2],
    ) -> Result<(Pieces, Vec<PiecesFile>), ImportError> {
        let labels = [files.label(source), files.label(target)];
        let bytes = [files.get(source)?, files.get(target)?];
        Pieces::separate([&labels[0], &labels[1]], bytes)
    }

    /// Files of these paths: one for both sides, or one for each.
    pub(super) fn open(paths: &[&Path]) -> Result<(Pieces, Vec<PiecesFile>), ImportError> {
        let label = |path: &Path| path.display().to_string();
        let open = |path: &Path| -> Result<FileBytes, FormatError> { FileBytes::open(path) };
        match paths {
            [source, target] => {
                Pieces::separate([&label(source), &label(target)], [open(source)?, open(target)?])
            }
            _ => {
                let joint = paths.first().copied().unwrap_or(Path::new(""));
                Pieces::joint(&label(joint), open(joint)?)
            }
        }
    }
}
