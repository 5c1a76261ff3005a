//! Any encoder-decoder and any encoder, by the name of its family. `registry.rs` lists the families.

use heedful_tensor::Params;
use serde::{Deserialize, Serialize};

use super::family::{EncoderDecoderFamily, EncoderFamily};
use super::{ConfigError, Encode, Generate};
use crate::recipe::{Family, Recipe};
use crate::registry::for_each_family;

macro_rules! families {
    ($($(#[$doc:meta])* $module:ident: $Family:ident = $name:literal,)+) => {
        /// The configuration of an encoder-decoder of any family.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "family")]
        pub enum EncoderDecoderConfig {
            $($(#[$doc])* #[serde(rename = $name)] $Family(super::$module::EncoderDecoder),)+
        }

        /// The configuration of an encoder of any family.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "family")]
        pub enum EncoderConfig {
            $($(#[$doc])* #[serde(rename = $name)] $Family(super::$module::Encoder),)+
        }

        impl Recipe {
            /// Selects a family and sets its defaults.
            pub fn start_from_family(&mut self, family: Family) {
                self.model.family = family;
                match family {
                    $(Family::$Family => <super::$module::EncoderDecoder as EncoderDecoderFamily>::start_recipe(self),)+
                }
            }
        }

        impl EncoderDecoderConfig {
            /// The optional recipe keys that a family uses.
            pub(crate) fn keys(family: Family) -> &'static [&'static str] {
                match family {
                    $(Family::$Family => <super::$module::EncoderDecoder as EncoderDecoderFamily>::KEYS,)+
                }
            }

            /// The configuration that a recipe describes, for vocabularies of these sizes (source, target).
            pub fn from_recipe(recipe: &Recipe, vocabularies: [usize; 2]) -> EncoderDecoderConfig {
                match recipe.model.family {
                    $(Family::$Family => EncoderDecoderConfig::$Family(
                        EncoderDecoderFamily::from_recipe(recipe, vocabularies),
                    ),)+
                }
            }

            /// Sets the architecture keys of a recipe to the values of this configuration.
            pub(crate) fn describe(&self, recipe: &mut Recipe) {
                recipe.model.family = self.family();
                match self {
                    $(EncoderDecoderConfig::$Family(config) => EncoderDecoderFamily::describe(config, recipe),)+
                }
            }

            /// The name of the family.
            pub fn family(&self) -> Family {
                match self {
                    $(EncoderDecoderConfig::$Family(_) => Family::$Family,)+
                }
            }

            /// Checks that a model can be built from this; if not, the error explains what to change.
            pub fn validate(&self) -> Result<(), ConfigError> {
                match self {
                    $(EncoderDecoderConfig::$Family(config) => EncoderDecoderFamily::validate(config),)+
                }
            }

            /// A new model; `seed` determines its initial parameters.
            pub fn build(&self, seed: u64) -> Result<Box<dyn Generate>, ConfigError> {
                match self {
                    $(EncoderDecoderConfig::$Family(config) => EncoderDecoderFamily::build(config, seed),)+
                }
            }

            /// A one-line description of the model.
            pub fn summary(&self) -> String {
                match self {
                    $(EncoderDecoderConfig::$Family(config) => EncoderDecoderFamily::summary(config),)+
                }
            }
        }

        impl EncoderConfig {
            /// The optional recipe keys that a family uses.
            pub(crate) fn keys(family: Family) -> &'static [&'static str] {
                match family {
                    $(Family::$Family => <super::$module::Encoder as EncoderFamily>::KEYS,)+
                }
            }

            /// The configuration that a recipe describes, for a vocabulary of this size.
            pub fn from_recipe(recipe: &Recipe, vocabulary: usize) -> EncoderConfig {
                match recipe.model.family {
                    $(Family::$Family => EncoderConfig::$Family(
                        EncoderFamily::from_recipe(recipe, vocabulary),
                    ),)+
                }
            }

            /// Sets the architecture keys of a recipe to the values of this configuration.
            pub(crate) fn describe(&self, recipe: &mut Recipe) {
                recipe.model.family = self.family();
                match self {
                    $(EncoderConfig::$Family(config) => EncoderFamily::describe(config, recipe),)+
                }
            }

            /// Checks that a model can be built from this; if not, the error explains what to change.
            pub fn validate(&self) -> Result<(), ConfigError> {
                match self {
                    $(EncoderConfig::$Family(config) => EncoderFamily::validate(config),)+
                }
            }

            /// The name of the family.
            pub fn family(&self) -> Family {
                match self {
                    $(EncoderConfig::$Family(_) => Family::$Family,)+
                }
            }

            /// Builds the encoder and registers its parameters.
            pub fn build(&self, params: &Params) -> Result<Box<dyn Encode>, ConfigError> {
                match self {
                    $(EncoderConfig::$Family(config) => EncoderFamily::build(config, params),)+
                }
            }

            /// A one-line description of the encoder.
            pub fn summary(&self) -> String {
                match self {
                    $(EncoderConfig::$Family(config) => EncoderFamily::summary(config),)+
                }
            }
        }
    };
}

for_each_family!(families);
