//! `report.html`: a training run, or a comparison, on one page, in one file, without scripts and without network.
//!
//! The training loop fills a [`Report`] and writes [`Report::to_html`] beside its checkpoints; empty parts are left
//! out. Every text is escaped: a corpus may contain markup, the page shows it as text.

mod page;
mod sections;

use super::line_chart::LineChart;

/// Everything that is reported about a run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What was trained: "Multi30k English → German".
    pub title: String,
    /// One line below the title: model, size, machine.
    pub subtitle: String,
    /// The state of the run.
    pub status: Status,
    /// The most important numbers.
    pub results: Vec<Fact>,
    /// Losses, metrics and learning rates over the steps.
    pub curves: Vec<LineChart>,
    /// The outputs for a few sentences during training.
    pub samples: Vec<SampleHistory>,
    /// The attention weights for one sentence.
    pub attention: Vec<AttentionGrid>,
    /// Other pictures.
    pub pictures: Vec<PictureGroup>,
    /// Results that need rows and columns: exact match by length, corpus files read, kept and filtered.
    pub tables: Vec<Table>,
    /// The recipe.
    pub settings: Vec<SettingsGroup>,
    /// Version, processor, threads, compute type.
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
        /// Updates so far.
        step: u64,
        /// The completed share, in [0, 1], if it is known.
        progress: Option<f64>,
    },
    /// Training ended as planned, or stopped early because nothing improved.
    Finished {
        /// Updates in all.
        step: u64,
        /// Why it ended: "all steps done", "no better for 5 validations".
        reason: String,
    },
    /// Training was interrupted; it can be resumed.
    Stopped {
        /// Updates so far.
        step: u64,
        /// What stopped it.
        reason: String,
    },
    /// Training diverged.
    Diverged {
        /// The step at which the divergence was detected.
        step: u64,
        /// What was detected.
        reason: String,
    },
    /// The report has no status: it is not about a run.
    Absent,
    /// The report compares several runs or measurements.
    Compared {
        /// How many are done.
        done: usize,
        /// How many there are in all.
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
    /// Steps and the model's output at each, oldest first.
    pub outputs: Vec<(u64, String)>,
}

/// All heads of one attention layer for one sentence.
#[derive(Clone, Debug, Default)]
pub struct AttentionGrid {
    /// "decoder layer 1, cross attention".
    pub title: String,
    /// `heads[head]` is a matrix of rows × columns, row after row.
    pub heads: Vec<Vec<f32>>,
    /// The queries: target tokens.
    pub rows: Vec<String>,
    /// The keys: source tokens.
    pub columns: Vec<String>,
}

impl AttentionGrid {
    /// The same grids with as many of their first rows and columns, at most `most_tokens`, as all heads together have at most
    /// `most_cells` numbers. One token is always left.
    pub fn bounded(grids: &[AttentionGrid], most_tokens: usize, most_cells: usize) -> Vec<AttentionGrid> {
        let cells = |tokens: usize| -> usize {
            let of_grid = |grid: &AttentionGrid| {
                grid.heads.len() * grid.rows.len().min(tokens) * grid.columns.len().min(tokens)
            };
            grids.iter().map(of_grid).sum()
        };
        let fits = (1..=most_tokens).rev().find(|&tokens| cells(tokens) <= most_cells).unwrap_or(1);
        grids.iter().map(|grid| grid.first(fits)).collect()
    }

    /// The first rows and columns.
    fn first(&self, tokens: usize) -> AttentionGrid {
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
    /// The title above them.
    pub title: String,
    /// What else is said beside the title; may be empty.
    pub note: String,
    /// The pictures.
    pub pictures: Vec<Picture>,
}

/// A picture of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Picture {
    /// SVG drawn by this crate: it is inserted into the page unescaped.
    pub svg: String,
    /// A line below it; may be empty.
    pub caption: String,
}

impl From<String> for Picture {
    fn from(svg: String) -> Picture {
        Picture { svg, caption: String::new() }
    }
}

#[cfg(test)]
impl PictureGroup {
    /// All pictures, one after the other.
    pub(crate) fn svg(&self) -> String {
        self.pictures.iter().map(|picture| picture.svg.as_str()).collect()
    }
}

/// Rows and columns of text; all columns but the first are aligned to the right. A first cell that is the title of a group of
/// pictures on the same page links to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// The title above it.
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
