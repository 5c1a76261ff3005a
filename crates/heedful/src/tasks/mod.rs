//! What models are for. A task has its model, its façade (text in, text out), its validation and what it wants of a recipe,
//! all in one folder.
//!
//! 1. [`translate`]: from a sentence to its translation, by any encoder-decoder.
//! 2. [`classify`]: from a text to its label, by any encoder.
//! 3. [`language`]: a decoder without a source, which goes on with texts.
//! 4. [`masked`]: an encoder that fills gaps, which a classifier may start from.
//! 5. [`folder`] keeps a model on disk, whatever it is for; `open` is how a façade opens it.
//!
//! A new task is a folder with the types `Config` and `Definition`, and a line in `registry.rs`.

mod definition;
mod error;
pub mod folder;
mod open;
mod plain_text;
mod recipe;
pub mod validation;

use serde::{Deserialize, Serialize};

pub(crate) use definition::{Assembled, Materials, Sizes, TaskConfig, TaskDefinition};
pub use error::{OpenError, TaskError, WrongTask};
pub use recipe::resolve;

pub use crate::models::ConfigError;
use crate::models::Model;
pub use crate::recipe::{Family, Task};
use crate::registry::for_each_task;

macro_rules! tasks {
    ($($(#[$doc:meta])* $module:ident: $Task:ident = $name:literal,)+) => {
        $(pub mod $module;)+

        /// What a model is made of, and with that what it is for.
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

            /// An error says what the model is for instead.
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
            /// What the model is for.
            pub fn task(&self) -> Task {
                match self { $(ModelConfig::$Task(_) => Task::$Task,)+ }
            }

            /// Whether this can be built; if not, the error says what to change.
            pub fn validate(&self) -> Result<(), ConfigError> {
                match self { $(ModelConfig::$Task(config) => TaskConfig::validate(config),)+ }
            }

            /// A fresh model; `seed` decides its first values.
            pub fn build(&self, seed: u64) -> Result<Box<dyn Model>, ConfigError> {
                match self { $(ModelConfig::$Task(config) => Ok(Box::new(TaskConfig::build(config, seed)?)),)+ }
            }

            /// What the model, or its one stack, is made of.
            pub fn family(&self) -> Family {
                match self { $(ModelConfig::$Task(config) => TaskConfig::family(config),)+ }
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
    /// The command that uses such a model.
    pub fn command(self) -> &'static str {
        self.definition().command()
    }

    /// What that command is given beside the model's folder.
    pub fn command_input(self) -> &'static str {
        self.definition().command_input()
    }

    /// What a model for this is called, with its article.
    pub fn model(self) -> &'static str {
        self.definition().model()
    }

    /// What its examples are called.
    pub fn examples(self) -> &'static str {
        self.definition().examples()
    }

    /// The flags that name its validation set.
    pub fn validation_flags(self) -> &'static str {
        self.definition().validation_flags()
    }
}
