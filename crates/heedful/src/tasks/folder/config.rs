//! `config.json`: the version of the format, the configuration, and the languages of a translator, if known.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{FORMAT, FolderError};
use crate::tasks::ModelConfig;

/// The languages that a translator translates between, as codes (`zh`, `en`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Languages {
    /// The source language.
    pub source: String,
    /// The target language.
    pub target: String,
}

pub(super) fn to_json(config: &ModelConfig, languages: Option<&Languages>) -> String {
    #[derive(Serialize)]
    struct Config<'a> {
        format: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        languages: Option<&'a Languages>,
        #[serde(flatten)]
        config: &'a ModelConfig,
    }
    let config = Config { format: FORMAT, languages, config };
    let text = serde_json::to_string_pretty(&config).expect("a configuration has only names and numbers");
    text + "\n"
}

pub(super) fn parse(path: &Path, bytes: &[u8]) -> Result<(ModelConfig, Option<Languages>), FolderError> {
    let malformed = |cause| FolderError::Config { path: path.to_owned(), cause };
    let mut value: Value = serde_json::from_slice(bytes).map_err(malformed)?;
    // Checked first: a later format may have fields that this version does not support.
    let mut take = |name| value.as_object_mut().and_then(|fields| fields.remove(name));
    let (format, languages) = (take("format").unwrap_or(Value::Null), take("languages"));
    if format != FORMAT {
        return Err(FolderError::Version { path: path.to_owned(), found: format.to_string() });
    }
    let config: ModelConfig = serde_json::from_value(value).map_err(malformed)?;
    let languages = languages.map(serde_json::from_value).transpose().map_err(malformed)?;
    config.validate().map_err(|cause| FolderError::Unbuildable { path: path.to_owned(), cause })?;
    Ok((config, languages))
}
