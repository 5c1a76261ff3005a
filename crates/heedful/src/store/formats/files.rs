//! The files of a model: of a folder on disk, or of a folder inside a zip.

use std::path::{Path, PathBuf};

use super::{FileBytes, FormatError, zip};

/// A place that has files by name.
#[derive(Clone, Debug)]
pub enum Files {
    /// A folder on disk.
    Folder(PathBuf),
    /// A folder in an archive: what its members' names begin with, such as `translate-zh_en/model/`.
    Archive(zip::Archive, String),
}

impl Files {
    /// A file, if it is there.
    pub fn find(&self, name: &str) -> Result<Option<FileBytes>, FormatError> {
        match self {
            Files::Folder(folder) => {
                let path = folder.join(name);
                if path.exists() { FileBytes::open(&path).map(Some) } else { Ok(None) }
            }
            Files::Archive(archive, folder) => archive.read(&format!("{folder}{name}")),
        }
    }

    /// A file that must be there.
    pub fn get(&self, name: &str) -> Result<FileBytes, FormatError> {
        self.find(name)?.ok_or_else(|| {
            let remedy = "Copy or download the whole model";
            FormatError::missing(self.label(""), format!("file {name}"), remedy)
        })
    }

    /// The name of a file for messages.
    pub fn label(&self, name: &str) -> String {
        match self {
            Files::Folder(folder) if name.is_empty() => folder.display().to_string(),
            Files::Folder(folder) => folder.join(name).display().to_string(),
            Files::Archive(archive, folder) => format!("{}:{folder}{name}", archive.file()),
        }
    }
}

/// Whether a name is one file in the same folder: no other folder, no drive, nothing hidden by odd characters.
pub(crate) fn is_plain_name(name: &str) -> bool {
    let path = Path::new(name);
    path.file_name().is_some_and(|file| file == name)
        && !name.contains(['/', '\\', ':'])
        && !name.chars().any(char::is_control)
}
