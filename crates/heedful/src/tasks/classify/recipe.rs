//! Classifiers as recipes describe them.

use std::path::Path;
use std::sync::Arc;

use super::validation::LabelSet;
use super::{ClassifierConfig, EncoderClassifier, pretrained};
use crate::data::corpus::CorpusFiles;
use crate::data::encoded::ExampleKind;
use crate::data::labels::{Labels, LabelsError};
use crate::data::{CorpusError, Input, SpecialTokens};
use crate::models::{EncoderConfig, Model};
use crate::recipe::{BestBy, DataKeys, Family, Recipe, RecipeError};
use crate::tasks::recipe::check_single_sided;
use crate::tasks::validation::ValidationSet;
use crate::tasks::{
    Assembled, ConfigError, Materials, ModelConfig, Sizes, TaskConfig, TaskDefinition, TaskError,
};

const KEYS: &[&str] = &["data.label_text", "data.valid_label_text", "model.pooling", "model.pooling_score"];

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

    fn summary(&self) -> String {
        self.summary()
    }
}

impl TaskDefinition for Definition {
    fn command(&self) -> &'static str {
        "classify"
    }

    fn command_input(&self) -> &'static str {
        "FILE"
    }

    fn model(&self) -> &'static str {
        "a classifier"
    }

    fn examples(&self) -> &'static str {
        "texts"
    }

    fn keys(&self, family: Family) -> Vec<&'static [&'static str]> {
        // Masked language models are Transformers.
        let pretrained: &[&str] = if family == Family::Transformer { &["model.init_from"] } else { &[] };
        vec![KEYS, pretrained, EncoderConfig::keys(family)]
    }

    fn training_keys(&self) -> &'static str {
        "data.label_text"
    }

    fn has_validation(&self, data: &DataKeys) -> bool {
        !data.valid_label_text.is_empty()
    }

    fn validation_flags(&self) -> &'static str {
        "--valid-label-text"
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

    fn adopt(&self, recipe: &mut Recipe, folder: &Path) -> Result<(), TaskError> {
        pretrained::adopt(recipe, folder)
    }

    fn install_pretrained(&self, model: &dyn Model, folder: &Path) -> Result<(), TaskError> {
        pretrained::install(model.params(), folder)
    }

    fn assemble(&self, materials: Materials<'_>) -> Result<Assembled, TaskError> {
        let (recipe, sizes) = (materials.recipe, materials.sizes());
        let mut config = ClassifierConfig::try_from(self.config(recipe, sizes)).expect("it is this task's");
        if let (Some(special), EncoderConfig::Transformer(stack)) = (&materials.special, &mut config.encoder)
        {
            stack.special = special.clone();
        }
        let model = Arc::new(config.build(recipe.training.seed)?);
        let set = LabelSet::read(&materials, model.clone())?;
        let validation = set.map(|set| Box::new(set) as Box<dyn ValidationSet>);
        Ok(Assembled { config: config.into(), model, validation })
    }
}
