//! The report of a run that is over, for programs that know more of the model than the run did.

use super::page::{Page, Past, page, title};
use super::{Outcome, RunError};
use crate::data::encoded::EncodedCorpus;
use crate::plot::{Report, Status};
use crate::recipe::Recipe;
use crate::train::log::{self, read_attention, read_metrics};

/// What the run has written into `report.html`, without the attention: made again from the files in its folder.
pub fn report(recipe: &Recipe, outcome: &Outcome) -> Result<Report, RunError> {
    let folder = recipe.output.out.as_ref().ok_or(RunError::NoFolder)?;
    let corpus = EncodedCorpus::open(&folder.join("corpus.bin"))?;
    let contents = Page {
        title: title(folder),
        subtitle: String::new(),
        recipe: recipe.clone(),
        corpus: corpus.report().clone(),
        attention: Vec::new(),
        tables: Vec::new(),
    };
    let status = Status::Finished { step: outcome.step, reason: outcome.ending.to_string() };
    let past = Past {
        records: read_metrics(&folder.join(log::METRICS))?,
        attention: read_attention(&folder.join(log::ATTENTION))?,
    };
    Ok(page(&contents, &past, status))
}
