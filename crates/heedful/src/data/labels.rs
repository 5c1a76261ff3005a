//! Label names. A label is any text; models use its index.
//!
//! `labels.json` in a model folder is a list of names, in the order of their indices.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::corpus::{CorpusError, CorpusFiles};
use crate::store::durable::{self, WriteError};

/// The name of the file in a model folder.
pub(crate) const LABELS_FILE: &str = "labels.json";

/// The label names of a classifier, by index and by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labels {
    /// Sorted and distinct.
    names: Vec<String>,
}

/// Labels cannot be collected, read or written.
#[derive(Debug, thiserror::Error)]
pub enum LabelsError {
    /// The training text cannot be read.
    #[error(transparent)]
    Corpus(#[from] CorpusError),
    /// The training text has fewer than two labels.
    #[error("the training text has {count} label{}: a classifier needs at least two to decide between", if *count == 1 { "" } else { "s" })]
    TooFew {
        /// The number of labels.
        count: usize,
    },
    /// The label file of a model cannot be read.
    #[error("cannot read the labels {path}: {cause}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// The file and the model have different numbers of labels.
    #[error(
        "{path} has {found} labels, but the model has {expected}: copy the file of the run that trained the model"
    )]
    WrongCount {
        /// The file.
        path: PathBuf,
        /// How many the file has.
        found: usize,
        /// How many the model has.
        expected: usize,
    },
    /// The label file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl crate::error::Cause for LabelsError {}

impl Labels {
    /// All labels of a corpus, indexed in the order of their names.
    pub fn collect(files: &CorpusFiles) -> Result<Labels, LabelsError> {
        let mut names = BTreeSet::new();
        for pair in files.pairs() {
            let label = pair?.target;
            if !label.is_empty() && !names.contains(&label) {
                names.insert(label);
            }
        }
        match names.len() {
            count @ 0..2 => Err(LabelsError::TooFew { count }),
            _ => Ok(Labels { names: names.into_iter().collect() }),
        }
    }

    /// Labels with these names; `None` unless they are sorted, distinct and not empty.
    pub fn of(names: Vec<String>) -> Option<Labels> {
        let is_good = names.is_sorted_by(|a, b| a < b) && names.iter().all(|name| !name.is_empty());
        is_good.then_some(Labels { names })
    }

    /// Reads `labels.json` from a folder.
    #[doc(hidden)]
    pub fn load(folder: &Path) -> Result<Labels, LabelsError> {
        let path = folder.join(LABELS_FILE);
        match fs::read(&path) {
            Ok(bytes) => Labels::from_bytes(&path, &bytes),
            Err(cause) => Err(LabelsError::Read { path, cause }),
        }
    }

    /// As [`Labels::load`], for the bytes of a file that was read from `path`.
    pub fn from_bytes(path: &Path, bytes: &[u8]) -> Result<Labels, LabelsError> {
        let unreadable = |cause| LabelsError::Read { path: path.to_owned(), cause };
        let names: Vec<String> = serde_json::from_slice(bytes).map_err(|error| unreadable(error.into()))?;
        if !names.is_sorted_by(|a, b| a < b) {
            return Err(unreadable(io::Error::other("the names are not sorted, or one occurs twice")));
        }
        Ok(Labels { names })
    }

    /// Writes `labels.json`, which [`Labels::load`] reads.
    #[doc(hidden)]
    pub fn save(&self, folder: &Path) -> Result<(), LabelsError> {
        Ok(durable::write_bytes(&folder.join(LABELS_FILE), self.to_json().as_bytes())?)
    }

    /// The content that [`Labels::save`] writes.
    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string_pretty(&self.names).expect("names are text") + "\n"
    }

    /// Checks that there are as many labels as the model has; `folder` is where they were read from.
    #[doc(hidden)]
    pub fn check_count(&self, expected: usize, folder: &Path) -> Result<(), LabelsError> {
        let found = self.names.len();
        if found == expected {
            return Ok(());
        }
        Err(LabelsError::WrongCount { path: folder.join(LABELS_FILE), found, expected })
    }

    /// The number of labels: at least two.
    pub fn count(&self) -> usize {
        self.names.len()
    }

    /// All names, by index.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The name of the label with this index.
    ///
    /// # Panics
    /// If there is no such label.
    pub fn name(&self, label: u32) -> &str {
        &self.names[label as usize]
    }

    /// The index of the label with this name.
    pub fn index(&self, name: &str) -> Option<u32> {
        self.names.binary_search_by(|known| known.as_str().cmp(name)).ok().map(|index| index as u32)
    }

    /// The index of a label that was read at `location`; a label that the training text does not have is an
    /// error.
    #[doc(hidden)]
    pub fn require(&self, name: &str, location: impl FnOnce() -> String) -> Result<u32, CorpusError> {
        self.index(name).ok_or_else(|| CorpusError::UnknownLabel {
            location: location(),
            label: name.to_owned(),
            known: listed(&self.names),
        })
    }
}

/// The first names, for an error message.
fn listed(names: &[String]) -> String {
    const SHOWN: usize = 12;
    let shown = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN { format!("{shown}, …") } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_any_text_and_round_trip_through_their_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let text = folder.path().join("labelled.tsv");
        fs::write(&text, "体育\ta b\n\nnot so good\tc\n体育\td\n1\te\tf\n").expect("room enough");
        let labels =
            Labels::collect(&CorpusFiles::labelled(&[super::super::Input::new(&text)]).expect("a file"));
        let labels = labels.expect("three labels");
        assert_eq!(labels.names(), ["1", "not so good", "体育"]);
        labels.save(folder.path()).expect("room enough");
        assert_eq!(Labels::load(folder.path()).expect("our own file"), labels);
        assert_eq!((labels.index("体育"), labels.index("Sport")), (Some(2), None));
        let error = labels.require("Sport", || "x.tsv, line 7".to_owned()).expect_err("unknown").to_string();
        assert!(
            error.starts_with("x.tsv, line 7: the label `Sport`") && error.contains("not so good"),
            "{error}"
        );
        assert!(labels.check_count(4, folder.path()).is_err());
    }

    #[test]
    fn a_single_label_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let text = folder.path().join("labelled.tsv");
        fs::write(&text, "a\tb\na\tc\n").expect("room enough");
        let labels =
            Labels::collect(&CorpusFiles::labelled(&[super::super::Input::new(&text)]).expect("a file"));
        assert!(labels.expect_err("one label").to_string().contains("has 1 label:"));
    }
}
