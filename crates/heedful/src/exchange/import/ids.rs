//! The tokens that begin, end and pad the texts of a model of Hugging Face. `generate` of transformers goes by `generation_config.json`
//! (`generation`), and where that says nothing by `config.json`; where neither has a key, the model's class has a default.

use serde_json::Value;

use super::generation::Generation;
use super::huggingface::Settings;
use crate::store::formats::FormatError;

/// The defaults of a class of transformers 5.23.
pub(super) struct Defaults {
    pub(super) class: &'static str,
    pub(super) bos: u32,
    pub(super) eos: u32,
    /// What a decoder reads first, if it is not `bos`.
    pub(super) start: u32,
}

pub(super) const GPT2: Defaults = Defaults { class: "GPT2Config", bos: 50256, eos: 50256, start: 50256 };
pub(super) const OPT: Defaults = Defaults { class: "OPTConfig", bos: 2, eos: 2, start: 2 };
pub(super) const MARIAN: Defaults = Defaults { class: "MarianConfig", bos: 0, eos: 0, start: 58100 };
pub(super) const PEGASUS: Defaults = Defaults { class: "PegasusConfig", bos: 0, eos: 1, start: 0 };

/// Where the ids of a model come from.
pub(super) struct Ids<'s> {
    pub(super) settings: &'s Settings<'s>,
    pub(super) generation: &'s Generation,
    pub(super) defaults: &'s Defaults,
    /// The tokens of the vocabulary that is generated.
    pub(super) vocabulary: usize,
}

impl Ids<'_> {
    /// What a language model reads before a text.
    pub(super) fn bos(&self) -> Result<u32, FormatError> {
        self.needed("bos_token_id", self.defaults.bos, "begins a text")
    }

    /// What ends a text.
    pub(super) fn eos(&self) -> Result<u32, FormatError> {
        let eos = self.needed("eos_token_id", self.defaults.eos, "ends a text")?;
        // The last token of a text that is cut off: if it is the end, the text is that of heedful.
        match self.generation.value("forced_eos_token_id") {
            None | Some(Value::Null) => Ok(eos),
            Some(forced) if single(forced) == Some(eos) => Ok(eos),
            Some(_) => Err(self.generation.unsupported("forced_eos_token_id")),
        }
    }

    /// What the decoder of a translator reads first.
    pub(super) fn start(&self) -> Result<u32, FormatError> {
        self.needed("decoder_start_token_id", self.defaults.start, "begins a target")
    }

    /// Padding, which nothing here computes with: `other` if the files do not name it.
    pub(super) fn pad(&self, other: u32) -> Result<u32, FormatError> {
        match self.find("pad_token_id") {
            None | Some((_, Value::Null)) => Ok(other),
            Some((file, value)) => self.checked("pad_token_id", file, value, "pads a text"),
        }
    }

    fn find(&self, key: &str) -> Option<(&str, &Value)> {
        let of_generation = self.generation.value(key).map(|value| (self.generation.file.as_str(), value));
        of_generation.or_else(|| Some((self.settings.file.as_str(), self.settings.value(key)?)))
    }

    fn needed(&self, key: &str, default: u32, role: &str) -> Result<u32, FormatError> {
        if let Some((file, value)) = self.find(key) {
            return self.checked(key, file, value, role);
        }
        if (default as usize) < self.vocabulary {
            return Ok(default);
        }
        let missing =
            format!("`{key}`, and {default}, the default of {}, is no token of it", self.defaults.class);
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
                wrong("a search of heedful ends and begins with one token".to_owned())
            }
            (None, Value::Null | Value::Array(_)) => wrong(format!("no token {role}")),
            (None, _) => wrong("not the id of a token".to_owned()),
        }
    }
}

fn remedy(key: &str, role: &str) -> String {
    format!("Write the id of the token that {role} there: `\"{key}\": N`")
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
