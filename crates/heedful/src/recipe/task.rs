//! What a recipe's task decides: where values start from, what is read, what is built.

use std::path::PathBuf;

use super::{Family, PositionKind, Recipe, RecipeError};
use crate::data::batch::Form;
use crate::data::encoded::Reading;
use crate::data::labels::Labels;
use crate::data::tokenizer::Sharing;
use crate::models::transformer::StackConfig;
use crate::tasks::Task;
use crate::tasks::classify::{
    ClassifierConfig, ConvolutionalReaderConfig, EncoderConfig, RecurrentReaderConfig,
};
use crate::tasks::language::{LanguageConfig, TextShape};
use crate::tasks::masked::MaskedConfig;
use crate::tasks::{ConfigError, ModelConfig};
use crate::train::Metric;

/// Tokens of a block of running text unless the recipe says otherwise.
const BLOCK: usize = 256;

impl Recipe {
    /// Values that a task starts from where they differ from those of translation.
    pub(super) fn start_from_task(&mut self) {
        if self.data.task != Task::Translate {
            self.training.label_smoothing = 0.0;
        }
        match self.data.task {
            Task::Translate | Task::Mlm => {}
            Task::Classify => self.validation.best_by = Metric::Accuracy,
            Task::Lm => self.data.block = Some(BLOCK),
        }
    }

    /// The model, once it is known how many tokens and labels there are.
    pub fn task_config(
        &self,
        [source, target]: [usize; 2],
        labels: usize,
    ) -> Result<ModelConfig, ConfigError> {
        let label_smoothing = self.training.label_smoothing as f32;
        let encoder = || StackConfig::of_encoder(&self.transformer(source, source));
        let config = match self.data.task {
            Task::Translate => return self.model_config(source, target),
            Task::Classify => ModelConfig::Classifier(ClassifierConfig {
                labels,
                pooling: self.model.pooling,
                pooling_score: self.model.pooling_score,
                dropout: self.training.dropout as f32,
                label_smoothing,
                encoder: self.encoder_config(source),
            }),
            Task::Lm => ModelConfig::Language(LanguageConfig {
                stack: StackConfig::of_decoder(&self.transformer(target, target)),
                text: if self.data.block.is_some() { TextShape::Running } else { TextShape::Lines },
                label_smoothing,
            }),
            Task::Mlm => ModelConfig::Masked(MaskedConfig { stack: encoder(), label_smoothing }),
        };
        config.validate().map(|()| config)
    }

    /// What reads the texts of a classifier.
    fn encoder_config(&self, vocabulary: usize) -> EncoderConfig {
        match self.model.family {
            Family::Transformer => {
                EncoderConfig::Transformer(StackConfig::of_encoder(&self.transformer(vocabulary, vocabulary)))
            }
            Family::Recurrent => {
                let config = self.recurrent(vocabulary, vocabulary);
                let (stack, dropout) = (config.encoder(), config.dropout);
                EncoderConfig::Recurrent(RecurrentReaderConfig { vocabulary, dropout, stack })
            }
            Family::Convolutional => {
                let config = self.convolutional(vocabulary, vocabulary);
                let (shape, positions, dropout) = (config.encoder(), config.positions, config.dropout);
                EncoderConfig::Convolutional(ConvolutionalReaderConfig {
                    vocabulary,
                    positions,
                    dropout,
                    shape,
                })
            }
        }
    }

    /// What the lines of the recipe's files are.
    ///
    /// # Panics
    /// If a classifier's labels are not given.
    pub fn reading<'l>(&self, labels: Option<&'l Labels>) -> Reading<'l> {
        let text = |whole, form| {
            self.data.block.map_or(Reading::Lines(whole), |length| Reading::Blocks(form, length))
        };
        match self.data.task {
            Task::Translate => Reading::Pairs,
            Task::Classify => Reading::Labels(labels.expect("a classifier's labels are collected first")),
            Task::Lm => text(Form::Lines, Form::Blocks),
            Task::Mlm => text(Form::Texts, Form::Texts),
        }
    }

    /// Whether the values fit the task.
    pub(super) fn check_task(&self) -> Result<(), RecipeError> {
        let (task, data) = (self.data.task, &self.data);
        let conflict = |message: String| Err(RecipeError::Conflict(message));
        for (key, files, tasks) in self.files_by_task() {
            if !files.is_empty() && !tasks.contains(&task) {
                let wanted = match task {
                    Task::Translate => "data.src and data.tgt, or data.tsv",
                    Task::Classify => "data.label_text",
                    Task::Lm | Task::Mlm => "data.text",
                };
                return conflict(format!("data.{key} is not for the task {task}: it reads {wanted}"));
            }
        }
        if task == Task::Translate {
            return Ok(());
        }
        if self.validation.best_by == Metric::Bleu {
            return conflict(format!(
                "the task {task} has no BLEU: set validation.best_by to \"loss\" or \"accuracy\""
            ));
        }
        let vocabulary = &self.vocabulary;
        let two_files = vocabulary.source_file.is_some() || vocabulary.target_file.is_some();
        if vocabulary.sharing == Sharing::Separate || two_files {
            return conflict(format!(
                "the task {task} has one vocabulary: use vocabulary.file, and sharing \"joint\""
            ));
        }
        if data.block.is_some() && task == Task::Classify {
            return conflict(
                "a text with a label is a line: data.block is for the tasks lm and mlm".to_owned(),
            );
        }
        if self.model.init_from.is_some() && task != Task::Classify {
            return conflict(format!("model.init_from is for the task classify, not {task}"));
        }
        let is_transformer = self.model.family == Family::Transformer;
        if !is_transformer && (task != Task::Classify || self.model.init_from.is_some()) {
            return conflict(
                "language models, masked or not, are Transformers: set model.family to \"transformer\""
                    .to_owned(),
            );
        }
        let longest = self.model.max_positions;
        match data.block {
            Some(block) if self.model.positions == PositionKind::Learned && block > longest => {
                conflict(format!(
                    "blocks of {block} tokens are longer than the {longest} learned positions: raise model.max_positions, or \
                 lower data.block"
                ))
            }
            _ => Ok(()),
        }
    }

    fn files_by_task(&self) -> [(&'static str, &[PathBuf], &'static [Task]); 10] {
        const PAIRS: &[Task] = &[Task::Translate];
        const LABELS: &[Task] = &[Task::Classify];
        const TEXT: &[Task] = &[Task::Lm, Task::Mlm];
        let data = &self.data;
        [
            ("src", &data.src, PAIRS),
            ("tgt", &data.tgt, PAIRS),
            ("tsv", &data.tsv, PAIRS),
            ("valid_src", &data.valid_src, PAIRS),
            ("valid_tgt", &data.valid_tgt, PAIRS),
            ("valid_tsv", &data.valid_tsv, PAIRS),
            ("label_text", &data.label_text, LABELS),
            ("valid_label_text", &data.valid_label_text, LABELS),
            ("text", &data.text, TEXT),
            ("valid_text", &data.valid_text, TEXT),
        ]
    }
}
