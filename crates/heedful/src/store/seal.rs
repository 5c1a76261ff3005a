//! The seal of a model folder: size and hash of each file, by name.
//!
//! XXH3 detects accidental changes (flipped bits, lost bytes, the file of another model) at gigabytes a
//! second. It does not protect against deliberate forgery.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

use super::weights::Metadata;

/// Size and hash of each file, by its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seal {
    entries: BTreeMap<String, String>,
}

/// A file that differs from the seal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealDifference {
    /// The name of the file.
    pub name: String,
    /// Size and hash in the seal; `None` if the seal does not list the file.
    pub sealed: Option<String>,
    /// Size and hash of the file; `None` if it does not exist.
    pub found: Option<String>,
}

/// The text between size and hash in a metadata value.
const HASH: &str = " bytes, xxh3 ";

impl Seal {
    /// The seal of files, given by name and bytes.
    pub fn of<'a>(files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Seal {
        let entry = |(name, bytes): (&str, &[u8])| {
            (name.to_owned(), format!("{}{HASH}{:016x}", bytes.len(), XxHash3_64::oneshot(bytes)))
        };
        Seal { entries: files.into_iter().map(entry).collect() }
    }

    /// The seal in a file's metadata, if there is one.
    pub(crate) fn in_metadata(metadata: &Metadata) -> Option<Seal> {
        let entries = metadata.iter().filter(|(_, value)| value.contains(HASH));
        let entries: BTreeMap<_, _> = entries.map(|(name, value)| (name.clone(), value.clone())).collect();
        (!entries.is_empty()).then_some(Seal { entries })
    }

    /// The metadata entries of the seal.
    pub(crate) fn to_metadata(&self) -> impl Iterator<Item = (String, String)> {
        self.entries.iter().map(|(name, value)| (name.clone(), value.clone()))
    }

    /// The names of the files.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// The first file that differs from this seal.
    pub fn difference(&self, found: &Seal) -> Option<SealDifference> {
        let names = self.entries.keys().chain(found.entries.keys());
        names.map(|name| self.of_file(name, found)).find(|file| file.sealed != file.found)
    }

    /// The seal without one file.
    #[must_use]
    pub fn without(mut self, name: &str) -> Seal {
        self.entries.remove(name);
        self
    }

    fn of_file(&self, name: &str, found: &Seal) -> SealDifference {
        let entry = |seal: &Seal| seal.entries.get(name).cloned();
        SealDifference { name: name.to_owned(), sealed: entry(self), found: entry(found) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_difference_names_the_file() {
        let sealed = Seal::of([("a", &b"one"[..]), ("b", b"two")]);
        assert_eq!(sealed.difference(&sealed), None);
        for (files, name) in [
            (vec![("a", &b"one"[..]), ("b", b"twp")], "b"),
            (vec![("b", &b"two"[..])], "a"),
            (vec![("a", &b"one"[..]), ("b", b"two"), ("c", b"")], "c"),
        ] {
            assert_eq!(sealed.difference(&Seal::of(files)).expect("another file").name, name);
        }
    }

    #[test]
    fn a_seal_survives_in_metadata_among_other_keys() {
        let sealed = Seal::of([("a", &b"one"[..])]);
        let mut metadata: Metadata = sealed.to_metadata().collect();
        metadata.insert("format".to_owned(), "2".to_owned());
        assert_eq!(Seal::in_metadata(&metadata), Some(sealed));
        metadata.remove("a");
        assert_eq!(Seal::in_metadata(&metadata), None);
    }
}
