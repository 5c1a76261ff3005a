//! Embedding matrices and output projections. Tying is detected by comparing their values.

use super::importer::ParamImporter;
use crate::exchange::names::tables::{embedding_scale, ours};
use crate::layers::Tying;
use crate::models::transformer::TransformerConfig;
use crate::store::formats::FormatError;

/// Which of these matrices are tied.
pub(super) fn tying(from: &ParamImporter<'_>, [source, target, output]: [&str; 3]) -> Tying {
    let is_output_tied = from.are_equal([target, output]);
    match from.are_equal([source, target]) {
        true if is_output_tied => Tying::All,
        true => Tying::SourceTarget,
        false if is_output_tied => Tying::TargetOutput,
        false => Tying::None,
    }
}

/// Imports the three embedding matrices of a translator.
pub(super) fn gather(
    from: &mut ParamImporter<'_>,
    config: &TransformerConfig,
    names: [&str; 3],
) -> Result<(), FormatError> {
    let mut imported = Vec::new();
    for ((ours, shape), theirs) in ours(config).into_iter().zip(names) {
        match imported.contains(&ours) {
            true => drop(from.tensor(theirs, &shape)?),
            false => from.matrix(ours, theirs, shape)?,
        }
        imported.push(ours);
    }
    Ok(())
}

/// Imports the embedding matrix of a model with one vocabulary as `embedding.weight`. Inputs and outputs are
/// either tied, or the inputs are the outputs times √d (the export of a model that scales its embeddings);
/// returns whether they are scaled.
pub(super) fn gather_single(
    from: &mut ParamImporter<'_>,
    [inputs, outputs]: [&str; 2],
    shape: [usize; 2],
) -> Result<bool, FormatError> {
    const OURS: &str = "embedding.weight";
    if !from.has(outputs) || from.are_equal([inputs, outputs]) {
        from.matrix(OURS, inputs, shape)?;
        from.ignore(|name| name == outputs);
        return Ok(false);
    }
    let (scaled, values) = (from.tensor(inputs, &shape)?.values(), from.tensor(outputs, &shape)?.values());
    let scale = embedding_scale(shape[1]);
    if scaled.iter().zip(&values).any(|(scaled, value)| *scaled != value * scale) {
        return Err(from.unsupported("an output projection that is not tied to the embedding"));
    }
    from.add(OURS, shape, &values);
    Ok(true)
}
