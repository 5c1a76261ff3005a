//! Hugging Face folders, by `model_type`.

use std::path::Path;

use heedful_tensor::ops::Activation;
use serde_json::Value;

use super::generation::Generation;
use super::ids::{self, Ids};
use super::importer::{ParamImporter, REMEDY};
use super::{ImportError, Imported, ORIGIN, bert, gpt2, opt, padding, translator};
use crate::data::Tokenizer;
use crate::data::tokenizer::Tokenizers;
use crate::exchange::embedded_settings::EmbeddedSettings;
use crate::exchange::names::activations;
use crate::exchange::origin::LICENCES;
use crate::layers::Norm;
use crate::models::transformer::StackConfig;
use crate::store::formats::files::Files;
use crate::store::formats::huggingface::HuggingFaceFolder;
use crate::store::formats::{FormatError, JsonObject};
use crate::tasks::language::{LanguageConfig, TextShape};

/// Maximum size: the product of two is far from overflowing.
const MAX_SIZE: usize = 10_000_000;
/// The tokenizer of targets, if it differs from that of sources.
pub(in crate::exchange) const TARGET_TOKENIZER: &str = "target/tokenizer.json";
/// Maximum number of bytes of a model card that are copied.
const MAX_CARD_BYTES: usize = 100_000;

/// The supported architectures, by `model_type`, which is checked first.
enum Architecture {
    /// MarianMT is post-norm, Pegasus pre-norm.
    Translator(Norm),
    /// BERT is post-norm, Megatron-BERT pre-norm.
    Masked(Norm),
    Gpt2,
    Opt,
}

impl Architecture {
    fn of(settings: &Settings<'_>) -> Result<Architecture, FormatError> {
        const KNOWN: &str = "heedful imports marian, pegasus, bert, megatron-bert, gpt2 and opt";
        match settings.text("model_type", "")? {
            "marian" => Ok(Architecture::Translator(Norm::Post)),
            "pegasus" => Ok(Architecture::Translator(Norm::Pre)),
            "bert" => Ok(Architecture::Masked(Norm::Post)),
            "megatron-bert" => Ok(Architecture::Masked(Norm::Pre)),
            "gpt2" => Ok(Architecture::Gpt2),
            "opt" => Ok(Architecture::Opt),
            "" => Err(FormatError::missing(&settings.file, "`model_type`", KNOWN)),
            other => {
                let found = format!("a model of type `{other}`");
                Err(FormatError::unsupported(&settings.file, found, KNOWN))
            }
        }
    }
}

pub(super) fn read(path: &Path) -> Result<Imported, ImportError> {
    let config = HuggingFaceFolder::config(path)?;
    let file = Files::Folder(path.to_owned()).label("config.json");
    let settings = Settings { config: &config, file };
    let architecture = Architecture::of(&settings)?;
    let folder = HuggingFaceFolder::open(path)?;
    let mut imported = match architecture {
        Architecture::Translator(norm) => translator::read(&folder, &settings, norm),
        Architecture::Masked(norm) => bert::read(&folder, &settings, norm),
        Architecture::Gpt2 => language(&folder, &settings, &GPT2),
        Architecture::Opt => language(&folder, &settings, &OPT),
    }?;
    EmbeddedSettings::read(&folder.config, &settings.file)?
        .restore(&mut imported.config, &mut imported.weights);
    imported.origin.push_str(&origin(&folder.files)?);
    Ok(imported)
}

/// How to import one kind of language model.
struct LanguageKind {
    name: &'static str,
    defaults: ids::Defaults,
    configuration: fn(&Settings<'_>, &Ids<'_>) -> Result<StackConfig, FormatError>,
    /// Imports the tensors.
    gather: fn(&mut ParamImporter<'_>, &mut StackConfig) -> Result<(), FormatError>,
}

const GPT2: LanguageKind = LanguageKind {
    name: "A GPT-2",
    defaults: ids::GPT2,
    configuration: gpt2::configuration,
    gather: gpt2::gather,
};
const OPT: LanguageKind = LanguageKind {
    name: "An OPT",
    defaults: ids::OPT,
    configuration: opt::configuration,
    gather: opt::gather,
};

/// A language model of running text.
fn language(
    folder: &HuggingFaceFolder,
    settings: &Settings<'_>,
    kind: &LanguageKind,
) -> Result<Imported, ImportError> {
    let generation = Generation::read(&folder.files, &folder.config)?;
    let vocabulary = settings.whole("vocab_size")?;
    let ids = Ids { settings, generation: &generation, defaults: &kind.defaults, vocabulary };
    let mut stack = (kind.configuration)(settings, &ids)?;
    let mut from = ParamImporter::new(&folder.tensors);
    let tokenizer = tokenizer(&folder.files, stack.vocabulary)?;
    stack.special.suppressed = padding::with_padding(&tokenizer, generation.suppressed());
    (kind.gather)(&mut from, &mut stack)?;
    let config = LanguageConfig {
        // The default block length for perplexity: the number of positions.
        block: stack.positions.longest(),
        stack: stack.into(),
        text: TextShape::Running,
        label_smoothing: 0.0,
        output_bias: false,
    };
    Ok(Imported {
        config: config.into(),
        tokenizers: Tokenizers::joint(tokenizer),
        labels: None,
        languages: None,
        origin: format!("\n{} model of Hugging Face.\n", kind.name),
        notes: generation.note().into_iter().collect(),
        pieces: Vec::new(),
        weights: from.finish()?,
    })
}

/// Origin, model card and licence, if they exist.
fn origin(files: &Files) -> Result<String, FormatError> {
    let mut text = String::new();
    for name in [ORIGIN, "README.md"].into_iter().chain(LICENCES) {
        if let Some(bytes) = files.find(name)? {
            let words = String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_CARD_BYTES)]).into_owned();
            text.push_str(&format!("\nIts {name}:\n\n{words}\n"));
        }
    }
    Ok(text)
}

