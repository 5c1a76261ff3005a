//! A model that can be served, with the task that it was trained for.

use std::path::Path;

use heedful::data::text_limit::{LimitError, TooLong};
use heedful::models::Model;
use heedful::tasks::classify::Classifier;
use heedful::tasks::folder::ModelFolder;
use heedful::tasks::language::Generator;
use heedful::tasks::masked::Filler;
use heedful::tasks::translate::Translator;
use heedful::tasks::{OpenOptions, Task};

/// A model that can be served.
#[non_exhaustive]
pub enum Engine {
    /// From a sentence to its translation.
    Translator(Translator),
    /// From the beginning of a text to the rest.
    Generator(Box<Generator>),
    /// From a text to its label.
    Classifier(Box<Classifier>),
    /// From a text with gaps to what they may have been.
    Filler(Box<Filler>),
}

impl Engine {
    /// Opens the folder of a model or of a training run.
    pub(super) fn open(folder: &Path, options: &OpenOptions) -> heedful::Result<Engine> {
        Ok(match ModelFolder::open(folder)?.config.task() {
            Task::Translate => Engine::Translator(Translator::open_with(folder, options)?),
            Task::Language => Engine::Generator(Box::new(Generator::open_with(folder, options)?)),
            Task::Classify => Engine::Classifier(Box::new(Classifier::open_with(folder, options)?)),
            Task::Masked => Engine::Filler(Box::new(Filler::open_with(folder, options)?)),
        })
    }

    /// What it is for.
    pub(crate) fn task(&self) -> Task {
        match self {
            Engine::Translator(_) => Task::Translate,
            Engine::Generator(_) => Task::Language,
            Engine::Classifier(_) => Task::Classify,
            Engine::Filler(_) => Task::Masked,
        }
    }

    pub(crate) fn model(&self) -> &dyn Model {
        match self {
            Engine::Translator(translator) => translator.model(),
            Engine::Generator(generator) => generator.model(),
            Engine::Classifier(classifier) => classifier.model(),
            Engine::Filler(filler) => filler.model(),
        }
    }

    /// Sets the most tokens of a text; a model with fewer learned positions keeps its own limit. The error is a sentence.
    pub(super) fn set_max_tokens(&mut self, tokens: usize) -> Result<(), String> {
        let set = match self {
            Engine::Translator(translator) => translator.set_max_tokens(tokens),
            Engine::Generator(generator) => generator.set_max_tokens(tokens),
            Engine::Classifier(classifier) => classifier.set_max_tokens(tokens),
            Engine::Filler(filler) => filler.set_max_tokens(tokens),
        };
        match set {
            Err(error) if !matches!(error.cause(), Some(LimitError::Positions { .. })) => {
                Err(error.to_string())
            }
            _ => Ok(()),
        }
    }

    /// The tokens that the model reads of a text, unless they are too many.
    pub(crate) fn read(&self, text: &str) -> Result<Vec<u32>, TooLong> {
        match self {
            Engine::Translator(translator) => {
                translator.source_limit().encode(text, |text| translator.encode(text))
            }
            Engine::Generator(generator) => {
                let prompt = generator.limit().encode(text, |text| generator.encode(text));
                prompt.map(|prompt| generator.source(prompt))
            }
            Engine::Classifier(classifier) => classifier.limit().encode(text, |text| classifier.encode(text)),
            Engine::Filler(filler) => filler.limit().encode(text, |text| filler.encode(text)),
        }
    }

    /// Whether tokens from [`Engine::read`] have a masked one.
    pub(crate) fn masks(&self, tokens: &[u32]) -> bool {
        matches!(self, Engine::Filler(filler) if tokens.contains(&filler.mask()))
    }

    /// The text of generated tokens, given the source.
    pub(crate) fn decode(&self, source: &[u32], generated: &[u32]) -> String {
        match self {
            Engine::Translator(translator) => translator.tokenizers().target.decode(generated),
            Engine::Generator(generator) => generator.decode(source, generated),
            Engine::Classifier(_) | Engine::Filler(_) => String::new(),
        }
    }
}
