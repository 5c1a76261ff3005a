//! The traits that a model family implements: one for its encoder-decoder, one for its encoder alone.

use heedful_tensor::Params;

use super::{ConfigError, Encode, Generate};
use crate::recipe::Recipe;

/// The configuration of a family's encoder-decoder: the recipe defaults, the checks and the constructor.
pub(crate) trait EncoderDecoderFamily: Sized {
    /// The optional recipe keys that it uses.
    const KEYS: &'static [&'static str];

    /// Sets the recipe defaults of this family that differ from the Transformer's.
    fn start_recipe(_recipe: &mut Recipe) {}

    /// The configuration that a recipe describes, for vocabularies of these sizes (source, target).
    fn from_recipe(recipe: &Recipe, vocabularies: [usize; 2]) -> Self;

    /// Sets the architecture keys of a recipe to the values of this configuration: everything that
    /// [`EncoderDecoderFamily::from_recipe`] reads except the training rates (dropout, label smoothing).
    fn describe(&self, recipe: &mut Recipe);

    /// Checks that a model can be built from this; if not, the error explains what to change.
    fn validate(&self) -> Result<(), ConfigError>;

    /// A new model; `seed` determines its initial parameters.
    fn build(&self, seed: u64) -> Result<Box<dyn Generate>, ConfigError>;

    /// A one-line description of the model.
    fn summary(&self) -> String;
}

/// The configuration of a family's encoder, for encoder-only models.
pub(crate) trait EncoderFamily: Sized {
    /// The optional recipe keys that it uses.
    const KEYS: &'static [&'static str];

    /// The configuration that a recipe describes, for a vocabulary of this size.
    fn from_recipe(recipe: &Recipe, vocabulary: usize) -> Self;

    /// Sets the architecture keys of a recipe to the values of this configuration: everything that
    /// [`EncoderFamily::from_recipe`] reads except the training rates (dropout, label smoothing).
    fn describe(&self, recipe: &mut Recipe);

    /// Checks that a model can be built from this; if not, the error explains what to change.
    fn validate(&self) -> Result<(), ConfigError>;

    /// Builds the encoder and registers its parameters.
    fn build(&self, params: &Params) -> Result<Box<dyn Encode>, ConfigError>;

    /// A one-line description of the encoder.
    fn summary(&self) -> String;
}
