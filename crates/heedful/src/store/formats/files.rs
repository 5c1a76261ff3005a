//! The files of a model: in a folder on disk, or in a folder of a zip archive.

use std::path::{Path, PathBuf};

use super::{FileBytes, FormatError, zip};

/// A folder with files.
#[derive(Clone, Debug)]
pub enum Files {
    /// A folder on disk.
    Folder(PathBuf),
    /// A folder in an archive: the prefix of its members' names, such as `translate-zh_en/model/`.
    Archive(zip::Archive, String),
}

impl Files {
    /// A file, if it exists.
    pub fn find(&self, name: &str) -> Result<Option<FileBytes>, FormatError> {
        match self {
            Files::Folder(folder) => {
                let path = folder.join(name);
                if path.exists() { FileBytes::open(&path).map(Some) } else { Ok(None) }
            }
            Files::Archive(archive, folder) => archive.read(&format!("{folder}{name}")),
        }
    }

    /// A file that must exist.
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

/// Whether a name is that of a file in the same folder: no path separators, drives or control characters.
pub(crate) fn is_plain_name(name: &str) -> bool {
    let path = Path::new(name);
    path.file_name().is_some_and(|file| file == name)
        && !name.contains(['/', '\\', ':'])
        && !name.chars().any(char::is_control)
}
