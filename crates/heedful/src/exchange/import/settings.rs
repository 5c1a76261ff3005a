//! What imported models have in common: rates for training on, which files of weights do not keep, and vocabularies.

use heedful_tensor::ops::Activation;

use crate::layers::{AttentionScore, Norm, NormKind, Positions};
use crate::models::transformer::{DropoutRates, StackConfig, TransformerConfig};

/// For fine-tuning: as most of them were trained.
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

/// The paper's model in these sizes; what differs is changed by the caller.
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

/// One stack in these sizes, with learned positions and embeddings that are not scaled, as BERT and GPT-2 have them.
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
