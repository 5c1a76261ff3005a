//! The families of models by name: any encoder-decoder, any encoder. `registry.rs` lists them.

use heedful_tensor::Params;
use serde::{Deserialize, Serialize};

use super::transformer::{HeadError, HeadName};
use super::{ConfigError, Encode, Generate, convolution, recurrent, transformer};
use crate::recipe::{Family, Recipe};
use crate::registry::for_each_family;

/// The configuration of a family's encoder-decoder: the recipe defaults, the checks and the constructor.
pub(crate) trait EncoderDecoderFamily: Sized {
    /// Sets the recipe defaults of this family that differ from the Transformer's.
    fn start_recipe(_recipe: &mut Recipe) {}

    /// The configuration that a recipe describes, for vocabularies of these sizes (source, target).
    fn from_recipe(recipe: &Recipe, vocabularies: [usize; 2]) -> Self;

    /// Whether a model can be built from this; if not, the error explains what to change.
    fn validate(&self) -> Result<(), ConfigError>;

    /// A new model; `seed` determines its initial parameters.
    fn build(&self, seed: u64) -> Result<Box<dyn Generate>, ConfigError>;

    /// The model in a few words.
    fn summary(&self) -> String;

    /// Every head that can be pruned; none where there are no heads.
    fn heads(&self) -> Vec<HeadName> {
        Vec::new()
    }

    /// Whether the model has all of these heads.
    fn check_heads(&self, heads: &[HeadName]) -> Result<(), HeadError> {
        if heads.is_empty() { Ok(()) } else { Err(HeadError::NoHeads) }
    }

    /// Prunes heads of a model that was built from this; on an error nothing has changed.
    fn prune_heads(&self, _params: &Params, heads: &[HeadName]) -> Result<(), HeadError> {
        self.check_heads(heads)
    }
}

/// The configuration of a family's encoder, for encoder-only models.
pub(crate) trait EncoderFamily: Sized {
    /// The configuration that a recipe describes, for a vocabulary of this size.
    fn from_recipe(recipe: &Recipe, vocabulary: usize) -> Self;

    /// Whether a model can be built from this; if not, the error explains what to change.
    fn validate(&self) -> Result<(), ConfigError>;

    /// Builds the encoder and registers its parameters.
    fn build(&self, params: &Params) -> Result<Box<dyn Encode>, ConfigError>;

    /// The encoder in a few words.
    fn summary(&self) -> String;
}

macro_rules! families {
    ($($(#[$doc:meta])* $module:ident: $Family:ident = $name:literal,)+) => {
        /// The configuration of an encoder-decoder of any family.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "family")]
        pub enum EncoderDecoderConfig {
            $($(#[$doc])* #[serde(rename = $name)] $Family($module::EncoderDecoder),)+
        }

        /// The configuration of an encoder of any family.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "family")]
        pub enum EncoderConfig {
            $($(#[$doc])* #[serde(rename = $name)] $Family($module::Encoder),)+
        }

        impl Recipe {
            /// Sets the family, with its defaults.
            pub fn start_from_family(&mut self, family: Family) {
                self.model.family = family;
                match family {
                    $(Family::$Family => <$module::EncoderDecoder as EncoderDecoderFamily>::start_recipe(self),)+
                }
            }
        }

        impl EncoderDecoderConfig {
            /// The configuration that a recipe describes, for vocabularies of these sizes (source, target).
            pub fn from_recipe(recipe: &Recipe, vocabularies: [usize; 2]) -> EncoderDecoderConfig {
                match recipe.model.family {
                    $(Family::$Family => EncoderDecoderConfig::$Family(
                        EncoderDecoderFamily::from_recipe(recipe, vocabularies),
                    ),)+
                }
            }

            /// The name of the family.
            pub fn family(&self) -> Family {
                match self {
                    $(EncoderDecoderConfig::$Family(_) => Family::$Family,)+
                }
            }

            /// Whether a model can be built from this; if not, the error explains what to change.
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

            /// The model in a few words.
            pub fn summary(&self) -> String {
                match self {
                    $(EncoderDecoderConfig::$Family(config) => EncoderDecoderFamily::summary(config),)+
                }
            }

            /// Every head that can be pruned; none where there are no heads.
            pub fn heads(&self) -> Vec<HeadName> {
                match self {
                    $(EncoderDecoderConfig::$Family(config) => EncoderDecoderFamily::heads(config),)+
                }
            }

            /// Whether the model has all of these heads.
            pub fn check_heads(&self, heads: &[HeadName]) -> Result<(), HeadError> {
                match self {
                    $(EncoderDecoderConfig::$Family(config) => EncoderDecoderFamily::check_heads(config, heads),)+
                }
            }

            /// Prunes heads of a model that was built from this; on an error nothing has changed.
            pub fn prune_heads(&self, params: &Params, heads: &[HeadName]) -> Result<(), HeadError> {
                match self {
                    $(EncoderDecoderConfig::$Family(config) => {
                        EncoderDecoderFamily::prune_heads(config, params, heads)
                    })+
                }
            }
        }

        impl EncoderConfig {
            /// The configuration that a recipe describes, for a vocabulary of this size.
            pub fn from_recipe(recipe: &Recipe, vocabulary: usize) -> EncoderConfig {
                match recipe.model.family {
                    $(Family::$Family => EncoderConfig::$Family(
                        EncoderFamily::from_recipe(recipe, vocabulary),
                    ),)+
                }
            }

            /// Whether a model can be built from this; if not, the error explains what to change.
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

            /// The encoder in a few words.
            pub fn summary(&self) -> String {
                match self {
                    $(EncoderConfig::$Family(config) => EncoderFamily::summary(config),)+
                }
            }
        }
    };
}

for_each_family!(families);
