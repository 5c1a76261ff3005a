//! Layers and models compared: two tables of "Attention Is All You Need", measured on this machine.
//!
//! 1. [`layers`] is table 1: self attention, restricted self attention, recurrence and convolution, plain and dilated, with the time and the
//!    memory that they take on this machine as sequences grow.
//! 2. [`variations`] is table 3: one recipe trained with more and fewer heads, layers, widths and so on, on any corpus.
//!
//! Both end as Markdown, CSV and a page ([`ComparisonFiles`]).

pub mod layers;
pub mod variations;

mod text;

use std::fs;
use std::path::Path;

use crate::plot::{Report, Table};
use crate::store::durable::{self, WriteError};

/// A comparison as the files that report it.
#[derive(Clone, Debug)]
pub struct ComparisonFiles {
    /// Markdown: printed, and saved as `compare.md`.
    pub markdown: String,
    /// CSV, for programs: `compare.csv`.
    pub csv: String,
    /// A report with curves: `report.html`.
    pub report: Report,
}

impl ComparisonFiles {
    /// Writes all three into `folder`, which is created if it is missing.
    pub fn save(&self, folder: &Path) -> Result<(), WriteError> {
        fs::create_dir_all(folder).map_err(|cause| WriteError::Failed { path: folder.to_owned(), cause })?;
        durable::write_bytes(&folder.join("compare.md"), self.markdown.as_bytes())?;
        durable::write_bytes(&folder.join("compare.csv"), self.csv.as_bytes())?;
        durable::write_bytes(&folder.join("report.html"), self.report.to_html().as_bytes())
    }
}

/// A table from headings and rows.
fn table(title: &str, columns: &[&str], rows: Vec<Vec<String>>) -> Table {
    let columns = columns.iter().map(|&column| column.to_owned()).collect();
    Table { title: title.to_owned(), columns, rows }
}