/// `config.json`, with the file's name for error messages.
pub(super) struct Settings<'c> {
    config: &'c JsonObject,
    pub(super) file: String,
}

impl Settings<'_> {
    pub(super) fn text<'s>(&'s self, key: &str, default: &'s str) -> Result<&'s str, FormatError> {
        match self.config.get(key) {
            None | Some(Value::Null) => Ok(default),
            Some(Value::String(text)) => Ok(text),
            Some(other) => Err(self.wrong(key, other, "a text")),
        }
    }

    pub(super) fn is(&self, key: &str, default: bool) -> Result<bool, FormatError> {
        match self.config.get(key) {
            None => Ok(default),
            Some(Value::Null) => Ok(false),
            Some(Value::Bool(is)) => Ok(*is),
            Some(other) => Err(self.wrong(key, other, "true or false")),
        }
    }

    /// An error if a flag does not have its default value.
    pub(super) fn must_be(&self, key: &str, default: bool) -> Result<(), FormatError> {
        match self.is(key, default)? == default {
            true => Ok(()),
            false => Err(self.unsupported(format!("`{key}`: {}", !default))),
        }
    }

    pub(super) fn number(&self, key: &str, default: f64) -> Result<f64, FormatError> {
        match self.config.get(key) {
            None => Ok(default),
            Some(value) => value.as_f64().ok_or_else(|| self.wrong(key, value, "a number")),
        }
    }

    /// The JSON value of a key.
    pub(super) fn value(&self, key: &str) -> Option<&Value> {
        self.config.get(key)
    }

    /// A required size.
    pub(super) fn whole(&self, key: &str) -> Result<usize, FormatError> {
        let found = self.config.get(key).and_then(|value| value.as_u64());
        let missing =
            || FormatError::missing(&self.file, format!("whole number `{key}`"), "The model is incomplete");
        match found.and_then(|number| usize::try_from(number).ok()).ok_or_else(missing)? {
            size if size > MAX_SIZE => {
                Err(self.unsupported(format!("`{key}`: {size}, which is more than {MAX_SIZE}")))
            }
            size => Ok(size),
        }
    }

    /// A size, or the default if it is missing or null.
    pub(super) fn whole_or(&self, key: &str, default: usize) -> Result<usize, FormatError> {
        match self.config.get(key) {
            None | Some(Value::Null) => Ok(default),
            Some(_) => self.whole(key),
        }
    }

    /// The activation function under a key.
    pub(super) fn activation(&self, key: &str, default: &str) -> Result<Activation, FormatError> {
        let name = self.text(key, default)?;
        activations::of_hugging_face(name)
            .ok_or_else(|| self.unsupported(format!("the activation function `{name}`")))
    }

    pub(super) fn unsupported(&self, found: String) -> FormatError {
        FormatError::unsupported(&self.file, found, REMEDY)
    }

    fn wrong(&self, key: &str, value: &Value, kind: &str) -> FormatError {
        let found = format!("`{key}`: {value} (not {kind})");
        FormatError::unsupported(&self.file, found, "Compare the file with the original")
    }
}

/// The prefix of a model's tensor names, if they have it.
pub(super) fn prefix(from: &ParamImporter<'_>, prefix: &'static str, probe: &str) -> &'static str {
    if from.has(&format!("{prefix}{probe}")) { prefix } else { "" }
}

/// `tokenizer.json`, padded to one token for each row of the model.
pub(super) fn tokenizer(files: &Files, vocabulary: usize) -> Result<Tokenizer, ImportError> {
    tokenizer_in(files, "tokenizer.json", vocabulary)
}

/// One vocabulary, or a second one for targets in the subfolder `target`, where an export writes it.
pub(super) fn tokenizers(files: &Files, [source, target]: [usize; 2]) -> Result<Tokenizers, ImportError> {
    Ok(match files.find(TARGET_TOKENIZER)? {
        Some(_) => {
            Tokenizers::separate(tokenizer(files, source)?, tokenizer_in(files, TARGET_TOKENIZER, target)?)
        }
        None => Tokenizers::joint(tokenizer(files, source)?),
    })
}

fn tokenizer_in(files: &Files, name: &str, vocabulary: usize) -> Result<Tokenizer, ImportError> {
    let Some(bytes) = files.find(name)? else {
        let remedy = "Save it there with AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)";
        return Err(FormatError::missing(files.label(""), format!("file {name}"), remedy).into());
    };
    let path = files.label(name);
    let tokenizer = Tokenizer::from_exported(Path::new(&path), &bytes)?;
    if tokenizer.size() > vocabulary {
        let found = format!("{} tokens, and the model {vocabulary}", tokenizer.size());
        let remedy = "It belongs to another model, or tokens were added without extending the model: copy the model's own tokenizer.json there";
        return Err(FormatError::unsupported(path, found, remedy).into());
    }
    let names: Vec<String> = (tokenizer.size()..vocabulary).map(padding::name).collect();
    Ok(tokenizer.with_special_tokens(&names)?)
}
