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

/// The configuration of the models of a task.
pub(crate) trait TaskConfig: Sized {
    /// The model, with the traits that the task needs.
    type Model: Model + 'static;

    /// Checks that a model can be built; the error explains what to change.
    fn validate(&self) -> Result<(), ConfigError>;

    /// Builds a new model; `seed` determines its initial parameters.
    fn build(&self, seed: u64) -> Result<Self::Model, ConfigError>;

    /// The family of the model.
    fn family(&self) -> Family;

    /// A one-line description of the model.
    fn summary(&self) -> String;

    /// The special tokens of the model.
    fn special_tokens(&self) -> SpecialTokens {
        SpecialTokens::default()
    }

    /// Replaces the special tokens.
    fn set_special_tokens(&mut self, _special: SpecialTokens) {}

    /// Sets the architecture keys of a recipe to this configuration.
    fn describe(&self, recipe: &mut Recipe);
}

/// A task, as recipes, runs and commands use it.
pub(crate) trait TaskDefinition: Sync {
    /// The names of the task in messages and help.
    fn words(&self) -> &'static TaskWords;

    /// The recipe keys that this task uses with a model of this family, besides those of every run.
    fn keys(&self, family: Family) -> Vec<&'static [&'static str]>;

    /// Whether the recipe names a validation set.
    fn has_validation(&self, data: &DataKeys) -> bool;

    /// Sets the recipe defaults that differ from those of translation.
    fn start_recipe(&self, recipe: &mut Recipe);

    /// Checks that the values of a recipe fit the task.
    fn check_recipe(&self, recipe: &Recipe) -> Result<(), RecipeError>;

    /// The configuration that a recipe describes, given the sizes of the vocabularies and the number of
    /// labels.
    fn config(&self, recipe: &Recipe, sizes: Sizes) -> ModelConfig;

    /// The files of the training text.
    fn training_files(&self, data: &DataKeys) -> Result<CorpusFiles, CorpusError>;

    /// The labels in the training text; `None` for tasks without labels.
    fn labels(&self, _files: &CorpusFiles) -> Result<Option<Labels>, LabelsError> {
        Ok(None)
    }

    /// How lines of text become examples.
    fn example_kind<'l>(&self, data: &DataKeys, labels: Option<&'l Labels>) -> ExampleKind<'l>;

    /// Sets the architecture keys of a recipe to those of the pretrained model, and adapts the text keys to
    /// its input limits.
    fn inherit_architecture(&self, recipe: &mut Recipe, pretrained: &ModelConfig) {
        pretrained.describe(recipe);
    }

    /// Whether a parameter that the pretrained model lacks is initialized randomly. If not, its absence is an
    /// error.
    fn is_reinitialized(&self, _parameter: &str) -> bool {
        false
    }

    /// Builds the model and reads its validation set.
    fn assemble(&self, materials: Materials<'_>) -> Result<Assembled>;
}

/// The names of a task in messages and help.
pub(crate) struct TaskWords {
    /// The command that uses a model of this task.
    pub(crate) command: &'static str,
    /// The command's argument after the model's folder.
    pub(crate) command_input: &'static str,
    /// The name of a model of this task, with its article.
    pub model: &'static str,
    /// The name of the task's examples.
    pub examples: &'static str,
    /// The keys that name the training text, for error messages.
    pub(crate) training_keys: &'static str,
    /// The flags that name the validation set.
    pub(crate) validation_flags: &'static str,
    /// The tasks whose models can serve as the pretrained model.
    pub(crate) starts_from: &'static [Task],
}

/// Sizes of the vocabularies and number of labels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// Source and target.
    pub(crate) vocabularies: [usize; 2],
    /// 0 for tasks without labels.
    pub labels: usize,
}

/// The inputs from which a model and its validation set are built.
pub(crate) struct Materials<'a> {
    pub(crate) recipe: &'a Recipe,
    pub tokenizers: &'a Tokenizers,
    pub labels: Option<&'a Labels>,
    /// The special tokens of the pretrained model, if there is one.
    pub special: Option<SpecialTokens>,
}

/// A model to train, with its validation set.
pub(crate) struct Assembled {
    pub(crate) config: ModelConfig,
    pub model: Arc<dyn Model>,
    pub(crate) validation: Option<Box<dyn ValidationSet>>,
}

impl Materials<'_> {
    /// The configuration that the recipe describes, with the special tokens of the pretrained model.
    pub(crate) fn config<C: TryFrom<ModelConfig, Error = Task>>(&self, task: &dyn TaskDefinition) -> C {
        let mut config = task.config(self.recipe, self.sizes());
        if let Some(special) = &self.special {
            config.set_special_tokens(special.clone());
        }
        C::try_from(config).unwrap_or_else(|task| unreachable!("a configuration of the task {task}"))
    }

    /// The sizes of the vocabularies and the number of labels.
    pub(crate) fn sizes(&self) -> Sizes {
        Sizes {
            vocabularies: [self.tokenizers.source.size(), self.tokenizers.target.size()],
            labels: self.labels.map_or(0, Labels::count),
        }
    }
}
