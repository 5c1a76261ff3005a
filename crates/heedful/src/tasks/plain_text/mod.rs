//! Shared by language models and masked language models: reading plain text, line by line or as running text.

mod set;

pub(super) use set::TextSet;

use crate::data::batch::BatchLayout;
use crate::data::encoded::ExampleKind;
use crate::recipe::{DataKeys, PositionKind, Recipe, RecipeError};

/// The keys of plain text.
pub(super) const KEYS: &[&str] = &["data.text", "data.valid_text", "data.block"];

/// Lines with the layout `lines`, or blocks with the layout `blocks` if the recipe sets `data.block`.
pub(super) fn example_kind(data: &DataKeys, lines: BatchLayout, blocks: BatchLayout) -> ExampleKind<'static> {
    data.block.map_or(ExampleKind::Lines(lines), |length| ExampleKind::Blocks(blocks, length))
}

/// Limits the default block length of a task to the number of positions of the pretrained model.
pub(super) fn fit_into_positions(recipe: &mut Recipe) {
    let longest = recipe.model.max_positions.saturating_sub(surrounding_tokens(recipe));
    if let Some(block) = &mut recipe.data.block
        && recipe.model.positions == PositionKind::Learned
    {
        *block = longest.min(*block);
    }
}

/// The number of tokens that a masked model adds around each block.
fn surrounding_tokens(recipe: &Recipe) -> usize {
    if recipe.model.surround_text { 2 } else { 0 }
}

/// Checks that the blocks of the text fit into the positions of the model.
pub(super) fn check(recipe: &Recipe) -> Result<(), RecipeError> {
    let conflict = |message: String| Err(RecipeError::Conflict(message));
    let longest = recipe.model.max_positions;
    let surrounding_tokens = surrounding_tokens(recipe);
    match recipe.data.block {
        Some(block)
            if recipe.model.positions == PositionKind::Learned
                && block.saturating_add(surrounding_tokens) > longest =>
        {
            let length = block.saturating_add(surrounding_tokens);
            conflict(format!(
                "blocks of {length} tokens are longer than the {longest} learned positions: raise model.max_positions, or lower \
             data.block"
            ))
        }
        _ => Ok(()),
    }
}
