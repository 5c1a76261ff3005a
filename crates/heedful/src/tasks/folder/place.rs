//! Where the files of a model lie: in a folder, or in the one file that `heedful pack` made of them, which is only read.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use heedful_tensor::cpu::gemm::MappedFile;

use super::{FolderError, MODEL};
use crate::store::formats::FileBytes;
use crate::store::formats::zip::{Archive, is_zip};
use crate::store::weights::Metadata;
use crate::store::weights::file::{metadata_of, read_metadata};

/// Where the files of a model lie.
pub(crate) enum Place {
    /// A folder.
    Folder(PathBuf),
    /// A zip archive. What it takes in memory is bounded by its own size ([`Archive`] refuses what grows beyond measure).
    Package(Archive),
}

/// Whether a path is a file in the format of packages, by its first bytes.
pub fn is_package(path: &Path) -> bool {
    path.is_file() && FileBytes::open(path).is_ok_and(|bytes| is_zip(&bytes))
}

/// A file that lies beside a model, such as its card or its recipe, if it is there.
pub fn beside(model: &Path, name: &str) -> Result<Option<Vec<u8>>, FolderError> {
    Place::of(model)?.read(name)
}

impl Place {
    /// The place that a path names.
    pub(crate) fn of(path: &Path) -> Result<Place, FolderError> {
        if path.is_dir() {
            return Ok(Place::Folder(path.to_owned()));
        }
        if !is_package(path) {
            return Err(FolderError::NoFolder { path: path.to_owned() });
        }
        let archive = Archive::open(path)?;
        if !archive.has(MODEL) {
            return Err(FolderError::NoPackage { path: path.to_owned() });
        }
        Ok(Place::Package(archive))
    }

    pub(super) fn has(&self, name: &str) -> bool {
        match self {
            Place::Folder(folder) => folder.join(name).exists(),
            Place::Package(archive) => archive.has(name),
        }
    }

    /// A file, if it is there.
    pub(crate) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, FolderError> {
        match self {
            Place::Folder(folder) => match fs::read(folder.join(name)) {
                Ok(bytes) => Ok(Some(bytes)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(FolderError::read(&folder.join(name), error)),
            },
            Place::Package(archive) => Ok(archive.read(name)?.map(|bytes| bytes.to_vec())),
        }
    }

    /// The weights: those of a folder are mapped, those of a package are unpacked, if they are packed.
    pub(super) fn weights(&self) -> Result<Option<FileBytes>, FolderError> {
        match self {
            Place::Folder(folder) => {
                let path = folder.join(MODEL);
                if !path.exists() {
                    return Ok(None);
                }
                let mapped = File::open(&path).and_then(|file| MappedFile::open(&file));
                Ok(Some(mapped.map_err(|cause| FolderError::read(&path, cause))?.into()))
            }
            Place::Package(archive) => Ok(archive.read(MODEL)?),
        }
    }

    /// The metadata of the weights, from their header alone; nothing is verified.
    pub(super) fn metadata(&self) -> Result<Metadata, FolderError> {
        let (path, metadata) = match self {
            Place::Folder(folder) => (folder.join(MODEL), read_metadata(&folder.join(MODEL))),
            Place::Package(archive) => {
                let beginning = archive.reader(MODEL).ok_or(io::ErrorKind::NotFound.into());
                (Path::new(archive.file()).join(MODEL), beginning.and_then(metadata_of))
            }
        };
        metadata.map_err(|cause| FolderError::Header { path, cause })
    }
}
