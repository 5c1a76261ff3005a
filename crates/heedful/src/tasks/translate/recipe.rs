//! Recipes of translators.

use std::sync::Arc;

use super::validation::TranslationSet;
use crate::Result;
use crate::data::corpus::CorpusFiles;
use crate::data::encoded::ExampleKind;
use crate::data::labels::Labels;
use crate::data::{CorpusError, Input, SpecialTokens};
use crate::models::{EncoderDecoderConfig, Generate, Model};
use crate::recipe::{DataKeys, Family, Recipe, RecipeError};
use crate::tasks::validation::ValidationSet;
use crate::tasks::{
    Assembled, ConfigError, Materials, ModelConfig, Sizes, Task, TaskConfig, TaskDefinition, TaskWords,
};

const KEYS: &[&str] = &[
    "data.src",
    "data.tgt",
    "data.tsv",
    "data.valid_src",
    "data.valid_tgt",
    "data.valid_tsv",
    "data.max_ratio",
    "vocabulary.sharing",
    "vocabulary.source_file",
    "vocabulary.target_file",
    "validation.bleu",
    "validation.bleu_pairs",
    "search.beam",
    "search.length_penalty",
    "search.beyond_source",
    "search.no_repeat_ngram",
];

/// The task `translate`.
pub(crate) struct Definition;

impl TaskConfig for EncoderDecoderConfig {
    type Model = Box<dyn Generate>;

    fn validate(&self) -> Result<(), ConfigError> {
        self.validate()
    }

    fn build(&self, seed: u64) -> Result<Box<dyn Generate>, ConfigError> {
        self.build(seed)
    }

    fn family(&self) -> Family {
        self.family()
    }

    fn special_tokens(&self) -> SpecialTokens {
        match self {
            EncoderDecoderConfig::Transformer(config) => config.special.clone(),
            _ => SpecialTokens::default(),
        }
    }

    fn set_special_tokens(&mut self, special: SpecialTokens) {
        if let EncoderDecoderConfig::Transformer(config) = self {
            config.special = special;
        }
    }

    fn describe(&self, recipe: &mut Recipe) {
        self.describe(recipe);
    }

    fn summary(&self) -> String {
        self.summary()
    }
}

impl TaskDefinition for Definition {
    fn words(&self) -> &'static TaskWords {
        &TaskWords {
            command: "translate",
            command_input: "FILE",
            model: "a translator",
            examples: "pairs",
            training_keys: "data.src and data.tgt, or data.tsv",
            validation_flags: "--valid-src and --valid-tgt",
            starts_from: &[Task::Translate],
        }
    }

    fn keys(&self, family: Family) -> Vec<&'static [&'static str]> {
        vec![KEYS, EncoderDecoderConfig::keys(family)]
    }

    fn has_validation(&self, data: &DataKeys) -> bool {
        !data.valid_src.is_empty() || !data.valid_tsv.is_empty()
    }

    fn start_recipe(&self, _recipe: &mut Recipe) {}

    fn check_recipe(&self, _recipe: &Recipe) -> Result<(), RecipeError> {
        Ok(())
    }

    fn config(&self, recipe: &Recipe, sizes: Sizes) -> ModelConfig {
        EncoderDecoderConfig::from_recipe(recipe, sizes.vocabularies).into()
    }

    fn training_files(&self, data: &DataKeys) -> Result<CorpusFiles, CorpusError> {
        CorpusFiles::new(&Input::list(&data.src), &Input::list(&data.tgt), &Input::list(&data.tsv))
    }

    fn example_kind<'l>(&self, _data: &DataKeys, _labels: Option<&'l Labels>) -> ExampleKind<'l> {
        ExampleKind::Pairs
    }

    fn assemble(&self, materials: Materials<'_>) -> Result<Assembled> {
        let recipe = materials.recipe;
        let config: EncoderDecoderConfig = materials.config(self);
        let model: Arc<dyn Generate> = Arc::from(config.build(recipe.training.seed)?);
        let set = TranslationSet::read(recipe, materials.tokenizers, model.clone())?;
        let validation = set.map(|set| Box::new(set) as Box<dyn ValidationSet>);
        Ok(Assembled { config: config.into(), model: model as Arc<dyn Model>, validation })
    }
}
