//! Folders of Hugging Face, by `model_type`.

use std::path::Path;

use heedful_tensor::ops::Activation;

use super::gathered::Gathered;
use super::{ImportError, Imported, ORIGIN, bert, gpt2, opt, translator};
use crate::data::Tokenizer;
use crate::data::tokenizer::Tokenizers;
use crate::exchange::kept::Kept;
use crate::exchange::names::activations;
use crate::exchange::origin::LICENCES;
use crate::layers::Norm;
use crate::models::transformer::StackConfig;
use crate::store::formats::files::Files;
use crate::store::formats::huggingface::HuggingFaceFolder;
use crate::store::formats::{FormatError, JsonObject};
use crate::tasks::language::{LanguageConfig, TextShape};

/// No size of a model is larger: products of two are far from an overflow.
const LARGEST: usize = 10_000_000;
/// The vocabulary of targets, where it is another than that of sources.
pub(in crate::exchange) const TARGET_TOKENIZER: &str = "target/tokenizer.json";
/// As much of a model card as is kept.
const MOST_OF_A_CARD: usize = 100_000;

pub(super) fn read(path: &Path) -> Result<Imported, ImportError> {
    let folder = HuggingFaceFolder::open(path)?;
    let settings = Settings { config: &folder.config, file: folder.files.label("config.json") };
    let mut imported = match settings.text("model_type", "") {
        "marian" => translator::read(&folder, &settings, Norm::Post),
        "pegasus" => translator::read(&folder, &settings, Norm::Pre),
        "bert" => bert::read(&folder, &settings, Norm::Post),
        "megatron-bert" => bert::read(&folder, &settings, Norm::Pre),
        "gpt2" => language(&folder, gpt2::configuration(&settings)?, gpt2::gather, "A GPT-2"),
        "opt" => language(&folder, opt::configuration(&settings)?, opt::gather, "An OPT"),
        other => {
            let remedy = "heedful imports marian, pegasus, bert, megatron-bert, gpt2 and opt";
            Err(FormatError::unsupported(&settings.file, format!("a model of type `{other}`"), remedy).into())
        }
    }?;
    Kept::read(&folder.config, &settings.file)?.restore(&mut imported.config, &mut imported.weights);
    imported.origin.push_str(&origin(&folder.files)?);
    Ok(imported)
}

/// A language model of running text, whose tensors `gather` takes.
fn language(
    folder: &HuggingFaceFolder,
    mut stack: StackConfig,
    gather: impl Fn(&mut Gathered<'_>, &mut StackConfig) -> Result<(), FormatError>,
    kind: &str,
) -> Result<Imported, ImportError> {
    let mut from = Gathered::new(&folder.tensors);
    let tokenizer = tokenizer(&folder.files, stack.vocabulary)?;
    gather(&mut from, &mut stack)?;
    let config = LanguageConfig {
        // As many tokens as it has positions, as such models are measured.
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
        origin: format!("\n{kind} model of Hugging Face.\n"),
        pieces: Vec::new(),
        weights: from.finish()?,
    })
}

/// Where it is from, the model card and the licence, if they are there.
fn origin(files: &Files) -> Result<String, FormatError> {
    let mut text = String::new();
    for name in [ORIGIN, "README.md"].into_iter().chain(LICENCES) {
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

    /// The activation function under a key.
    pub(super) fn activation(&self, key: &str, usual: &str) -> Result<Activation, FormatError> {
        let name = self.text(key, usual);
        activations::of_hugging_face(name)
            .ok_or_else(|| self.unsupported(format!("the activation function `{name}`")))
    }

    pub(super) fn unsupported(&self, found: String) -> FormatError {
        FormatError::unsupported(&self.file, found, "Import a model without it")
    }
}

/// The prefix under which a model's tensors are kept, if they have one.
pub(super) fn prefix(from: &Gathered<'_>, prefix: &'static str, probe: &str) -> &'static str {
    if from.has(&format!("{prefix}{probe}")) { prefix } else { "" }
}

/// `tokenizer.json`, which must have as many tokens as the model.
pub(super) fn tokenizer(files: &Files, vocabulary: usize) -> Result<Tokenizer, ImportError> {
    tokenizer_in(files, "tokenizer.json", vocabulary)
}

/// One vocabulary, or a second one for targets in a folder `target`, where an export puts it.
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
    let tokenizer = Tokenizer::from_exported(Path::new(&files.label(name)), &bytes)?;
    if tokenizer.size() != vocabulary {
        let found = format!("{} tokens, and the model {vocabulary}", tokenizer.size());
        let remedy = "It is another model's, or tokens were added without a row in the model";
        return Err(FormatError::unsupported(files.label(name), found, remedy).into());
    }
    Ok(tokenizer)
}
