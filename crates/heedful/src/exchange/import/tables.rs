//! Tables of token vectors and output projections. Which of them are one, their numbers say.

use super::gathered::Gathered;
use crate::exchange::names::tables::{embedding_scale, ours};
use crate::layers::Tying;
use crate::models::transformer::TransformerConfig;
use crate::store::formats::FormatError;

/// Which tables of these names are tied.
pub(super) fn tying(from: &Gathered<'_>, [source, target, output]: [&str; 3]) -> Tying {
    let are_output = from.are_the_same([target, output]);
    match from.are_the_same([source, target]) {
        true if are_output => Tying::All,
        true => Tying::SourceTarget,
        false if are_output => Tying::TargetOutput,
        false => Tying::None,
    }
}

/// Takes the three tables of a translator, which have these names.
pub(super) fn gather(
    from: &mut Gathered<'_>,
    config: &TransformerConfig,
    names: [&str; 3],
) -> Result<(), FormatError> {
    let mut known = Vec::new();
    for ((ours, shape), theirs) in ours(config).into_iter().zip(names) {
        match known.contains(&ours) {
            true => drop(from.tensor(theirs, &shape)?),
            false => from.table(ours, theirs, shape)?,
        }
        known.push(ours);
    }
    Ok(())
}

/// Takes the table of a model with one vocabulary, whose inputs and outputs have these names, as `embedding.weight`. They are one,
/// or the inputs are the outputs times √d, as an export keeps a model that multiplies its token vectors by it; returns whether
/// they are.
pub(super) fn gather_single(
    from: &mut Gathered<'_>,
    [inputs, outputs]: [&str; 2],
    shape: [usize; 2],
) -> Result<bool, FormatError> {
    const OURS: &str = "embedding.weight";
    if !from.has(outputs) || from.are_the_same([inputs, outputs]) {
        from.table(OURS, inputs, shape)?;
        from.leave_out(|name| name == outputs);
        return Ok(false);
    }
    let (scaled, values) = (from.tensor(inputs, &shape)?.values(), from.tensor(outputs, &shape)?.values());
    let scale = embedding_scale(shape[1]);
    if scaled.iter().zip(&values).any(|(scaled, value)| *scaled != value * scale) {
        return Err(from.unsupported("an output projection that is not the embedding"));
    }
    from.add(OURS, shape, &values);
    Ok(true)
}
