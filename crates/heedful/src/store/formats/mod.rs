//! File formats of other projects, as named tensors and settings: all can be read, those of CTranslate2 and
//! Hugging Face can be written too. This module is independent of heedful's models.
//!
//! ```text
//! CTranslate2 folder    model.bin, config.json, vocabularies         ctranslate2
//! Argos package         a zip with a CTranslate2 folder              argos, over zip and ctranslate2
//! Marian                .npz or .bin with its settings as YAML       marian, over npz and yaml
//! Hugging Face folder   config.json, safetensors in one file or many huggingface
//! ```
//!
//! All of them return a [`TensorSet`]: names, shapes, types, and values that stay in the mapped file until
//! they are converted to f32. No count or size in a file is trusted before it is compared with the file's
//! length.

mod error;

mod bytes;
mod cursor;

pub mod files;
pub(crate) mod output_tensor;
pub mod tensors;
pub mod yaml;
pub mod zip;

pub mod argos;
pub mod ctranslate2;
pub mod huggingface;
pub mod marian;
pub mod npz;
mod recognise;

pub use self::bytes::FileBytes;
pub use self::error::FormatError;
pub use self::recognise::{ForeignFormat, recognise};
pub use self::tensors::ElementType;
pub use self::tensors::ForeignTensor;
pub use self::tensors::TensorSet;

use serde_json::{Map, Value};

/// A JSON object: the settings of another project.
pub(crate) type JsonObject = Map<String, Value>;

/// Reads a JSON object.
pub(crate) fn json_object(file: &str, bytes: &[u8]) -> Result<JsonObject, FormatError> {
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(FormatError::damaged(file, "its beginning", "a JSON object is expected here")),
        Err(error) => Err(FormatError::damaged(
            file,
            format!("line {}, column {}", error.line(), error.column()),
            format!("it is not JSON ({error})"),
        )),
    }
}
