//! What a task must say of itself, so that recipes, runs and commands need not know it.

use std::path::Path;
use std::sync::Arc;

use super::validation::ValidationSet;
use super::{ConfigError, ModelConfig, TaskError};
use crate::data::CorpusError;
use crate::data::corpus::CorpusFiles;
use crate::data::encoded::ExampleKind;
use crate::data::labels::{Labels, LabelsError};
use crate::data::tokenizer::Tokenizers;
use crate::models::Model;
use crate::recipe::{DataKeys, Family, Recipe, RecipeError};

/// What the models of a task are made of.
pub(crate) trait TaskConfig: Sized {
    /// A model with every ability that the task needs.
    type Model: Model + 'static;

    /// Whether this can be built; if not, the error says what to change.
    fn validate(&self) -> Result<(), ConfigError>;

    /// A fresh model; `seed` decides its first values.
    fn build(&self, seed: u64) -> Result<Self::Model, ConfigError>;

    /// What the model, or its one stack, is made of.
    fn family(&self) -> Family;

    /// The model in a few words.
    fn summary(&self) -> String;
}

/// A task, as recipes, runs and commands know it.
pub(crate) trait TaskDefinition: Sync {
    /// The command that uses such a model.
    fn command(&self) -> &'static str;

    /// What that command is given beside the model's folder.
    fn command_input(&self) -> &'static str;

    /// What a model for this is called, with its article.
    fn model(&self) -> &'static str;

    /// What its examples are called.
    fn examples(&self) -> &'static str;

    /// The keys of the section `data` that name its files.
    fn file_keys(&self) -> &'static [&'static str];

    /// Those of them that name the training text, in words.
    fn training_keys(&self) -> &'static str;

    /// The flags that name its validation set.
    fn validation_flags(&self) -> &'static str;

    /// Changes the values that a recipe starts from where this task wants others than translation.
    fn start_recipe(&self, recipe: &mut Recipe);

    /// Whether the values of a recipe fit the task.
    fn check_recipe(&self, recipe: &Recipe) -> Result<(), RecipeError>;

    /// What a recipe describes, once it is known how many tokens and labels there are.
    fn config(&self, recipe: &Recipe, sizes: Sizes) -> ModelConfig;

    /// The training text.
    fn training_files(&self, data: &DataKeys) -> Result<CorpusFiles, CorpusError>;

    /// The labels in the training text; none where texts have none.
    fn labels(&self, _files: &CorpusFiles) -> Result<Option<Labels>, LabelsError> {
        Ok(None)
    }

    /// How lines of text become examples.
    fn example_kind<'l>(&self, data: &DataKeys, labels: Option<&'l Labels>) -> ExampleKind<'l>;

    /// Takes over what a recipe must have in common with the model that it starts from (`model.init_from`).
    fn adopt(&self, _recipe: &mut Recipe, _pretrained: &Path) -> Result<(), TaskError> {
        Ok(())
    }

    /// Copies what they share from a pretrained model into a fresh one.
    fn install_pretrained(&self, _model: &dyn Model, _pretrained: &Path) -> Result<(), TaskError> {
        Ok(())
    }

    /// Builds the model, and reads the validation set that judges it.
    fn assemble(&self, materials: Materials<'_>) -> Result<Assembled, TaskError>;
}

/// How many tokens and labels there are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// Of source and target.
    pub(crate) vocabularies: [usize; 2],
    /// 0 where texts have none.
    pub(crate) labels: usize,
}

/// What a model and its validation set are made from.
pub(crate) struct Materials<'a> {
    pub(crate) recipe: &'a Recipe,
    pub(crate) tokenizers: &'a Tokenizers,
    pub(crate) labels: Option<&'a Labels>,
}

/// A model to train, with what judges it.
pub(crate) struct Assembled {
    pub(crate) config: ModelConfig,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) validation: Option<Box<dyn ValidationSet>>,
}

impl Materials<'_> {
    /// How many tokens and labels there are.
    pub(crate) fn sizes(&self) -> Sizes {
        Sizes {
            vocabularies: [self.tokenizers.source.size(), self.tokenizers.target.size()],
            labels: self.labels.map_or(0, Labels::count),
        }
    }
}
