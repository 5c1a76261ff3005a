//! Access to the files of a model in a folder or in a read-only package (`heedful pack`).

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use heedful_tensor::cpu::gemm::MappedFile;

use super::{FolderError, MODEL};
use crate::store::formats::FileBytes;
use crate::store::formats::zip::{Archive, is_zip};
use crate::store::weights::Metadata;
use crate::store::weights::file::{metadata_of, read_metadata};

/// The storage of a model's files.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ModelStorage {
    /// A folder.
    Folder(PathBuf),
    /// A zip archive. Its memory use is bounded by its file size: [`Archive`] rejects excessive compression
    /// ratios.
    Package(Archive),
}

/// Whether a path is a zip file, by its first bytes.
pub fn is_package(path: &Path) -> bool {
    path.is_file() && FileBytes::open(path).is_ok_and(|bytes| is_zip(&bytes))
}

/// A file in the folder or package of a model, such as its model card or its recipe; `None` if it does not
/// exist.
pub fn read_model_file(model: &Path, name: &str) -> Result<Option<Vec<u8>>, FolderError> {
    ModelStorage::of(model)?.read(name)
}

impl ModelStorage {
    /// Opens the folder or package at a path.
    pub(crate) fn of(path: &Path) -> Result<ModelStorage, FolderError> {
        if path.is_dir() {
            return Ok(ModelStorage::Folder(path.to_owned()));
        }
        if !is_package(path) {
            return Err(FolderError::NoFolder { path: path.to_owned() });
        }
        ModelStorage::package(Archive::open(path)?)
    }

    /// The package of a model in memory; `name` is used in messages.
    pub(super) fn in_memory(name: &str, bytes: Vec<u8>) -> Result<ModelStorage, FolderError> {
        ModelStorage::package(Archive::new(name, bytes.into())?)
    }

    fn package(archive: Archive) -> Result<ModelStorage, FolderError> {
        match archive.has(MODEL) {
            true => Ok(ModelStorage::Package(archive)),
            false => Err(FolderError::NoPackage { path: archive.file().into() }),
        }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        match self {
            ModelStorage::Folder(folder) => folder.join(name).exists(),
            ModelStorage::Package(archive) => archive.has(name),
        }
    }

    /// The bytes of a file; `None` if it does not exist.
    pub(crate) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, FolderError> {
        match self {
            ModelStorage::Folder(folder) => match fs::read(folder.join(name)) {
                Ok(bytes) => Ok(Some(bytes)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(FolderError::read(&folder.join(name), error)),
            },
            ModelStorage::Package(archive) => Ok(archive.read(name)?.map(|bytes| bytes.to_vec())),
        }
    }

    /// The weights: memory-mapped in a folder, decompressed from a package if needed.
    pub(super) fn weights(&self) -> Result<Option<FileBytes>, FolderError> {
        match self {
            ModelStorage::Folder(folder) => {
                let path = folder.join(MODEL);
                if !path.exists() {
                    return Ok(None);
                }
                let mapped = File::open(&path).and_then(|file| MappedFile::open(&file));
                Ok(Some(mapped.map_err(|cause| FolderError::read(&path, cause))?.into()))
            }
            ModelStorage::Package(archive) => Ok(archive.read(MODEL)?),
        }
    }

    /// The metadata of the weights, read from their header without verification.
    pub(super) fn metadata(&self) -> Result<Metadata, FolderError> {
        let (path, metadata) = match self {
            ModelStorage::Folder(folder) => (folder.join(MODEL), read_metadata(&folder.join(MODEL))),
            ModelStorage::Package(archive) => {
                let reader = archive.reader(MODEL).ok_or(io::ErrorKind::NotFound.into());
                (Path::new(archive.file()).join(MODEL), reader.and_then(metadata_of))
            }
        };
        metadata.map_err(|cause| FolderError::Header { path, cause })
    }
}
