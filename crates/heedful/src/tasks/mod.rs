//! Tasks. The folder of a task has its model, its façade (text in, text out), its validation and its recipe
//! handling.
//!
//! 1. [`translate`]: translation, with any encoder-decoder.
//! 2. [`classify`]: text classification, with any encoder.
//! 3. [`language`]: language modelling, with a decoder that continues prompts.
//! 4. [`masked`]: masked language modelling, with an encoder from which classifiers can be initialized.
//! 5. [`folder`]: a model on disk, for all tasks; [`package`]: a model in one file; `open` opens either for
//!    a façade.
//!
//! To add a task, add a folder with the types `Config` and `Definition`, its `mod` line, and a line in
//! `registry.rs`.

pub mod classify;
pub mod language;
pub mod masked;
pub mod translate;

mod definition;
mod error;
pub mod folder;
pub(crate) mod open;
pub mod package;
mod plain_text;
pub(crate) mod pretrained;
mod recipe;
mod unused_keys;
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

            /// On failure, returns the task that the model was trained for.
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

            /// Checks that a model can be built; the error explains what to change.
            pub fn validate(&self) -> Result<(), ConfigError> {
                match self { $(ModelConfig::$Task(config) => TaskConfig::validate(config),)+ }
            }

            /// Builds a new model; `seed` determines its initial parameters.
            pub fn build(&self, seed: u64) -> Result<Box<dyn Model>, ConfigError> {
                match self { $(ModelConfig::$Task(config) => Ok(Box::new(TaskConfig::build(config, seed)?)),)+ }
            }

            /// The family of the model.
            pub fn family(&self) -> Family {
                match self { $(ModelConfig::$Task(config) => TaskConfig::family(config),)+ }
            }

            /// The special tokens of the model.
            pub fn special_tokens(&self) -> SpecialTokens {
                match self { $(ModelConfig::$Task(config) => TaskConfig::special_tokens(config),)+ }
            }

            /// Replaces the special tokens, which are by default those of vocabularies that this crate
            /// learns.
            pub(crate) fn set_special_tokens(&mut self, special: SpecialTokens) {
                match self { $(ModelConfig::$Task(config) => TaskConfig::set_special_tokens(config, special),)+ }
            }

            /// Sets the architecture keys of a recipe to this configuration.
            pub(crate) fn describe(&self, recipe: &mut Recipe) {
                match self { $(ModelConfig::$Task(config) => TaskConfig::describe(config, recipe),)+ }
            }

            /// A one-line description of the model.
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

    /// The name of a model of this task, with its article: `a translator`.
    pub fn model(self) -> &'static str {
        self.definition().words().model
    }

    /// The pretrained models that this task accepts, with their articles: `a classifier or a masked language
    /// model`.
    pub(crate) fn starts_from(self) -> String {
        let models: Vec<&str> =
            self.definition().words().starts_from.iter().map(|task| task.model()).collect();
        models.join(" or ")
    }

    /// The name of the task's examples: `pairs`, `texts`.
    pub fn examples(self) -> &'static str {
        self.definition().words().examples
    }

    /// Whether the recipe names a validation set.
    pub(crate) fn has_validation(self, data: &DataKeys) -> bool {
        self.definition().has_validation(data)
    }

    /// The flags that name the validation set.
    pub fn validation_flags(self) -> &'static str {
        self.definition().words().validation_flags
    }
}
