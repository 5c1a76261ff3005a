//! The attention weights of every head of every layer for a given target.

use super::DecodeError;
use super::options::SearchOptions;
use crate::data::batch::Batch;
use crate::layers::{AttentionMap, AttentionRole, Pass};
use crate::models::Generate;

/// All attention weights for one source and target, in the order of computation: the encoder's, then self
/// and cross attention of each decoder layer. Each map has one sequence.
///
/// The decoder reads `<bos> y_1 … y_m`, so its row `i` is the step that predicts `y_i+1`, and its last row
/// predicts `<eos>`.
pub fn attend(
    model: &dyn Generate,
    source: &[u32],
    target: &[u32],
    options: &SearchOptions,
) -> Result<Vec<AttentionMap>, DecodeError> {
    model.check_heads(&options.without_heads)?;
    let pass = Pass::inference(options.precision([model.params()])).recording();
    let (maps, _) = attend_in(&mut pass.without_heads(&options.without_heads), model, source, target)?;
    Ok(maps)
}

/// As [`attend`], for cross attention only, which is sufficient for alignments.
pub fn attend_to_source(
    model: &dyn Generate,
    source: &[u32],
    target: &[u32],
    options: &SearchOptions,
) -> Result<Vec<AttentionMap>, DecodeError> {
    model.check_heads(&options.without_heads)?;
    let pass = Pass::inference(options.precision([model.params()])).recording_role(AttentionRole::Cross);
    let (maps, _) = attend_in(&mut pass.without_heads(&options.without_heads), model, source, target)?;
    Ok(maps)
}

/// The attention that a pass records for one source and target, and the log-probability of each target token
/// and of `<eos>`. Masks and pruned heads of the pass apply to both.
pub fn attend_in(
    pass: &mut Pass,
    model: &dyn Generate,
    source: &[u32],
    target: &[u32],
) -> Result<(Vec<AttentionMap>, Vec<f64>), DecodeError> {
    let special = model.special_tokens();
    let batch = Batch::new(&[(source.to_vec(), target.to_vec())], special.bos, special.eos)?;
    model.check(&batch)?;
    let losses = model.params().device().catch_oom(|| model.loss(&batch, pass).token_losses())?;
    pass.check_masks()?;
    Ok((pass.take_attention()?, losses.into_iter().map(|loss| -f64::from(loss)).collect()))
}
