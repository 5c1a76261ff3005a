//! A file with PyTorch's results: a ragged batch, results by name, and the configuration as JSON.

use std::path::Path;

use heedful::data::batch::Batch;
use heedful::tensor::Ragged;
use safetensors::SafeTensors;
use serde_json::Value;

use crate::support::error;

const TOLERANCE: f64 = 1e-4;

pub(crate) struct GoldenFile {
    pub(crate) config: Value,
    name: String,
    bytes: Vec<u8>,
}

impl GoldenFile {
    /// `golden/<folder>/<name>.safetensors`.
    pub(crate) fn read(folder: &str, name: &str) -> GoldenFile {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{folder}/{name}.safetensors"));
        let bytes = std::fs::read(path).expect("goldens are missing: run `cargo xtask golden`");
        let (_, metadata) = SafeTensors::read_metadata(&bytes).expect("safetensors");
        let entries = metadata.metadata().as_ref().expect("metadata");
        let config = serde_json::from_str(&entries["config"]).expect("the configuration as JSON");
        GoldenFile { config, name: name.to_owned(), bytes }
    }

    /// Asserts that `ours` matches the file, to the accuracy of a model in f32.
    pub(crate) fn compare(&self, name: &str, ours: &[f32]) {
        let error = error(ours, &self.numbers(name));
        println!("{:24} {name:44} {error:.1e}", self.name);
        assert!(error <= TOLERANCE, "{}: {name} is off by {error:.2e}", self.name);
    }

    pub(crate) fn numbers(&self, name: &str) -> Vec<f32> {
        self.words(name).into_iter().map(f32::from_bits).collect()
    }

    fn words(&self, name: &str) -> Vec<u32> {
        let file = SafeTensors::deserialize(&self.bytes).expect("safetensors");
        let tensor = file.tensor(name).unwrap_or_else(|_| panic!("{}: no {name}", self.name));
        let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
        tensor.data().chunks_exact(4).map(word).collect()
    }

    pub(crate) fn sequences(&self, name: &str) -> Ragged {
        Ragged::from_lengths(self.words(name).into_iter().map(|length| length as usize))
    }

    pub(crate) fn batch(&self) -> Batch {
        Batch {
            source: self.words("source"),
            source_sequences: self.sequences("source_lengths"),
            target_in: self.words("target_in"),
            target_out: self.words("target_out"),
            target_sequences: self.sequences("target_lengths"),
        }
    }
}
