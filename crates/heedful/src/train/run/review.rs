//! The report of a finished run, for programs that extend it.

use super::Outcome;
use super::error::no_folder;
use super::page::{Page, RunLogs, page, title};
use crate::Result;
use crate::data::encoded::EncodedCorpus;
use crate::plot::{Report, Status};
use crate::recipe::Recipe;
use crate::train::log::{self, read_attention, read_metrics};

/// The contents of the run's `report.html`, without the attention, rebuilt from the files in its folder.
pub fn report(recipe: &Recipe, outcome: &Outcome) -> Result<Report> {
    let folder = recipe.output.out.as_ref().ok_or_else(no_folder)?;
    let corpus = EncodedCorpus::open(&folder.join("corpus.bin"))?;
    let contents = Page {
        title: title(folder),
        subtitle: String::new(),
        recipe: recipe.clone(),
        plan: outcome.plan.clone(),
        corpus: corpus.report().clone(),
        attention: Vec::new(),
        tables: Vec::new(),
    };
    let status = Status::Finished { step: outcome.step, reason: outcome.ending.to_string() };
    let logs = RunLogs {
        records: read_metrics(&folder.join(log::METRICS))?,
        attention: read_attention(&folder.join(log::ATTENTION))?,
    };
    Ok(page(&contents, &logs, status))
}
