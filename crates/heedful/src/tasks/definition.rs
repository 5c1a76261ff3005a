//! The interface of a task, through which recipes, runs and commands use it.

use std::sync::Arc;

use super::validation::ValidationSet;
use super::{ConfigError, ModelConfig, Task};
use crate::Result;
use crate::data::corpus::CorpusFiles;
use crate::data::encoded::ExampleKind;
use crate::data::labels::{Labels, LabelsError};
use crate::data::tokenizer::Tokenizers;
use crate::data::{CorpusError, SpecialTokens};
use crate::models::Model;
use crate::recipe::{DataKeys, Family, Recipe, RecipeError};

/// The configuration of a task's models.
pub(crate) trait TaskConfig: Sized {
    /// The model, with the abilities that the task needs.
    type Model: Model + 'static;

    /// Whether a model can be built from this; if not, the error explains what to change.
    fn validate(&self) -> Result<(), ConfigError>;

    /// A new model; `seed` determines its initial parameters.
    fn build(&self, seed: u64) -> Result<Self::Model, ConfigError>;

    /// The family of the model, or of its one stack.
    fn family(&self) -> Family;

    /// The model in a few words.
    fn summary(&self) -> String;

    /// The special tokens of its models.
    fn special_tokens(&self) -> SpecialTokens {
        SpecialTokens::default()
    }

    /// Gives its models other special tokens.
    fn set_special_tokens(&mut self, _special: SpecialTokens) {}

    /// Sets the keys of the architecture in a recipe to this one's.
    fn describe(&self, recipe: &mut Recipe);
}

/// A task, as recipes, runs and commands use it.
pub(crate) trait TaskDefinition: Sync {
    /// The task in words.
    fn words(&self) -> &'static TaskWords;

    /// The keys that it reads of those that not every run does, with a model of this family.
    fn keys(&self, family: Family) -> Vec<&'static [&'static str]>;

    /// Whether a validation set is named.
    fn has_validation(&self, data: &DataKeys) -> bool;

    /// Sets the recipe defaults of this task that differ from translation's.
    fn start_recipe(&self, recipe: &mut Recipe);

    /// Whether the values of a recipe fit the task.
    fn check_recipe(&self, recipe: &Recipe) -> Result<(), RecipeError>;

    /// The configuration that a recipe describes, given the numbers of tokens and labels.
    fn config(&self, recipe: &Recipe, sizes: Sizes) -> ModelConfig;

    /// The training text.
    fn training_files(&self, data: &DataKeys) -> Result<CorpusFiles, CorpusError>;

    /// The labels in the training text; `None` for tasks without labels.
    fn labels(&self, _files: &CorpusFiles) -> Result<Option<Labels>, LabelsError> {
        Ok(None)
    }

    /// How lines of text become examples.
    fn example_kind<'l>(&self, data: &DataKeys, labels: Option<&'l Labels>) -> ExampleKind<'l>;

    /// Sets the keys of a recipe that describe the architecture to those of the model that the run starts from, and those of
    /// the text to what that model can read.
    fn adopt(&self, recipe: &mut Recipe, original: &ModelConfig) {
        original.describe(recipe);
    }

    /// Whether a parameter that the model does not have from which the run starts begins as in a model that starts from
    /// nothing; others are an error.
    fn begins_anew(&self, _parameter: &str) -> bool {
        false
    }

    /// Builds the model, and reads its validation set.
    fn assemble(&self, materials: Materials<'_>) -> Result<Assembled>;
}

/// A task in words, for messages and help.
pub(crate) struct TaskWords {
    /// The command that uses a model of this task.
    pub(crate) command: &'static str,
    /// The command's argument after the model's folder.
    pub(crate) command_input: &'static str,
    /// What a model of this task is called, with its article.
    pub model: &'static str,
    /// What its examples are called.
    pub examples: &'static str,
    /// The keys that name the training text, for error messages.
    pub(crate) training_keys: &'static str,
    /// The flags that name its validation set.
    pub(crate) validation_flags: &'static str,
    /// The tasks of models that a model of this task may start from.
    pub(crate) starts_from: &'static [Task],
}

/// The numbers of tokens and labels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// Of source and target.
    pub(crate) vocabularies: [usize; 2],
    /// 0 for tasks without labels.
    pub labels: usize,
}

/// What a model and its validation set are built from.
pub(crate) struct Materials<'a> {
    pub(crate) recipe: &'a Recipe,
    pub tokenizers: &'a Tokenizers,
    pub labels: Option<&'a Labels>,
    /// The special tokens of the model that this one starts from, if it starts from one.
    pub special: Option<SpecialTokens>,
}

/// A model to train, with its validation set.
pub(crate) struct Assembled {
    pub(crate) config: ModelConfig,
    pub model: Arc<dyn Model>,
    pub(crate) validation: Option<Box<dyn ValidationSet>>,
}

impl Materials<'_> {
    /// The configuration that the recipe describes, with the special tokens of the model that this one starts from.
    pub(crate) fn config<C: TryFrom<ModelConfig, Error = Task>>(&self, task: &dyn TaskDefinition) -> C {
        let mut config = task.config(self.recipe, self.sizes());
        if let Some(special) = &self.special {
            config.set_special_tokens(special.clone());
        }
        C::try_from(config).unwrap_or_else(|task| unreachable!("a configuration of the task {task}"))
    }

    /// The numbers of tokens and labels.
    pub(crate) fn sizes(&self) -> Sizes {
        Sizes {
            vocabularies: [self.tokenizers.source.size(), self.tokenizers.target.size()],
            labels: self.labels.map_or(0, Labels::count),
        }
    }
}
