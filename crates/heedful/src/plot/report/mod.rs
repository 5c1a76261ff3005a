//! `report.html`: a training run or a comparison on one page, in one file, without scripts or network access.
//!
//! The training loop fills a [`Report`] and writes [`Report::to_html`] next to its checkpoints; empty
//! sections are omitted. All text is escaped: markup in a corpus is shown as text.

mod page;
mod sections;

use super::line_chart::LineChart;

/// The contents of a report.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The title, such as the data that was trained on: "Multi30k English → German".
    pub title: String,
    /// One line below the title: model, size, machine.
    pub subtitle: String,
    /// The state of the run.
    pub status: Status,
    /// The most important results.
    pub results: Vec<Fact>,
    /// Losses, metrics and learning rates over the steps.
    pub curves: Vec<LineChart>,
    /// The outputs of a few sentences during training.
    pub samples: Vec<SampleHistory>,
    /// The attention weights for one sentence.
    pub attention: Vec<AttentionGrid>,
    /// Other pictures.
    pub pictures: Vec<PictureGroup>,
    /// Tables: exact match by length, or the pairs read, kept and filtered from each corpus file.
    pub tables: Vec<Table>,
    /// The recipe.
    pub settings: Vec<SettingsGroup>,
    /// Version, CPU, threads, compute type.
    pub environment: Vec<Fact>,
}

/// The state of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Status {
    /// Nothing has been trained yet.
    #[default]
    Waiting,
    /// Training is in progress; the page reloads itself.
    Running {
        /// The number of updates so far.
        step: u64,
        /// The completed share in [0, 1], if known.
        progress: Option<f64>,
    },
    /// Training ended as planned, or by early stopping.
    Finished {
        /// The number of updates.
        step: u64,
        /// Why it ended: "all steps done", "no better for 5 validations".
        reason: String,
    },
    /// Training was interrupted; it can be resumed.
    Stopped {
        /// The number of updates so far.
        step: u64,
        /// Why it stopped.
        reason: String,
    },
    /// Training diverged.
    Diverged {
        /// The step at which the divergence was detected.
        step: u64,
        /// Why it counts as diverged.
        reason: String,
    },
    /// No status: the report does not describe a run.
    Absent,
    /// The report compares several runs or measurements.
    Compared {
        /// How many have been completed.
        done: usize,
        /// The total number.
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
    /// A short remark; may be empty.
    pub note: String,
}

/// The outputs for one sentence during training.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SampleHistory {
    /// The input.
    pub source: String,
    /// The reference translation; may be empty.
    pub reference: String,
    /// Pairs of a step and the model's output at that step, oldest first.
    pub outputs: Vec<(u64, String)>,
}

/// All heads of one attention layer for one sentence.
#[derive(Clone, Debug, Default)]
pub struct AttentionGrid {
    /// "decoder layer 1, cross attention".
    pub title: String,
    /// One row-major matrix of rows × columns per head.
    pub heads: Vec<Vec<f32>>,
    /// The queries: target tokens.
    pub rows: Vec<String>,
    /// The keys: source tokens.
    pub columns: Vec<String>,
}

impl AttentionGrid {
    /// Truncates all grids to their first n rows and columns, with the largest n ≤ `max_tokens` for which all
    /// heads together have at most `max_cells` cells; n is at least 1.
    pub fn bounded(grids: &[AttentionGrid], max_tokens: usize, max_cells: usize) -> Vec<AttentionGrid> {
        let cells = |tokens: usize| -> usize {
            let of_grid = |grid: &AttentionGrid| {
                grid.heads.len() * grid.rows.len().min(tokens) * grid.columns.len().min(tokens)
            };
            grids.iter().map(of_grid).sum()
        };
        let tokens = (1..=max_tokens).rev().find(|&tokens| cells(tokens) <= max_cells).unwrap_or(1);
        grids.iter().map(|grid| grid.truncated(tokens)).collect()
    }

    /// The first `tokens` rows and columns.
    fn truncated(&self, tokens: usize) -> AttentionGrid {
        let width = self.columns.len().max(1);
        let (rows, columns) = (self.rows.len().min(tokens), self.columns.len().min(tokens));
        let cut = |head: &Vec<f32>| -> Vec<f32> {
            head.chunks(width).take(rows).flat_map(|row| row[..columns].to_vec()).collect()
        };
        AttentionGrid {
            title: self.title.clone(),
            heads: self.heads.iter().map(cut).collect(),
            rows: self.rows[..rows].to_vec(),
            columns: self.columns[..columns].to_vec(),
        }
    }
}

/// Pictures that belong together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PictureGroup {
    /// The title.
    pub title: String,
    /// A remark next to the title; may be empty.
    pub note: String,
    /// The pictures.
    pub pictures: Vec<Picture>,
}

/// A picture of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Picture {
    /// SVG drawn by this crate: it is inserted into the page unescaped.
    pub svg: String,
    /// The caption below it; may be empty.
    pub caption: String,
}

impl From<String> for Picture {
    fn from(svg: String) -> Picture {
        Picture { svg, caption: String::new() }
    }
}

#[cfg(test)]
impl PictureGroup {
    /// All pictures, concatenated.
    pub(crate) fn svg(&self) -> String {
        self.pictures.iter().map(|picture| picture.svg.as_str()).collect()
    }
}

/// A table of text; all columns but the first are right-aligned. If the first cell of a row is the title of a
/// picture group on the same page, it links to that group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// The title.
    pub title: String,
    /// One heading for each column.
    pub columns: Vec<String>,
    /// Rows with one cell for each column.
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

    /// The same fact with a note.
    pub fn with_note(self, note: impl ToString) -> Fact {
        Fact { note: note.to_string(), ..self }
    }
}

impl Report {
    /// The HTML page.
    pub fn to_html(&self) -> String {
        page::page(self)
    }
}

#[cfg(test)]
mod tests;
