//! `config.json`.

use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use super::{FORMAT, FolderError};
use crate::tasks::ModelConfig;

pub(super) fn to_json(config: &ModelConfig) -> String {
    #[derive(Serialize)]
    struct Config<'a> {
        format: u64,
        #[serde(flatten)]
        config: &'a ModelConfig,
    }
    let config = Config { format: FORMAT, config };
    let text = serde_json::to_string_pretty(&config).expect("a configuration has only names and numbers");
    text + "\n"
}

pub(super) fn parse(path: &Path, bytes: &[u8]) -> Result<ModelConfig, FolderError> {
    let malformed = |cause| FolderError::Config { path: path.to_owned(), cause };
    let mut value: Value = serde_json::from_slice(bytes).map_err(malformed)?;
    // Checked first: a later format may have fields that this one does not know.
    let format = value.as_object_mut().and_then(|fields| fields.remove("format")).unwrap_or(Value::Null);
    if format != FORMAT {
        return Err(FolderError::Version { path: path.to_owned(), found: format.to_string() });
    }
    let config: ModelConfig = serde_json::from_value(value).map_err(malformed)?;
    config.validate().map_err(|cause| FolderError::Unbuildable { path: path.to_owned(), cause })?;
    Ok(config)
}
