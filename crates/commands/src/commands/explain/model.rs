//! A model of any task with attention.

use std::path::Path;

use anyhow::{Context, Result, bail};
use heedful::explain::{ExplainOptions, Explanation};
use heedful::models::HeadName;
use heedful::tasks::Task;
use heedful::tasks::classify::Classifier;
use heedful::tasks::folder::ModelFolder;
use heedful::tasks::language::Generator;
use heedful::tasks::masked::Filler;
use heedful::tasks::translate::Translator;

use super::input;
use super::sentence::SentenceArguments;
use crate::long_text::refused;

/// The model to explain.
pub(super) enum Model {
    Translator(Box<Translator>),
    Classifier(Box<Classifier>),
    Generator(Box<Generator>),
    Filler(Box<Filler>),
}

/// Maximum number of attention weights and scores in all explanations together, which are in memory before
/// the first is written.
const MAX_VALUES: usize = 1 << 26;

/// Counts the weights and scores of explanations.
#[derive(Default)]
struct ValueCount(usize);

impl ValueCount {
    fn add(&mut self, explanation: Explanation) -> Result<Explanation> {
        self.0 += explanation.value_count();
        if self.0 > MAX_VALUES {
            bail!(
                "these texts have more than {MAX_VALUES} attention weights together: give fewer, or write --weights none; \
                 --attention FILE of translate, classify, generate, fill and score writes them text by text"
            );
        }
        Ok(explanation)
    }
}

/// The task of the model in a folder.
pub(super) fn task_of(folder: &Path) -> Result<Task> {
    Ok(ModelFolder::open(folder)?.config.task())
}

impl Model {
    /// Opens a model for texts of at most `tokens` tokens; `without_heads` are checked.
    pub(super) fn open(
        folder: &Path,
        task: Task,
        tokens: Option<usize>,
        without_heads: &[HeadName],
    ) -> Result<Model> {
        let mut model = match task {
            Task::Translate => {
                let translator = Translator::open(folder)?;
                translator.model().check_heads(without_heads)?;
                Model::Translator(Box::new(translator))
            }
            Task::Classify => Model::Classifier(Box::new(Classifier::open(folder)?)),
            Task::Language => Model::Generator(Box::new(Generator::open(folder)?)),
            Task::Masked => Model::Filler(Box::new(Filler::open(folder)?)),
        };
        if let Some(tokens) = tokens {
            match &mut model {
                Model::Translator(translator) => translator.set_max_tokens(tokens),
                Model::Classifier(classifier) => classifier.set_max_tokens(tokens),
                Model::Generator(generator) => generator.set_max_tokens(tokens),
                Model::Filler(filler) => filler.set_max_tokens(tokens),
            }?;
        }
        Ok(model)
    }

    /// Explanations of all texts; `show` is called with the number of finished ones.
    pub(super) fn explain(
        &self,
        texts: &[String],
        arguments: &SentenceArguments,
        options: &ExplainOptions,
        show: impl Fn(usize),
    ) -> Result<Vec<Explanation>> {
        if let Model::Translator(translator) = self {
            input::check_lengths(translator, texts, arguments.target.as_slice(), "text")?;
            return explain_translations(translator, texts, arguments, options, show);
        }
        let mut values = ValueCount::default();
        let all = texts.iter().enumerate().map(|(number, text)| {
            show(number);
            let explanation = self.explain_text(text, number, arguments.n_best(), options);
            values.add(explanation.with_context(|| format!("text {}", number + 1))?)
        });
        all.collect()
    }

    fn explain_text(
        &self,
        text: &str,
        number: usize,
        n_best: usize,
        options: &ExplainOptions,
    ) -> Result<Explanation> {
        let too_long = |error| refused(format!("text {}", number + 1), error, "--max-tokens N");
        Ok(match self {
            Model::Translator(_) => unreachable!("translations are explained together"),
            Model::Classifier(classifier) => {
                let ids =
                    classifier.limit().encode(text, |text| classifier.encode(text)).map_err(too_long)?;
                Explanation::of_class(classifier, text, &ids, n_best, options)?
            }
            Model::Generator(generator) => {
                let ids = generator.limit().encode(text, |text| generator.encode(text)).map_err(too_long)?;
                Explanation::of_text(generator, &ids, options)?
            }
            Model::Filler(filler) => {
                let ids = filler.limit().encode(text, |text| filler.encode(text)).map_err(too_long)?;
                Explanation::of_gaps(filler, text, &ids, options)?
            }
        })
    }
}

fn explain_translations(
    translator: &Translator,
    texts: &[String],
    arguments: &SentenceArguments,
    options: &ExplainOptions,
    show: impl Fn(usize),
) -> Result<Vec<Explanation>> {
    let translations = match &arguments.target {
        Some(_) if texts[0].trim().is_empty() => {
            bail!("the text is blank: --target needs a source text to be its translation")
        }
        Some(target) => vec![translator.force(&texts[0], target, &options.search)?],
        None => translator.translate(texts, &options.search)?,
    };
    let both = texts.iter().zip(&translations).enumerate();
    let mut values = ValueCount::default();
    let explanations = both.map(|(number, (text, translation))| {
        show(number);
        values.add(Explanation::of_translation(translator, text, translation, options)?)
    });
    explanations.collect()
}
