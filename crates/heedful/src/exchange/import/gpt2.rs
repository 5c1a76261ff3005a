//! GPT-2 as a language model.

use super::huggingface::{Settings, prefix};
use super::ids::Ids;
use super::importer::ParamImporter;
use super::settings::stack;
use super::{positions, tables};
use crate::data::SpecialTokens;
use crate::exchange::names::{StackShape, gpt2 as names};
use crate::layers::{Norm, Positions};
use crate::models::transformer::StackConfig;
use crate::store::formats::FormatError;

pub(super) fn configuration(settings: &Settings<'_>, ids: &Ids<'_>) -> Result<StackConfig, FormatError> {
    settings.must_be("scale_attn_weights", true)?;
    settings.must_be("scale_attn_by_inverse_layer_idx", false)?;
    settings.must_be("add_cross_attention", false)?;
    let d_model = settings.whole("n_embd")?;
    let d_ff = settings.whole_or("n_inner", 4 * d_model)?;
    let eos = ids.eos()?;
    Ok(StackConfig {
        special: SpecialTokens { bos: ids.bos()?, eos, pad: eos, ..SpecialTokens::default() },
        norm: Norm::Pre,
        norm_epsilon: settings.number("layer_norm_epsilon", 1e-5)? as f32,
        activation: settings.activation("activation_function", "gelu_new")?,
        positions: Positions::Learned { max_length: settings.whole("n_positions")? },
        ..stack(ids.vocabulary, [d_model, d_ff], settings.whole("n_head")?, settings.whole("n_layer")?)
    })
}

/// Imports the tensors. The kind of positions, and whether embeddings are scaled, are detected from them.
pub(super) fn gather(from: &mut ParamImporter<'_>, config: &mut StackConfig) -> Result<(), FormatError> {
    let StackConfig { vocabulary, d_model: d, .. } = *config;
    let prefix = prefix(from, "transformer.", "wte.weight");
    let words = [&format!("{prefix}wte.weight"), "lm_head.weight"];
    config.scale_embeddings = tables::gather_single(from, words, [vocabulary, d])?;
    let length = config.positions.longest().unwrap_or(0);
    let table = from.tensor(&format!("{prefix}wpe.weight"), &[length, d])?.values();
    config.positions = positions::take(from, "position.weight", &table, d);
    from.map(names::stack(StackShape::single("decoder", config), prefix))?;
    // Old files contain the causal mask.
    let masks = (0..config.layers)
        .flat_map(|i| ["bias", "masked_bias"].map(|mask| format!("{prefix}h.{i}.attn.{mask}")));
    let masks: Vec<String> = masks.collect();
    from.ignore(|name| masks.iter().any(|mask| mask == name));
    Ok(())
}
