//! The names of labels. A label is any text; models know its number.
//!
//! `labels.json` in a model's folder is a list of names, in the order of their numbers.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::corpus::{CorpusError, CorpusFiles};
use crate::store::durable::{self, WriteError};

/// Its name in a model's folder.
pub(crate) const LABELS_FILE: &str = "labels.json";

/// Names by number and numbers by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labels {
    /// Sorted, each once.
    names: Vec<String>,
}

/// Labels that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LabelsError {
    /// The training text is wrong.
    #[error(transparent)]
    Corpus(#[from] CorpusError),
    /// Nothing to decide between.
    #[error("the training text has {count} label{}: a classifier needs at least two to decide between", if *count == 1 { "" } else { "s" })]
    TooFew {
        /// How many.
        count: usize,
    },
    /// The file of a model's labels.
    #[error("cannot read the labels {path}: {cause}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// The labels of another model.
    #[error(
        "{path} has {found} labels, but the model has {wanted}: copy the file of the run that trained the model"
    )]
    Unlike {
        /// The file.
        path: PathBuf,
        /// How many it has.
        found: usize,
        /// How many the model has.
        wanted: usize,
    },
    /// The file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl Labels {
    /// All labels of a corpus; their numbers follow the order of their names.
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

    /// Reads `labels.json` from a folder.
    pub fn load(folder: &Path) -> Result<Labels, LabelsError> {
        let path = folder.join(LABELS_FILE);
        let read = |path: &Path| -> io::Result<Vec<String>> { Ok(serde_json::from_slice(&fs::read(path)?)?) };
        let names = read(&path).map_err(|cause| LabelsError::Read { path: path.clone(), cause })?;
        if !names.is_sorted_by(|a, b| a < b) {
            let cause = io::Error::other("the names are not in order, or one is there twice");
            return Err(LabelsError::Read { path, cause });
        }
        Ok(Labels { names })
    }

    /// Writes what [`Labels::load`] reads.
    pub fn save(&self, folder: &Path) -> Result<(), LabelsError> {
        let text = serde_json::to_string_pretty(&self.names).expect("names are text");
        Ok(durable::write_bytes(&folder.join(LABELS_FILE), format!("{text}\n").as_bytes())?)
    }

    /// Whether the labels in `folder` are as many as a model has.
    pub fn expect(&self, wanted: usize, folder: &Path) -> Result<(), LabelsError> {
        let found = self.names.len();
        if found == wanted {
            return Ok(());
        }
        Err(LabelsError::Unlike { path: folder.join(LABELS_FILE), found, wanted })
    }

    /// How many there are: at least two.
    pub fn count(&self) -> usize {
        self.names.len()
    }

    /// All names, by number.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The name of a label.
    ///
    /// # Panics
    /// If there is no such label.
    pub fn name(&self, label: u32) -> &str {
        &self.names[label as usize]
    }

    /// The number of a label.
    pub fn number(&self, name: &str) -> Option<u32> {
        self.names.binary_search_by(|known| known.as_str().cmp(name)).ok().map(|number| number as u32)
    }

    /// The number of a label that stands at `place`; one that the training text did not have is an error.
    pub fn known(&self, name: &str, place: impl FnOnce() -> String) -> Result<u32, CorpusError> {
        self.number(name).ok_or_else(|| CorpusError::UnknownLabel {
            place: place(),
            label: name.to_owned(),
            known: listed(&self.names),
        })
    }
}

/// Some names, for a message.
fn listed(names: &[String]) -> String {
    const SHOWN: usize = 12;
    let shown = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN { format!("{shown}, …") } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_any_text_and_come_back_from_their_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let text = folder.path().join("labelled.tsv");
        fs::write(&text, "体育\ta b\n\nnot so good\tc\n体育\td\n1\te\tf\n").expect("room enough");
        let labels =
            Labels::collect(&CorpusFiles::labelled(&[super::super::Input::new(&text)]).expect("a file"));
        let labels = labels.expect("three labels");
        assert_eq!(labels.names(), ["1", "not so good", "体育"]);
        labels.save(folder.path()).expect("room enough");
        assert_eq!(Labels::load(folder.path()).expect("our own file"), labels);
        assert_eq!((labels.number("体育"), labels.number("Sport")), (Some(2), None));
        let error = labels.known("Sport", || "x.tsv, line 7".to_owned()).expect_err("unknown").to_string();
        assert!(
            error.starts_with("x.tsv, line 7: the label `Sport`") && error.contains("not so good"),
            "{error}"
        );
        assert!(labels.expect(4, folder.path()).is_err());
    }

    #[test]
    fn one_label_is_no_choice() {
        let folder = tempfile::tempdir().expect("a folder");
        let text = folder.path().join("labelled.tsv");
        fs::write(&text, "a\tb\na\tc\n").expect("room enough");
        let labels =
            Labels::collect(&CorpusFiles::labelled(&[super::super::Input::new(&text)]).expect("a file"));
        assert!(labels.expect_err("one label").to_string().contains("has 1 label:"));
    }
}
