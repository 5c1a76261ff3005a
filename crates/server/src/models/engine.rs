//! A model that can be served, by task.

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
    /// From a text with masked tokens to predictions for them.
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

    /// The task of the model.
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

    /// Sets the maximum tokens of a text; a model with fewer learned positions keeps its own limit. The error
    /// is a sentence.
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

    /// The source tokens of a text; an error if they are too many.
    pub(crate) fn encode(&self, text: &str) -> Result<Vec<u32>, TooLong> {
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

    /// Whether tokens from [`Engine::encode`] contain a mask token.
    pub(crate) fn contains_mask(&self, tokens: &[u32]) -> bool {
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
