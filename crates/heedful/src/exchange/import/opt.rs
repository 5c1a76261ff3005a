//! OPT as a language model: learned positions, pre- or post-norm.

use super::huggingface::Settings;
use super::ids::Ids;
use super::importer::ParamImporter;
use super::settings::stack;
use super::{positions, tables};
use crate::data::SpecialTokens;
use crate::exchange::names::{StackShape, bart};
use crate::layers::{Norm, Positions};
use crate::models::transformer::StackConfig;
use crate::store::formats::FormatError;

/// Number of unused rows before that of the first position.
pub(in crate::exchange) const OFFSET: usize = 2;

pub(super) fn configuration(settings: &Settings<'_>, ids: &Ids<'_>) -> Result<StackConfig, FormatError> {
    settings.must_be("_remove_final_layer_norm", false)?;
    settings.must_be("enable_bias", true)?;
    settings.must_be("layer_norm_elementwise_affine", true)?;
    let d_model = settings.whole("hidden_size")?;
    if settings.whole_or("word_embed_proj_dim", d_model)? != d_model {
        return Err(settings.unsupported("embeddings with a width other than that of the layers".to_owned()));
    }
    let eos = ids.eos()?;
    let sizes = [d_model, settings.whole("ffn_dim")?];
    let (heads, layers) = (settings.whole("num_attention_heads")?, settings.whole("num_hidden_layers")?);
    Ok(StackConfig {
        special: SpecialTokens { bos: ids.bos()?, eos, pad: ids.pad(eos)?, ..SpecialTokens::default() },
        norm: if settings.is("do_layer_norm_before", true)? { Norm::Pre } else { Norm::Post },
        activation: settings.activation("activation_function", "relu")?,
        positions: Positions::Learned { max_length: settings.whole("max_position_embeddings")? },
        ..stack(ids.vocabulary, sizes, heads, layers)
    })
}

/// Imports the tensors. The kind of positions, and whether embeddings are scaled, are detected from them.
pub(super) fn gather(from: &mut ParamImporter<'_>, config: &mut StackConfig) -> Result<(), FormatError> {
    let StackConfig { vocabulary, d_model: d, .. } = *config;
    let prefix = super::huggingface::prefix(from, "model.", "decoder.embed_tokens.weight");
    let words = [&format!("{prefix}decoder.embed_tokens.weight"), "lm_head.weight"];
    config.scale_embeddings = tables::gather_single(from, words, [vocabulary, d])?;
    let length = config.positions.longest().unwrap_or(0) + OFFSET;
    let table = from.tensor(&format!("{prefix}decoder.embed_positions.weight"), &[length, d])?.values();
    config.positions = positions::take(from, "position.weight", &table[OFFSET * d..], d);
    let shape = StackShape::single("decoder", config);
    from.map(bart::stack(shape, &format!("{prefix}decoder"), "final_layer_norm"))
}
