//! An opened model.

use heedful::models::Model;
use heedful::tasks::folder::{Languages, ModelFolder};
use heedful::tasks::package::EXAMPLES;
use heedful::tasks::{OpenOptions, Task};
use heedful::train::examples;
use heedful::{Classifier, Filler, Generator, Translator};
use serde::Serialize;

/// An unknown language.
const UNKNOWN: &str = "und";

/// An opened model with its description.
pub(crate) struct OpenModel {
    pub(crate) engine: Engine,
    pub(crate) info: ModelInfo,
}

/// A model by task.
pub(crate) enum Engine {
    Translator(Translator),
    Generator(Box<Generator>),
    Classifier(Box<Classifier>),
    Filler(Box<Filler>),
}

/// The description of a model, as in `/v1/models` of the server.
#[derive(Serialize)]
pub(crate) struct ModelInfo {
    pub(crate) name: String,
    pub(crate) source: Option<String>,
    pub(crate) target: Option<String>,
    task: &'static str,
    family: Option<String>,
    parameters: usize,
    examples: Vec<String>,
}

impl OpenModel {
    /// Opens a package.
    pub(crate) fn new(name: &str, package: Vec<u8>) -> heedful::Result<OpenModel> {
        let folder = ModelFolder::of_package(name, package)?;
        let task = folder.config.task();
        let family = Some(folder.config.family().to_string());
        let examples = folder.document(EXAMPLES)?.map_or_else(Vec::new, |file| examples::packed(&file));
        let (source, target) = match task {
            Task::Translate => Some(languages(name, folder.languages.as_ref())).unzip(),
            _ => (None, None),
        };
        let options = OpenOptions::new();
        let (engine, task) = match task {
            Task::Translate => (Engine::Translator(Translator::open_folder(folder, &options)?), "translate"),
            Task::Language => {
                (Engine::Generator(Box::new(Generator::open_folder(folder, &options)?)), "generate")
            }
            Task::Classify => {
                (Engine::Classifier(Box::new(Classifier::open_folder(folder, &options)?)), "classify")
            }
            Task::Masked => (Engine::Filler(Box::new(Filler::open_folder(folder, &options)?)), "fill"),
        };
        let parameters = engine.model().params().count();
        let info = ModelInfo { name: name.to_owned(), source, target, task, family, parameters, examples };
        Ok(OpenModel { engine, info })
    }

    /// Whether it translates between these languages; an unknown language fits every code.
    pub(crate) fn fits(&self, source: Option<&str>, target: Option<&str>) -> bool {
        let fits = |own: &Option<String>, wanted: Option<&str>| {
            let own = own.as_deref().unwrap_or(UNKNOWN);
            own == UNKNOWN || wanted.is_none_or(|wanted| own.eq_ignore_ascii_case(wanted))
        };
        fits(&self.info.source, source.filter(|code| *code != "auto")) && fits(&self.info.target, target)
    }
}

/// The codes of the languages of a translator: from a name like `zh-en`, else from the model.
fn languages(name: &str, of_model: Option<&Languages>) -> (String, String) {
    let is_code =
        |word: &str| (2..=3).contains(&word.len()) && word.bytes().all(|letter| letter.is_ascii_lowercase());
    match (name.split_once('-'), of_model) {
        (Some((source, target)), _) if is_code(source) && is_code(target) => {
            (source.to_owned(), target.to_owned())
        }
        (_, Some(Languages { source, target })) => (source.clone(), target.clone()),
        _ => (UNKNOWN.to_owned(), UNKNOWN.to_owned()),
    }
}

impl Engine {
    fn model(&self) -> &dyn Model {
        match self {
            Engine::Translator(translator) => translator.model(),
            Engine::Generator(generator) => generator.model(),
            Engine::Classifier(classifier) => classifier.model(),
            Engine::Filler(filler) => filler.model(),
        }
    }
}
