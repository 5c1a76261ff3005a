//! What the heads of a model do, over a corpus: how sharply and how far they look, whether they look at neighbours or at
//! separators, and how well their attention agrees with alignments that people made.

mod agreement;
mod links;
mod pictures;
mod pruning;
mod report;
mod statistics;
mod survey;

pub use agreement::Agreement;
pub use links::{LinkError, Links};
pub use pruning::{Corpus, Pruning};
pub use report::{HeadReport, HeadRow, LayerRow};
pub use statistics::HeadStatistics;
pub use survey::{HeadSurvey, SurveyError};
