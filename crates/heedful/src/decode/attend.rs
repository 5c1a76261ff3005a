//! The attention weights of every head of every layer for a given target.

use super::DecodeError;
use super::options::SearchOptions;
use crate::data::batch::Batch;
use crate::layers::{AttentionMap, AttentionRole, Pass};
use crate::models::Generate;

/// All attention weights for one source and target, in the order of computation: the encoder's, then self and cross
/// attention of each decoder layer. Each map has one sequence.
///
/// The decoder reads `<bos> y_1 … y_m`, so its row `i` is the step that predicts `y_i+1`, and its last row predicts `<eos>`.
pub fn attend(
    model: &dyn Generate,
    source: &[u32],
    target: &[u32],
    options: &SearchOptions,
) -> Result<Vec<AttentionMap>, DecodeError> {
    attend_in(Pass::inference(options.compute).recording(), model, [source, target], options)
}

/// As [`attend`] for the cross attention alone, which is all that an alignment needs.
pub fn attend_to_source(
    model: &dyn Generate,
    source: &[u32],
    target: &[u32],
    options: &SearchOptions,
) -> Result<Vec<AttentionMap>, DecodeError> {
    let pass = Pass::inference(options.compute).recording_role(AttentionRole::Cross);
    attend_in(pass, model, [source, target], options)
}

fn attend_in(
    pass: Pass,
    model: &dyn Generate,
    [source, target]: [&[u32]; 2],
    options: &SearchOptions,
) -> Result<Vec<AttentionMap>, DecodeError> {
    model.check_heads(&options.without_heads)?;
    let mut pass = pass.without_heads(&options.without_heads);
    let special = model.special_tokens();
    let batch = Batch::new(&[(source.to_vec(), target.to_vec())], special.bos, special.eos)?;
    model.check(&batch)?;
    model.loss(&batch, &mut pass);
    Ok(pass.take_attention()?)
}
