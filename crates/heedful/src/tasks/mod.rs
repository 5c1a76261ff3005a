//! What models are trained for. A task's folder has its model, its façade (text in, text out), its validation and its use
//! of recipes.
//!
//! 1. [`translate`]: translation, by any encoder-decoder.
//! 2. [`classify`]: text classification, by any encoder.
//! 3. [`language`]: language modelling, by a decoder that continues prompts.
//! 4. [`masked`]: masked language modelling, by an encoder that a classifier may be initialized from.
//! 5. [`folder`] is a model on disk, whatever its task, and [`package`] a model in one file; `open` opens it for a façade.
//!
//! A new task is a folder with the types `Config` and `Definition`, its `mod` line, and a line in `registry.rs`.

pub mod classify;
pub mod language;
pub mod masked;
pub mod translate;

mod definition;
mod error;
pub mod folder;
pub(crate) mod open;
pub(crate) mod original;
pub mod package;
mod plain_text;
mod recipe;
mod unread;
pub mod validation;

use serde::{Deserialize, Serialize};

pub(crate) use definition::{Assembled, Materials, Sizes, TaskConfig, TaskDefinition, TaskWords};
pub(crate) use error::WrongTask;
pub use open::OpenOptions;
pub use recipe::resolve;

use crate::data::SpecialTokens;
pub use crate::models::ConfigError;
use crate::models::Model;
use crate::recipe::{DataKeys, Recipe};
pub use crate::recipe::{Family, Task};
use crate::registry::for_each_task;

macro_rules! tasks {
    ($($(#[$doc:meta])* $module:ident: $Task:ident = $name:literal,)+) => {
        /// The configuration of a model for any task.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "task")]
        pub enum ModelConfig {
            $($(#[$doc])* #[serde(rename = $name)] $Task($module::Config),)+
        }

        $(impl From<$module::Config> for ModelConfig {
            fn from(config: $module::Config) -> ModelConfig {
                ModelConfig::$Task(config)
            }
        }

        impl TryFrom<ModelConfig> for $module::Config {
            type Error = Task;

            /// The error is the task that the model was trained for instead.
            fn try_from(config: ModelConfig) -> Result<$module::Config, Task> {
                match config {
                    ModelConfig::$Task(config) => Ok(config),
                    other => Err(other.task()),
                }
            }
        })+

        impl Task {
            pub(crate) fn definition(self) -> &'static dyn TaskDefinition {
                match self { $(Task::$Task => &$module::Definition,)+ }
            }
        }

        impl ModelConfig {
            /// The task of the model.
            pub fn task(&self) -> Task {
                match self { $(ModelConfig::$Task(_) => Task::$Task,)+ }
            }

            /// Whether a model can be built from this; if not, the error explains what to change.
            pub fn validate(&self) -> Result<(), ConfigError> {
                match self { $(ModelConfig::$Task(config) => TaskConfig::validate(config),)+ }
            }

            /// A new model; `seed` determines its initial parameters.
            pub fn build(&self, seed: u64) -> Result<Box<dyn Model>, ConfigError> {
                match self { $(ModelConfig::$Task(config) => Ok(Box::new(TaskConfig::build(config, seed)?)),)+ }
            }

            /// The family of the model, or of its one stack.
            pub fn family(&self) -> Family {
                match self { $(ModelConfig::$Task(config) => TaskConfig::family(config),)+ }
            }

            /// The special tokens of its models.
            pub fn special_tokens(&self) -> SpecialTokens {
                match self { $(ModelConfig::$Task(config) => TaskConfig::special_tokens(config),)+ }
            }

            /// Gives its models other special tokens than those of the vocabularies that this crate learns.
            pub(crate) fn set_special_tokens(&mut self, special: SpecialTokens) {
                match self { $(ModelConfig::$Task(config) => TaskConfig::set_special_tokens(config, special),)+ }
            }

            /// Sets the keys of the architecture in a recipe to this one's.
            pub(crate) fn describe(&self, recipe: &mut Recipe) {
                match self { $(ModelConfig::$Task(config) => TaskConfig::describe(config, recipe),)+ }
            }

            /// The model in a few words.
            pub fn summary(&self) -> String {
                match self { $(ModelConfig::$Task(config) => TaskConfig::summary(config),)+ }
            }
        }
    };
}

for_each_task!(tasks);

#[cfg(test)]
mod tests;

impl Task {
    /// The command that uses a model of this task.
    pub fn command(self) -> &'static str {
        self.definition().words().command
    }

    /// The command's argument after the model's folder.
    pub fn command_input(self) -> &'static str {
        self.definition().words().command_input
    }

    /// What a model of this task is called, with its article.
    pub fn model(self) -> &'static str {
        self.definition().words().model
    }

    /// The models that a model of this task may start from, with their articles: `a classifier or a masked language model`.
    pub(crate) fn starts_from(self) -> String {
        let models: Vec<&str> =
            self.definition().words().starts_from.iter().map(|task| task.model()).collect();
        models.join(" or ")
    }

    /// What its examples are called.
    pub fn examples(self) -> &'static str {
        self.definition().words().examples
    }

    /// Whether a validation set is named.
    pub(crate) fn has_validation(self, data: &DataKeys) -> bool {
        self.definition().has_validation(data)
    }

    /// The flags that name its validation set.
    pub fn validation_flags(self) -> &'static str {
        self.definition().words().validation_flags
    }
}
