//! Defaults of imported models: rates for fine-tuning, which weight files do not contain, and common
//! configurations.

use heedful_tensor::ops::Activation;

use crate::layers::{AttentionScore, Norm, NormKind, Positions};
use crate::models::transformer::{DropoutRates, StackConfig, TransformerConfig};

/// Dropout for fine-tuning: the usual rate of their training.
pub(super) const DROPOUT: DropoutRates = DropoutRates { residual: 0.1, attention: 0.0, feed_forward: 0.0 };
pub(super) const LABEL_SMOOTHING: f32 = 0.1;

/// The sizes of a Transformer whose encoder and decoder have the same width.
pub(super) struct Sizes {
    pub(super) vocabularies: [usize; 2],
    pub(super) d_model: usize,
    pub(super) d_ff: usize,
    pub(super) heads: usize,
    pub(super) layers: [usize; 2],
}

/// The Transformer of the paper with these sizes; the caller changes what differs.
pub(super) fn transformer(sizes: &Sizes) -> TransformerConfig {
    TransformerConfig {
        source_vocabulary: sizes.vocabularies[0],
        target_vocabulary: sizes.vocabularies[1],
        d_model: sizes.d_model,
        d_ff: sizes.d_ff,
        heads: sizes.heads,
        encoder_layers: sizes.layers[0],
        decoder_layers: sizes.layers[1],
        norm_epsilon: 1e-5,
        dropout: DROPOUT,
        label_smoothing: LABEL_SMOOTHING,
        ..TransformerConfig::base(sizes.vocabularies[1])
    }
}

/// A single stack with these sizes and unscaled embeddings, as in BERT and GPT-2; the caller sets the
/// positions.
pub(super) fn stack(
    vocabulary: usize,
    [d_model, d_ff]: [usize; 2],
    heads: usize,
    layers: usize,
) -> StackConfig {
    StackConfig {
        vocabulary,
        special: crate::data::SpecialTokens::default(),
        d_model,
        d_ff,
        heads,
        key_width: None,
        value_width: None,
        layers,
        norm: Norm::Post,
        norm_kind: NormKind::default(),
        norm_epsilon: 1e-5,
        activation: Activation::Gelu,
        positions: Positions::None,
        scale_embeddings: false,
        embedding_norm: false,
        score: AttentionScore::ScaledDot,
        window: None,
        dropout: DROPOUT,
    }
}
