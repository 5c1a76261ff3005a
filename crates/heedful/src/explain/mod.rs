//! Attention weights of a model as data and pictures: for one sentence ([`Explanation`] and its views) and
//! per head over a corpus ([`heads`]), with an HTML page that shows explanations. [`calculator`] needs no
//! model: it computes attention from matrices that the user gives.
//!
//! The states of Transformers: [`inspect`] is a text in a model; [`lens`], [`attribution`], [`patching`] and
//! [`neuron`] run it with recorded and replaced states.

mod alternatives;
pub mod attribution;
pub mod calculator;
pub mod experiments;
mod explanation;
pub mod heads;
pub mod inspect;
pub mod lens;
mod mask_file;
pub mod neuron;
mod options;
pub mod patching;
mod pictures;
mod texts;
mod translated;
mod viewer;
mod views;

pub use alternatives::{Alternative, generated_tokens};
pub(crate) use explanation::packed as packed_weights;
pub use explanation::{
    ExplainedKind, ExplainedLayer, ExplainedOutput, ExplainedSource, ExplainedToken, Explanation, HeadScores,
    HeadWeights, WeightForm,
};
pub use mask_file::MaskFileError;
pub use mask_file::MaskRows;
pub use options::{ExplainOptions, RawScores};
pub use pictures::position_table_svg;
pub use viewer::{FILES as VIEWER_FILES, page};
pub use views::{AttentionMatrix, Granularity, LayerChoice, NamedHead, grid_svg, words_svg};
pub use views::{HeadChoice, ViewError};
