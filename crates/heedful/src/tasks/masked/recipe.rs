//! Recipes of masked language models.

use std::sync::Arc;

use super::validation::MaskedSet;
use super::{MaskedConfig, MaskedModel};
use crate::Result;
use crate::data::batch::BatchLayout;
use crate::data::corpus::CorpusFiles;
use crate::data::encoded::ExampleKind;
use crate::data::labels::Labels;
use crate::data::{CorpusError, Input, SpecialTokens};
use crate::models::Model;
use crate::models::family::EncoderFamily;
use crate::models::transformer::StackConfig;
use crate::recipe::{DataKeys, Family, Recipe, RecipeError};
use crate::tasks::recipe::check_single_sided;
use crate::tasks::validation::ValidationSet;
use crate::tasks::{
    Assembled, ConfigError, Materials, ModelConfig, Sizes, Task, TaskConfig, TaskDefinition, TaskWords,
    plain_text,
};

/// The task `mlm`.
pub(crate) struct Definition;

impl TaskConfig for MaskedConfig {
    type Model = MaskedModel;

    fn validate(&self) -> Result<(), ConfigError> {
        self.validate()
    }

    fn build(&self, seed: u64) -> Result<MaskedModel, ConfigError> {
        MaskedModel::new(self.clone(), seed)
    }

    fn family(&self) -> Family {
        Family::Transformer
    }

    fn special_tokens(&self) -> SpecialTokens {
        self.stack.special.clone()
    }

    fn set_special_tokens(&mut self, special: SpecialTokens) {
        self.stack.special = special;
    }

    fn describe(&self, recipe: &mut Recipe) {
        recipe.model.family = Family::Transformer;
        recipe.model.output_bias = self.output_bias;
        EncoderFamily::describe(&self.stack, recipe);
    }

    fn summary(&self) -> String {
        format!("Masked language model of {}", self.stack.summary())
    }
}

impl TaskDefinition for Definition {
    fn words(&self) -> &'static TaskWords {
        &TaskWords {
            command: "fill",
            command_input: "\"TEXT with <mask>\"",
            model: "a masked language model",
            examples: "texts",
            training_keys: "data.text",
            validation_flags: "--valid-text",
            starts_from: &[Task::Masked],
        }
    }

    fn keys(&self, _family: Family) -> Vec<&'static [&'static str]> {
        vec![plain_text::KEYS, &["model.output_bias"], <StackConfig as EncoderFamily>::KEYS]
    }

    fn has_validation(&self, data: &DataKeys) -> bool {
        !data.valid_text.is_empty()
    }

    fn start_recipe(&self, recipe: &mut Recipe) {
        recipe.training.label_smoothing = 0.0;
    }

    fn check_recipe(&self, recipe: &Recipe) -> Result<(), RecipeError> {
        check_single_sided(recipe)?;
        if recipe.model.family != Family::Transformer {
            return Err(RecipeError::Conflict(
                "masked language models are Transformers: set model.family to \"transformer\"".to_owned(),
            ));
        }
        if recipe.training.r_drop_alpha.is_some() {
            return Err(RecipeError::Conflict(
                "R-Drop compares two passes that predict the same tokens, and the task mlm masks others in each: set \
                 training.r_drop_alpha to \"none\""
                    .to_owned(),
            ));
        }
        plain_text::check(recipe)
    }

    fn config(&self, recipe: &Recipe, sizes: Sizes) -> ModelConfig {
        let [vocabulary, _] = sizes.vocabularies;
        ModelConfig::Masked(MaskedConfig {
            stack: StackConfig::from_recipe(recipe, vocabulary),
            label_smoothing: recipe.training.label_smoothing as f32,
            output_bias: recipe.model.output_bias,
        })
    }

    fn training_files(&self, data: &DataKeys) -> Result<CorpusFiles, CorpusError> {
        CorpusFiles::plain(&Input::list(&data.text))
    }

    fn example_kind<'l>(&self, data: &DataKeys, _labels: Option<&'l Labels>) -> ExampleKind<'l> {
        plain_text::example_kind(data, BatchLayout::Texts, BatchLayout::Texts)
    }

    fn inherit_architecture(&self, recipe: &mut Recipe, pretrained: &ModelConfig) {
        pretrained.describe(recipe);
        plain_text::fit_into_positions(recipe);
    }

    fn assemble(&self, materials: Materials<'_>) -> Result<Assembled> {
        let recipe = materials.recipe;
        let config: MaskedConfig = materials.config(self);
        let model = Arc::new(config.build(recipe.training.seed)?);
        let reading = self.example_kind(&recipe.data, None);
        let special = model.special_tokens();
        let texts = plain_text::TextSet::read(recipe, reading, materials.tokenizers, special)?;
        let validated = model.clone();
        let set = |texts| Box::new(MaskedSet { texts, model: validated }) as Box<dyn ValidationSet>;
        Ok(Assembled { config: config.into(), model, validation: texts.map(set) })
    }
}
