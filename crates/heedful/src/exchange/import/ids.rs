//! The ids of the tokens that begin, end and pad the texts of a Hugging Face model. As in transformers, a key
//! of `generation_config.json` (`generation`) precedes one of `config.json`, and the default of the model's
//! class applies if neither has it.

use serde_json::Value;

use super::generation::Generation;
use super::huggingface::Settings;
use crate::store::formats::FormatError;

/// The defaults of a class of transformers 5.23.
pub(super) struct Defaults {
    pub(super) class: &'static str,
    pub(super) bos: u32,
    pub(super) eos: u32,
    /// The default `decoder_start_token_id`.
    pub(super) start: u32,
}

pub(super) const GPT2: Defaults = Defaults { class: "GPT2Config", bos: 50256, eos: 50256, start: 50256 };
pub(super) const OPT: Defaults = Defaults { class: "OPTConfig", bos: 2, eos: 2, start: 2 };
pub(super) const MARIAN: Defaults = Defaults { class: "MarianConfig", bos: 0, eos: 0, start: 58100 };
pub(super) const PEGASUS: Defaults = Defaults { class: "PegasusConfig", bos: 0, eos: 1, start: 0 };

/// The sources of a model's ids.
pub(super) struct Ids<'s> {
    pub(super) settings: &'s Settings<'s>,
    pub(super) generation: &'s Generation,
    pub(super) defaults: &'s Defaults,
    /// Size of the target vocabulary.
    pub(super) vocabulary: usize,
}

impl Ids<'_> {
    /// The token that begins a text of a language model.
    pub(super) fn bos(&self) -> Result<u32, FormatError> {
        self.required("bos_token_id", self.defaults.bos, "begins a text")
    }

    /// The token that ends a text.
    pub(super) fn eos(&self) -> Result<u32, FormatError> {
        let eos = self.required("eos_token_id", self.defaults.eos, "ends a text")?;
        // The forced last token of a truncated text: only `eos` gives the same text as heedful.
        match self.generation.value("forced_eos_token_id") {
            None | Some(Value::Null) => Ok(eos),
            Some(forced) if single(forced) == Some(eos) => Ok(eos),
            Some(_) => Err(self.generation.unsupported("forced_eos_token_id")),
        }
    }

    /// The first input of a translator's decoder.
    pub(super) fn start(&self) -> Result<u32, FormatError> {
        self.required("decoder_start_token_id", self.defaults.start, "begins a target")
    }

    /// The padding token, which heedful never computes with: `other` if the files do not name it.
    pub(super) fn pad(&self, other: u32) -> Result<u32, FormatError> {
        match self.find("pad_token_id") {
            None | Some((_, Value::Null)) => Ok(other),
            Some((file, value)) => self.checked("pad_token_id", file, value, "pads a text"),
        }
    }

    fn find(&self, key: &str) -> Option<(&str, &Value)> {
        let in_generation = self.generation.value(key).map(|value| (self.generation.file.as_str(), value));
        in_generation.or_else(|| Some((self.settings.file.as_str(), self.settings.value(key)?)))
    }

    fn required(&self, key: &str, default: u32, role: &str) -> Result<u32, FormatError> {
        if let Some((file, value)) = self.find(key) {
            return self.checked(key, file, value, role);
        }
        if (default as usize) < self.vocabulary {
            return Ok(default);
        }
        let missing = format!(
            "`{key}`, and {default}, the default of {}, is not in its vocabulary",
            self.defaults.class
        );
        Err(FormatError::missing(&self.settings.file, missing, remedy(key, role)))
    }

    fn checked(&self, key: &str, file: &str, value: &Value, role: &str) -> Result<u32, FormatError> {
        let wrong = |what: String| {
            Err(FormatError::unsupported(file, format!("`{key}`: {value} ({what})"), remedy(key, role)))
        };
        match (single(value), value) {
            (Some(id), _) if (id as usize) < self.vocabulary => Ok(id),
            (Some(_), _) => wrong(format!("in a vocabulary of {} tokens", self.vocabulary)),
            (None, Value::Array(several)) if several.len() > 1 => {
                wrong("heedful supports only one token here".to_owned())
            }
            (None, Value::Null | Value::Array(_)) => wrong(format!("no token {role}")),
            (None, _) => wrong("not the id of a token".to_owned()),
        }
    }
}

fn remedy(key: &str, role: &str) -> String {
    format!("Add the id of the token that {role} to the file: `\"{key}\": N`")
}

/// One id, alone or in a list.
fn single(value: &Value) -> Option<u32> {
    match value {
        Value::Number(number) => number.as_u64().and_then(|id| u32::try_from(id).ok()),
        Value::Array(list) => match &list[..] {
            [first, rest @ ..] if rest.iter().all(|other| other == first) && first.is_number() => {
                single(first)
            }
            _ => None,
        },
        _ => None,
    }
}
