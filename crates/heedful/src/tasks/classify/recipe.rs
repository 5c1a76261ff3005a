//! Recipes of classifiers.

use std::sync::Arc;

use super::validation::LabelSet;
use super::{ClassifierConfig, EncoderClassifier};
use crate::Result;
use crate::data::corpus::CorpusFiles;
use crate::data::encoded::ExampleKind;
use crate::data::labels::{Labels, LabelsError};
use crate::data::{CorpusError, Input, SpecialTokens};
use crate::models::EncoderConfig;
use crate::recipe::{BestBy, DataKeys, Family, Recipe, RecipeError};
use crate::tasks::recipe::check_single_sided;
use crate::tasks::validation::ValidationSet;
use crate::tasks::{
    Assembled, ConfigError, Materials, ModelConfig, Sizes, Task, TaskConfig, TaskDefinition, TaskWords,
};

const KEYS: &[&str] = &[
    "data.label_text",
    "data.valid_label_text",
    "model.pooling",
    "model.pooling_score",
    "model.pooler",
    "model.label_bias",
];

/// The task `classify`.
pub(crate) struct Definition;

impl TaskConfig for ClassifierConfig {
    type Model = EncoderClassifier;

    fn validate(&self) -> Result<(), ConfigError> {
        self.validate()
    }

    fn build(&self, seed: u64) -> Result<EncoderClassifier, ConfigError> {
        EncoderClassifier::new(self.clone(), seed)
    }

    fn family(&self) -> Family {
        self.encoder.family()
    }

    fn special_tokens(&self) -> SpecialTokens {
        match &self.encoder {
            EncoderConfig::Transformer(stack) => stack.special.clone(),
            _ => SpecialTokens::default(),
        }
    }

    fn set_special_tokens(&mut self, special: SpecialTokens) {
        if let EncoderConfig::Transformer(stack) = &mut self.encoder {
            stack.special = special;
        }
    }

    fn describe(&self, recipe: &mut Recipe) {
        (recipe.model.pooling, recipe.model.pooling_score) = (self.pooling, self.pooling_score);
        (recipe.model.pooler, recipe.model.label_bias) = (self.pooler, self.label_bias);
        self.encoder.describe(recipe);
    }

    fn summary(&self) -> String {
        self.summary()
    }
}

impl TaskDefinition for Definition {
    fn words(&self) -> &'static TaskWords {
        &TaskWords {
            command: "classify",
            command_input: "FILE",
            model: "a classifier",
            examples: "texts",
            training_keys: "data.label_text",
            validation_flags: "--valid-label-text",
            starts_from: &[Task::Classify, Task::Masked],
        }
    }

    fn keys(&self, family: Family) -> Vec<&'static [&'static str]> {
        vec![KEYS, EncoderConfig::keys(family)]
    }

    fn has_validation(&self, data: &DataKeys) -> bool {
        !data.valid_label_text.is_empty()
    }

    fn start_recipe(&self, recipe: &mut Recipe) {
        recipe.training.label_smoothing = 0.0;
        recipe.validation.best_by = BestBy::Accuracy;
    }

    fn check_recipe(&self, recipe: &Recipe) -> Result<(), RecipeError> {
        check_single_sided(recipe)
    }

    fn config(&self, recipe: &Recipe, sizes: Sizes) -> ModelConfig {
        let [vocabulary, _] = sizes.vocabularies;
        ModelConfig::Classify(ClassifierConfig {
            labels: sizes.labels,
            pooling: recipe.model.pooling,
            pooling_score: recipe.model.pooling_score,
            pooler: recipe.model.pooler,
            label_bias: recipe.model.label_bias,
            dropout: recipe.training.dropout as f32,
            label_smoothing: recipe.training.label_smoothing as f32,
            encoder: EncoderConfig::from_recipe(recipe, vocabulary),
        })
    }

    fn training_files(&self, data: &DataKeys) -> Result<CorpusFiles, CorpusError> {
        CorpusFiles::labelled(&Input::list(&data.label_text))
    }

    fn labels(&self, files: &CorpusFiles) -> Result<Option<Labels>, LabelsError> {
        Labels::collect(files).map(Some)
    }

    fn example_kind<'l>(&self, _data: &DataKeys, labels: Option<&'l Labels>) -> ExampleKind<'l> {
        ExampleKind::Labels(labels.expect("a classifier's labels are collected first"))
    }

    fn inherit_architecture(&self, recipe: &mut Recipe, pretrained: &ModelConfig) {
        match pretrained {
            // The head for masked tokens is not inherited.
            ModelConfig::Masked(config) => {
                EncoderConfig::Transformer(config.stack.clone()).describe(recipe);
            }
            other => other.describe(recipe),
        }
    }

    fn is_reinitialized(&self, parameter: &str) -> bool {
        ["pooling.", "pooler.", "labels."].iter().any(|prefix| parameter.starts_with(prefix))
    }

    fn assemble(&self, materials: Materials<'_>) -> Result<Assembled> {
        let recipe = materials.recipe;
        let config: ClassifierConfig = materials.config(self);
        let model = Arc::new(config.build(recipe.training.seed)?);
        let set = LabelSet::read(&materials, model.clone())?;
        let validation = set.map(|set| Box::new(set) as Box<dyn ValidationSet>);
        Ok(Assembled { config: config.into(), model, validation })
    }
}
