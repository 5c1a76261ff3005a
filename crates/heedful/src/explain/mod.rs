//! What a model attended to, as numbers and as pictures: one sentence ([`Explanation`] and its views), a model's heads over
//! a corpus ([`heads`]), and the page that shows both.

mod explanation;
pub mod heads;
mod pictures;
mod viewer;
mod views;

pub use explanation::{
    ExplainedKind, ExplainedLayer, ExplainedOutput, ExplainedSource, ExplainedToken, Explanation, Heads,
    WeightForm,
};
pub use pictures::position_table_svg;
pub use viewer::{FILES as VIEWER_FILES, page};
pub use views::{HeadChoice, LayerChoice, Level, Matrix, ViewError, grid_svg, words_svg};
