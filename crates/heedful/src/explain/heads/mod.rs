//! Statistics of a model's heads over a corpus: how concentrated their attention is and how far it reaches,
//! whether they attend to adjacent tokens or to separators, and how well they agree with reference
//! alignments.

mod agreement;
mod examples;
mod functions;
mod links;
mod pictures;
mod report;
mod statistics;
mod survey;

pub use agreement::Agreement;
pub use examples::HeadExample;
pub use functions::{HeadFunction, HeadFunctions};
pub use links::{ReferenceAlignment, ReferenceAlignmentError};
pub use report::{HeadReport, HeadRow, LayerRow};
pub use statistics::HeadStatistics;
pub use survey::HeadSurvey;
