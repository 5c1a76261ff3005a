//! What a model attends to, as numbers and as pictures: for one sentence ([`Explanation`] and its views), and for a
//! model's heads over a corpus ([`heads`]), with the page that shows explanations.

mod alternatives;
mod explanation;
pub mod heads;
mod pictures;
mod viewer;
mod views;

pub use alternatives::{Alternative, generated_tokens};
pub use explanation::{
    ExplainedKind, ExplainedLayer, ExplainedOutput, ExplainedSource, ExplainedToken, Explanation,
    HeadWeights, WeightForm,
};
pub use pictures::position_table_svg;
pub use viewer::{FILES as VIEWER_FILES, page};
pub use views::{
    AttentionMatrix, Granularity, HeadChoice, LayerChoice, NamedHead, ViewError, grid_svg, words_svg,
};
