//! Recipes of language models.

use std::sync::Arc;

use super::validation::LanguageSet;
use super::{LanguageConfig, LanguageModel, LanguageStack, TextShape};
use crate::Result;
use crate::data::batch::BatchLayout;
use crate::data::corpus::CorpusFiles;
use crate::data::encoded::ExampleKind;
use crate::data::labels::Labels;
use crate::data::{CorpusError, Input, SpecialTokens};
use crate::models::Model;
use crate::models::recurrent::RecurrentDecoderConfig;
use crate::models::transformer::StackConfig;
use crate::recipe::{DataKeys, Family, Recipe, RecipeError};
use crate::tasks::recipe::check_single_sided;
use crate::tasks::validation::ValidationSet;
use crate::tasks::{
    Assembled, ConfigError, Materials, ModelConfig, Sizes, Task, TaskConfig, TaskDefinition, TaskWords,
    plain_text,
};

/// The task `lm`.
pub(crate) struct Definition;

impl TaskConfig for LanguageConfig {
    type Model = LanguageModel;

    fn validate(&self) -> Result<(), ConfigError> {
        self.validate()
    }

    fn build(&self, seed: u64) -> Result<LanguageModel, ConfigError> {
        LanguageModel::new(self.clone(), seed)
    }

    fn family(&self) -> Family {
        self.family()
    }

    fn special_tokens(&self) -> SpecialTokens {
        self.special_tokens()
    }

    fn set_special_tokens(&mut self, special: SpecialTokens) {
        if let LanguageStack::Transformer(stack) = &mut self.stack {
            stack.special = special;
        }
    }

    fn describe(&self, recipe: &mut Recipe) {
        recipe.model.family = self.family();
        recipe.model.output_bias = self.output_bias;
        match &self.stack {
            LanguageStack::Transformer(stack) => stack.describe_decoder(recipe),
            LanguageStack::Recurrent(stack) => stack.describe(recipe),
        }
    }

    fn summary(&self) -> String {
        self.summary()
    }
}

impl TaskDefinition for Definition {
    fn words(&self) -> &'static TaskWords {
        &TaskWords {
            command: "generate",
            command_input: "--prompt TEXT",
            model: "a language model",
            examples: "texts",
            training_keys: "data.text",
            validation_flags: "--valid-text",
            starts_from: &[Task::Language],
        }
    }

    fn keys(&self, family: Family) -> Vec<&'static [&'static str]> {
        let decoder = match family {
            Family::Recurrent => RecurrentDecoderConfig::KEYS,
            Family::Transformer | Family::Convolutional => StackConfig::DECODER_KEYS,
        };
        vec![plain_text::KEYS, &["model.output_bias"], decoder]
    }

    fn has_validation(&self, data: &DataKeys) -> bool {
        !data.valid_text.is_empty()
    }

    fn start_recipe(&self, recipe: &mut Recipe) {
        recipe.training.label_smoothing = 0.0;
        recipe.data.block = Some(LanguageConfig::BLOCK);
    }

    fn check_recipe(&self, recipe: &Recipe) -> Result<(), RecipeError> {
        check_single_sided(recipe)?;
        if recipe.model.family == Family::Convolutional {
            return Err(RecipeError::Conflict(
                "language models are Transformers or recurrent networks: set model.family to \"transformer\" or \"recurrent\""
                    .to_owned(),
            ));
        }
        plain_text::check(recipe)
    }

    fn config(&self, recipe: &Recipe, sizes: Sizes) -> ModelConfig {
        let [_, vocabulary] = sizes.vocabularies;
        ModelConfig::Language(LanguageConfig {
            stack: match recipe.model.family {
                Family::Recurrent => RecurrentDecoderConfig::from_recipe(recipe, vocabulary).into(),
                Family::Transformer | Family::Convolutional => {
                    StackConfig::decoder_from_recipe(recipe, vocabulary).into()
                }
            },
            text: if recipe.data.block.is_some() { TextShape::Running } else { TextShape::Lines },
            block: recipe.data.block,
            label_smoothing: recipe.training.label_smoothing as f32,
            output_bias: recipe.model.output_bias,
        })
    }

    fn training_files(&self, data: &DataKeys) -> Result<CorpusFiles, CorpusError> {
        CorpusFiles::plain(&Input::list(&data.text))
    }

    fn example_kind<'l>(&self, data: &DataKeys, _labels: Option<&'l Labels>) -> ExampleKind<'l> {
        plain_text::example_kind(data, BatchLayout::Lines, BatchLayout::Blocks)
    }

    fn inherit_architecture(&self, recipe: &mut Recipe, pretrained: &ModelConfig) {
        pretrained.describe(recipe);
        if let ModelConfig::Language(LanguageConfig { text: TextShape::Lines, .. }) = pretrained {
            recipe.data.block = None;
        }
        plain_text::fit_into_positions(recipe);
    }

    fn assemble(&self, materials: Materials<'_>) -> Result<Assembled> {
        let recipe = materials.recipe;
        let config: LanguageConfig = materials.config(self);
        let model = Arc::new(config.build(recipe.training.seed)?);
        let reading = self.example_kind(&recipe.data, None);
        let special = model.special_tokens();
        let texts = plain_text::TextSet::read(recipe, reading, materials.tokenizers, special)?;
        let validated = model.clone();
        let set = |texts| Box::new(LanguageSet { texts, model: validated }) as Box<dyn ValidationSet>;
        Ok(Assembled { config: config.into(), model, validation: texts.map(set) })
    }
}
