//! What language models, masked or not, share: they read plain text, in lines or as one running text.

mod set;

pub(super) use set::TextSet;

use crate::data::batch::BatchLayout;
use crate::data::encoded::ExampleKind;
use crate::recipe::{DataKeys, PositionKind, Recipe, RecipeError};

/// The keys of plain text.
pub(super) const KEYS: &[&str] = &["data.text", "data.valid_text", "data.block"];

/// Lines in the form `lines`, or blocks in the form `blocks` if the recipe asks for blocks.
pub(super) fn example_kind(data: &DataKeys, lines: BatchLayout, blocks: BatchLayout) -> ExampleKind<'static> {
    data.block.map_or(ExampleKind::Lines(lines), |length| ExampleKind::Blocks(blocks, length))
}

/// Shortens the blocks that a task chooses by itself to what the positions of the model that a run starts from hold.
pub(super) fn fit_into_positions(recipe: &mut Recipe) {
    let longest = recipe.model.max_positions.saturating_sub(around(recipe));
    if let Some(block) = &mut recipe.data.block
        && recipe.model.positions == PositionKind::Learned
    {
        *block = longest.min(*block);
    }
}

/// A masked model may read a token before each block and one after it.
fn around(recipe: &Recipe) -> usize {
    if recipe.model.surround_text { 2 } else { 0 }
}

/// Whether the recipe's model can read the recipe's text.
pub(super) fn check(recipe: &Recipe) -> Result<(), RecipeError> {
    let conflict = |message: String| Err(RecipeError::Conflict(message));
    let longest = recipe.model.max_positions;
    let around = around(recipe);
    match recipe.data.block {
        Some(block)
            if recipe.model.positions == PositionKind::Learned && block.saturating_add(around) > longest =>
        {
            let read = block.saturating_add(around);
            conflict(format!(
                "blocks of {read} tokens are longer than the {longest} learned positions: raise model.max_positions, or lower \
             data.block"
            ))
        }
        _ => Ok(()),
    }
}
