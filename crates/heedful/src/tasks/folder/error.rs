//! Why a model's folder cannot be used.

use std::io;
use std::path::{Path, PathBuf};

use super::MODEL;
use crate::store::durable::WriteError;
use crate::store::formats::FormatError;
use crate::store::seal::SealDifference;
use crate::store::weights::{WeightsFileError, WeightsMismatch};
use crate::tasks::ConfigError;

/// Why a model's folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The path is neither a folder nor a package.
    #[error(
        "{path} is not a folder: give the folder of a model or of a training run, or a package made by heedful pack"
    )]
    NoFolder {
        /// The path.
        path: PathBuf,
    },
    /// The file is an archive of something else.
    #[error(
        "{path} is not the package of a model: it has no {MODEL}. heedful pack makes packages; models of other projects have to be \
         imported (heedful import)"
    )]
    NoPackage {
        /// The file.
        path: PathBuf,
    },
    /// A package cannot be read.
    #[error(transparent)]
    Package(#[from] FormatError),
    /// A write into a package, which is read-only.
    #[error(
        "{path} is a packed model, which is only read: make a folder of it first (heedful import {path} -o FOLDER)"
    )]
    Packed {
        /// The file.
        path: PathBuf,
    },
    /// The folder has no `config.json`.
    #[error("{path} is missing: give the folder of a model or of a training run")]
    NoConfig {
        /// The file.
        path: PathBuf,
    },
    /// The folder has no weights: the training run has not saved a model yet.
    #[error("{path} is missing: a training run writes it at its first validation or at its end")]
    NoModel {
        /// The file.
        path: PathBuf,
    },
    /// The folder has no vocabulary.
    #[error("{path} is missing: copy the vocabulary that the model was trained with into the folder")]
    NoTokenizer {
        /// The file.
        path: PathBuf,
    },
    /// The folder has both a joint vocabulary and one for a side.
    #[error(
        "{folder} has both a tokenizer.json and one for a side alone: remove the one that the model was not trained with"
    )]
    TwoTokenizers {
        /// The folder.
        folder: PathBuf,
    },
    /// `config.json` is not JSON, or a field is missing, unknown or of another type.
    #[error("{path} is not the configuration of a model: {cause}")]
    Config {
        /// The file.
        path: PathBuf,
        /// Where and why.
        cause: serde_json::Error,
    },
    /// The configuration is inconsistent: no model can be built from it.
    #[error("{path}: {cause}")]
    Unbuildable {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: ConfigError,
    },
    /// The file has another version of the format.
    #[error(
        "{path} has format {found}, this program reads format {}: use the version of heedful that wrote it",
        super::FORMAT
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: String,
    },
    /// A file does not match the seal of the weights.
    #[error(
        "{}: copy the whole folder of the model again; if you changed it on purpose, run: heedful seal {}",
        difference(path, weights, sealed.as_deref(), found.as_deref()),
        folder.display()
    )]
    Differs {
        /// The file.
        path: PathBuf,
        /// The weights.
        weights: PathBuf,
        /// The folder of both.
        folder: PathBuf,
        /// Size and hash of the file in the seal.
        sealed: Option<String>,
        /// Size and hash of the file in the folder.
        found: Option<String>,
    },
    /// The weights have no seal.
    #[error(
        "{path} does not say which files belong to it: another program wrote it, or an earlier heedful. If the files of the \
         folder are one model, run: heedful seal {}",
        folder.display()
    )]
    Unsealed {
        /// The weights.
        path: PathBuf,
        /// Their folder.
        folder: PathBuf,
    },
    /// The header of the weights cannot be read.
    #[error(
        "the weights {path} cannot be used: it is truncated or not a safetensors file ({cause}); copy the file again"
    )]
    Header {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// The file of weights is damaged.
    #[error("the weights {path} cannot be used: {damage}; copy the file again")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The damage.
        damage: WeightsFileError,
    },
    /// The file has no weights.
    #[error("{path} contains no weights: copy the file again")]
    NoWeights {
        /// The file.
        path: PathBuf,
    },
    /// A parameter has values that are infinite or NaN.
    #[error(
        "`{name}` in {path} has values that are infinite or NaN: the training run diverged, use an earlier model"
    )]
    NotFinite {
        /// The parameter.
        name: String,
        /// The file.
        path: PathBuf,
    },
    /// The weights do not fit the configuration.
    #[error("{path} does not fit {config}: {mismatch}; both files must belong to the same model")]
    WeightsMismatch {
        /// The weights.
        path: PathBuf,
        /// The configuration.
        config: PathBuf,
        /// The damage.
        mismatch: WeightsMismatch,
    },
    /// A file cannot be read.
    #[error("cannot read {path}: {cause}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// A file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl crate::error::Cause for FolderError {}

impl FolderError {
    pub(super) fn read(path: &Path, cause: io::Error) -> FolderError {
        FolderError::Read { path: path.to_owned(), cause }
    }

    /// The error for a file in `folder` that does not match the seal of the weights.
    pub(crate) fn differs(folder: &Path, difference: SealDifference) -> FolderError {
        let SealDifference { name, sealed, found } = difference;
        let (path, weights) = (folder.join(name), folder.join(MODEL));
        FolderError::Differs { path, weights, folder: folder.to_owned(), sealed, found }
    }

    pub(super) fn unsealed(weights: &Path) -> FolderError {
        let folder = weights.parent().unwrap_or(Path::new("."));
        FolderError::Unsealed { path: weights.to_owned(), folder: folder.to_owned() }
    }

    pub(super) fn write(path: &Path, cause: io::Error) -> FolderError {
        WriteError::Failed { path: path.to_owned(), cause }.into()
    }
}

fn difference(path: &Path, weights: &Path, sealed: Option<&str>, found: Option<&str>) -> String {
    let (path, weights) = (path.display(), weights.display());
    match (sealed, found) {
        (Some(sealed), Some(found)) => {
            format!("{path} is not the file that {weights} was saved with ({found}, not {sealed})")
        }
        (Some(_), None) => format!("{path} is missing, but {weights} was saved with it"),
        (None, _) => format!("{path} is not one of the files that {weights} was saved with"),
    }
}
