//! A 128-bit fingerprint of the inputs that a file of token ids is built from.

use std::fmt;
use std::io::Read;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use twox_hash::XxHash3_128;

use super::Examples;
use crate::data::corpus::{CorpusError, Filters, Input};

/// A hash of the bytes of every file, both vocabularies and the filters; names and dates of files do not
/// matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(u128);

impl Fingerprint {
    /// Reads every file once, without decompressing it. Standard input cannot be read a second time and is
    /// left out.
    pub fn of(examples: &Examples<'_>, filters: &Filters) -> Result<Fingerprint, CorpusError> {
        let Examples { files, tokenizers, kind } = examples;
        let mut hasher = XxHash3_128::new();
        let mut buffer = vec![0; 1 << 16];
        for input in files.inputs() {
            let mut length: u64 = 0;
            if *input != Input::Standard {
                let mut file = input.open_raw()?;
                loop {
                    let count = file
                        .read(&mut buffer)
                        .map_err(|error| CorpusError::Read { file: input.to_string(), error })?;
                    if count == 0 {
                        break;
                    }
                    hasher.write(&buffer[..count]);
                    length += count as u64;
                }
            }
            // Hashing lengths distinguishes corpora whose text is divided differently between files.
            hasher.write(&length.to_le_bytes());
        }
        hasher.write(tokenizers.source.to_json().as_bytes());
        hasher.write(tokenizers.target.to_json().as_bytes());
        hasher.write(serde_json::to_string(filters).expect("filters are numbers and names").as_bytes());
        hasher.write(kind.description().as_bytes());
        Ok(Fingerprint(hasher.finish_128()))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// As text, because JSON numbers cannot hold 128 bits.
impl Serialize for Fingerprint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Fingerprint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Fingerprint, D::Error> {
        let text = String::deserialize(deserializer)?;
        u128::from_str_radix(&text, 16).map(Fingerprint).map_err(de::Error::custom)
    }
}
