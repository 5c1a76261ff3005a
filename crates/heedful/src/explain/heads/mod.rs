//! What the heads of a model do, over a corpus: how concentrated their attention is and how far it reaches, whether
//! they attend to adjacent tokens or to separators, and how well they agree with reference alignments.

mod agreement;
mod examples;
mod links;
mod pictures;
mod pruning;
mod report;
mod statistics;
mod survey;

pub use agreement::Agreement;
pub use examples::HeadExample;
pub use links::ReferenceAlignment;
pub use links::ReferenceAlignmentError;
pub use pruning::{Pruning, PruningCorpus};
pub use report::HeadReport;
pub use report::{HeadRow, LayerRow};
pub use statistics::HeadStatistics;
pub use survey::HeadSurvey;
