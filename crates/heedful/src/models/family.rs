//! What a family of models says of itself: its encoder-decoder, and its encoder alone.

use heedful_tensor::Params;

use super::transformer::{HeadError, HeadName};
use super::{ConfigError, Encode, Generate};
use crate::recipe::Recipe;

/// What a family says of its encoder-decoder: what it is made of, where a recipe starts from, how it is built.
pub(crate) trait EncoderDecoderFamily: Sized {
    /// Changes the values that a recipe starts from where this family wants others than the Transformer.
    fn start_recipe(_recipe: &mut Recipe) {}

    /// What a recipe describes, for vocabularies of these sizes (source, target).
    fn from_recipe(recipe: &Recipe, vocabularies: [usize; 2]) -> Self;

    /// Whether this can be built; if not, the error says what to change.
    fn validate(&self) -> Result<(), ConfigError>;

    /// A fresh model; `seed` decides its first values.
    fn build(&self, seed: u64) -> Result<Box<dyn Generate>, ConfigError>;

    /// The model in a few words.
    fn summary(&self) -> String;

    /// Every head that can be left out; none where there are no heads.
    fn heads(&self) -> Vec<HeadName> {
        Vec::new()
    }

    /// Whether the model has all of these heads.
    fn check_heads(&self, heads: &[HeadName]) -> Result<(), HeadError> {
        if heads.is_empty() { Ok(()) } else { Err(HeadError::NoHeads) }
    }

    /// Makes heads of a model silent that was built from this; on an error nothing has changed.
    fn silence_heads(&self, _params: &Params, heads: &[HeadName]) -> Result<(), HeadError> {
        self.check_heads(heads)
    }
}

/// The same of its encoder, which reads texts for models without a second side.
pub(crate) trait EncoderFamily: Sized {
    /// What a recipe describes, for a vocabulary of this size.
    fn from_recipe(recipe: &Recipe, vocabulary: usize) -> Self;

    /// Whether this can be built; if not, the error says what to change.
    fn validate(&self) -> Result<(), ConfigError>;

    /// Announces the encoder's parameters.
    fn build(&self, params: &Params) -> Result<Box<dyn Encode>, ConfigError>;

    /// The encoder in a few words.
    fn summary(&self) -> String;
}
