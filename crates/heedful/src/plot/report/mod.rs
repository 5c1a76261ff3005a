//! `report.html`: a training run, or a comparison, on one page, in one file, without scripts and without network.
//!
//! The training loop fills a [`Report`] with what it knows and writes [`Report::to_html`] beside its checkpoints; empty
//! parts are left out. Every text is escaped: a corpus may contain markup, the page shows it as text.

mod page;
mod sections;

use super::line_chart::LineChart;

/// Everything about a run that a person may want to see.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What was trained: "Multi30k English → German".
    pub title: String,
    /// One line below the title: model, size, machine.
    pub subtitle: String,
    /// How the run stands.
    pub status: Status,
    /// The numbers that matter most, first.
    pub results: Vec<Fact>,
    /// Losses, metrics, rates over the steps.
    pub curves: Vec<LineChart>,
    /// What became of a few sentences over time.
    pub samples: Vec<SampleHistory>,
    /// Where the model looked in one sentence.
    pub attention: Vec<AttentionGrid>,
    /// Pictures of any other kind.
    pub pictures: Vec<PictureGroup>,
    /// Results that need rows and columns: exact match by length, corpus files read, kept and filtered.
    pub tables: Vec<Table>,
    /// The recipe.
    pub settings: Vec<SettingsGroup>,
    /// Version, processor, threads, number type.
    pub environment: Vec<Fact>,
}

/// How a run stands.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Status {
    /// Nothing has been trained yet.
    #[default]
    Waiting,
    /// It goes on; the page reloads itself.
    Running {
        /// Updates so far.
        step: u64,
        /// How far it is, in [0, 1], where that is known.
        progress: Option<f64>,
    },
    /// All was done as planned, or no more was to be gained.
    Finished {
        /// Updates in all.
        step: u64,
        /// Why it ended: "all steps done", "no better for 5 validations".
        reason: String,
    },
    /// Somebody or something stopped it; it can be resumed.
    Stopped {
        /// Updates so far.
        step: u64,
        /// What stopped it.
        reason: String,
    },
    /// The numbers ran away.
    Diverged {
        /// The step at which it was seen.
        step: u64,
        /// What was seen.
        reason: String,
    },
    /// No run at all: nothing is said.
    Absent,
    /// Not one run but several things side by side.
    Compared {
        /// How many are done.
        done: usize,
        /// Of how many.
        of: usize,
    },
}

/// A name and a value, as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fact {
    /// "BLEU".
    pub name: String,
    /// "38.02".
    pub value: String,
    /// A few words more; may be empty.
    pub note: String,
}

/// What became of one sentence over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SampleHistory {
    /// The input.
    pub source: String,
    /// What a person made of it; may be empty.
    pub reference: String,
    /// Steps and what the model said then, oldest first.
    pub outputs: Vec<(u64, String)>,
}

/// All heads of one attention layer for one sentence.
#[derive(Clone, Debug, Default)]
pub struct AttentionGrid {
    /// "decoder layer 1, cross attention".
    pub title: String,
    /// `heads[head]` is a matrix of rows × columns, row after row.
    pub heads: Vec<Vec<f32>>,
    /// What looked: target tokens.
    pub rows: Vec<String>,
    /// What was looked at: source tokens.
    pub columns: Vec<String>,
}

/// Pictures that belong together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PictureGroup {
    /// Above them.
    pub title: String,
    /// SVG, as this crate draws it: it goes into the page as it is.
    pub pictures: Vec<String>,
}

/// Rows and columns of text; all columns but the first are aligned to the right.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Above it.
    pub title: String,
    /// One heading for each column.
    pub columns: Vec<String>,
    /// Rows of as many cells.
    pub rows: Vec<Vec<String>>,
}

/// Settings that belong together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SettingsGroup {
    /// `model`, `train`, …
    pub name: String,
    /// Keys and values.
    pub values: Vec<(String, String)>,
}

impl Fact {
    /// A fact without a note.
    pub fn new(name: &str, value: impl ToString) -> Fact {
        Fact { name: name.to_owned(), value: value.to_string(), note: String::new() }
    }

    /// The same with a few words more.
    pub fn noted(self, note: impl ToString) -> Fact {
        Fact { note: note.to_string(), ..self }
    }
}

impl Report {
    /// The page.
    pub fn to_html(&self) -> String {
        page::page(self)
    }
}

#[cfg(test)]
mod tests;
