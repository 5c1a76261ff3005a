//! Reads the weights of a model.

use heedful_tensor::Params;

use super::{FORMAT, FolderError, MODEL, ModelFolder};
use crate::store::formats::FileBytes;
use crate::store::seal::Seal;
use crate::store::weights::file::{Checksum, WeightsFile};
use crate::store::weights::reduced::InstallError;
use crate::store::weights::{Weights, WeightsFileError};

impl ModelFolder {
    /// Reads the weights into a model that was built from the configuration.
    pub fn install(&self, params: &Params) -> Result<(), FolderError> {
        self.install_checked(self.matching_seal(), params)
    }

    pub(super) fn install_checked(
        &self,
        accept: impl FnOnce(Option<Seal>) -> Result<(), FolderError>,
        params: &Params,
    ) -> Result<(), FolderError> {
        self.with_weights_file(accept, |opened, file| {
            opened.install(params, file).map_err(|error| match error {
                InstallError::File(damage) => FolderError::Damaged { path: self.path.join(MODEL), damage },
                InstallError::Mismatch(mismatch) => self.mismatch(mismatch),
                InstallError::NotFinite { name } => {
                    FolderError::NotFinite { name, path: self.path.join(MODEL) }
                }
            })
        })
    }

    /// Reads the weights, and verifies their checksum and the hashes of the other files.
    pub fn weights(&self) -> Result<Weights, FolderError> {
        self.weights_checked(self.matching_seal())
    }

    /// Accepts weights whose seal matches the other files.
    fn matching_seal(&self) -> impl FnOnce(Option<Seal>) -> Result<(), FolderError> {
        |seal| {
            let sealed = seal.ok_or_else(|| FolderError::unsealed(&self.path.join(MODEL)))?;
            self.files.check(&self.path, &sealed)
        }
    }

    /// Reads the weights if `accept` approves their seal, which is `None` for a file without a checksum.
    pub(super) fn weights_checked(
        &self,
        accept: impl FnOnce(Option<Seal>) -> Result<(), FolderError>,
    ) -> Result<Weights, FolderError> {
        let path = self.path.join(MODEL);
        self.with_weights_file(accept, |file, _| {
            let weights =
                file.weights("").map_err(|damage| FolderError::Damaged { path: path.clone(), damage })?;
            let weights = weights.ok_or_else(|| FolderError::NoWeights { path: path.clone() })?;
            match weights.first_not_finite() {
                Some(name) => Err(FolderError::NotFinite { name: name.to_owned(), path: path.clone() }),
                None => Ok(weights),
            }
        })
    }

    /// Opens the weights file and passes it to `work` if `accept` approves its seal, which is `None` for a
    /// file without a checksum.
    fn with_weights_file<R>(
        &self,
        accept: impl FnOnce(Option<Seal>) -> Result<(), FolderError>,
        work: impl FnOnce(&WeightsFile<'_>, &FileBytes) -> Result<R, FolderError>,
    ) -> Result<R, FolderError> {
        let path = self.path.join(MODEL);
        let Some(bytes) = self.storage()?.weights()? else {
            return Err(FolderError::NoModel { path });
        };
        let damaged = |damage| FolderError::Damaged { path: path.clone(), damage };
        let (file, is_sealed) = match WeightsFile::new(&bytes, Checksum::First) {
            Err(WeightsFileError::NoChecksum) => (WeightsFile::unverified(&bytes).map_err(damaged)?, false),
            opened => (opened.map_err(damaged)?, true),
        };
        if let Some(found) = file.metadata("format").filter(|found| *found != FORMAT.to_string()) {
            return Err(FolderError::Version { path, found: found.to_owned() });
        }
        accept(Seal::in_metadata(&file.all_metadata()).filter(|_| is_sealed))?;
        work(&file, &bytes)
    }
}
