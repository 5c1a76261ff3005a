//! Folders of Hugging Face, by `model_type`.

use std::path::Path;

use super::gathered::Gathered;
use super::{ImportError, Imported, bert, gpt2, marian_mt};
use crate::data::Tokenizer;
use crate::store::formats::files::Files;
use crate::store::formats::huggingface::HuggingFaceFolder;
use crate::store::formats::{FormatError, JsonObject};

/// No size of a model is larger: products of two are far from an overflow.
const LARGEST: usize = 10_000_000;
const LICENCES: [&str; 3] = ["LICENSE", "LICENSE.txt", "LICENSE.md"];
/// As much of a model card as is kept.
const MOST_OF_A_CARD: usize = 100_000;

pub(super) fn read(path: &Path) -> Result<Imported, ImportError> {
    let folder = HuggingFaceFolder::open(path)?;
    let settings = Settings { config: &folder.config, file: folder.files.label("config.json") };
    let mut imported = match settings.text("model_type", "") {
        "marian" => marian_mt::read(&folder, &settings),
        "bert" => bert::read(&folder, &settings),
        "gpt2" => gpt2::read(&folder, &settings),
        other => {
            let remedy = "heedful imports marian, bert and gpt2";
            Err(FormatError::unsupported(&settings.file, format!("a model of type `{other}`"), remedy).into())
        }
    }?;
    imported.origin.push_str(&origin(&folder.files)?);
    Ok(imported)
}

/// The model card and the licence, if they are there.
fn origin(files: &Files) -> Result<String, FormatError> {
    let mut text = String::new();
    for name in ["README.md"].into_iter().chain(LICENCES) {
        if let Some(bytes) = files.find(name)? {
            let words = String::from_utf8_lossy(&bytes[..bytes.len().min(MOST_OF_A_CARD)]).into_owned();
            text.push_str(&format!("\nIts {name}:\n\n{words}\n"));
        }
    }
    Ok(text)
}

/// `config.json`, with names for messages.
pub(super) struct Settings<'c> {
    config: &'c JsonObject,
    pub(super) file: String,
}

impl Settings<'_> {
    pub(super) fn text<'s>(&'s self, key: &str, usual: &'s str) -> &'s str {
        self.config.get(key).and_then(|value| value.as_str()).unwrap_or(usual)
    }

    pub(super) fn is(&self, key: &str, usual: bool) -> bool {
        self.config.get(key).and_then(|value| value.as_bool()).unwrap_or(usual)
    }

    pub(super) fn number(&self, key: &str, usual: f64) -> f64 {
        self.config.get(key).and_then(|value| value.as_f64()).unwrap_or(usual)
    }

    /// A value as it is.
    pub(super) fn value(&self, key: &str) -> Option<&serde_json::Value> {
        self.config.get(key)
    }

    /// A size that must be there.
    pub(super) fn whole(&self, key: &str) -> Result<usize, FormatError> {
        let found = self.config.get(key).and_then(|value| value.as_u64());
        let missing =
            || FormatError::missing(&self.file, format!("whole number `{key}`"), "It is not a whole model");
        match found.and_then(|number| usize::try_from(number).ok()).ok_or_else(missing)? {
            size if size > LARGEST => {
                Err(self.unsupported(format!("`{key}`: {size}, which is more than {LARGEST}")))
            }
            size => Ok(size),
        }
    }

    /// An id that may be there.
    pub(super) fn id(&self, key: &str) -> Option<u32> {
        self.config.get(key).and_then(|value| value.as_u64()).and_then(|id| u32::try_from(id).ok())
    }

    pub(super) fn unsupported(&self, found: String) -> FormatError {
        FormatError::unsupported(&self.file, found, "Import a model without it")
    }
}

/// The prefix under which a model's tensors are kept, if they have one.
pub(super) fn prefix(from: &Gathered<'_>, prefix: &'static str, probe: &str) -> &'static str {
    if from.has(&format!("{prefix}{probe}")) { prefix } else { "" }
}

/// `tokenizer.json`, which must have as many tokens as the model at most.
pub(super) fn tokenizer(files: &Files, vocabulary: usize) -> Result<Tokenizer, ImportError> {
    let name = "tokenizer.json";
    let Some(bytes) = files.find(name)? else {
        let remedy = "Save it there with AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)";
        return Err(FormatError::missing(files.label(""), format!("file {name}"), remedy).into());
    };
    let tokenizer = Tokenizer::from_bytes(Path::new(&files.label(name)), &bytes)?;
    if tokenizer.size() != vocabulary {
        let found = format!("{} tokens, and the model {vocabulary}", tokenizer.size());
        let remedy = "It is another model's, or tokens were added without a row in the model";
        return Err(FormatError::unsupported(files.label(name), found, remedy).into());
    }
    Ok(tokenizer)
}
