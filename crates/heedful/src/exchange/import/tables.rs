//! The three tables of a translator: source embedding, target embedding, output projection. Which of them are one, their numbers say.

use super::gathered::Gathered;
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

/// Takes the tables of these names.
pub(super) fn gather(
    from: &mut Gathered<'_>,
    config: &TransformerConfig,
    names: [&str; 3],
) -> Result<(), FormatError> {
    let sizes = [config.source_vocabulary, config.target_vocabulary, config.target_vocabulary];
    let ours = match config.tying {
        Tying::All => [Some("embedding"), None, None],
        Tying::SourceTarget => [Some("source_embedding"), None, Some("output")],
        Tying::TargetOutput => [Some("source_embedding"), Some("target_embedding"), None],
        Tying::None => [Some("source_embedding"), Some("target_embedding"), Some("output")],
    };
    for ((ours, theirs), size) in ours.into_iter().zip(names).zip(sizes) {
        let shape = [size, config.d_model];
        match ours {
            Some(ours) => from.table(&format!("{ours}.weight"), theirs, shape)?,
            None => drop(from.tensor(theirs, &shape)?),
        }
    }
    Ok(())
}
