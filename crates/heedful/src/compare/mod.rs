//! Compares layers and models: two tables of "Attention Is All You Need", measured on this machine.
//!
//! 1. [`layers`] is table 1: time and memory of self attention, restricted self attention, recurrence,
//!    convolution and dilated convolution on this machine, by sequence length.
//! 2. [`variations`] is table 3: one recipe trained with varied numbers of heads and layers, widths and so
//!    on, on any corpus.
//!
//! Both produce Markdown, CSV and an HTML report ([`ComparisonFiles`]).

pub mod layers;
pub mod variations;

mod text;

use std::fs;
use std::path::Path;

use crate::plot::{Report, Table};
use crate::store::durable::{self, WriteError};

/// The result files of a comparison.
#[derive(Clone, Debug)]
pub struct ComparisonFiles {
    /// Markdown for the terminal, saved as `compare.md`.
    pub markdown: String,
    /// CSV, saved as `compare.csv`.
    pub csv: String,
    /// A report with charts, saved as `report.html`.
    pub report: Report,
}

impl ComparisonFiles {
    /// Writes all three files into `folder`, creating it if needed.
    pub fn save(&self, folder: &Path) -> Result<(), WriteError> {
        fs::create_dir_all(folder).map_err(|cause| WriteError::Failed { path: folder.to_owned(), cause })?;
        durable::write_bytes(&folder.join("compare.md"), self.markdown.as_bytes())?;
        durable::write_bytes(&folder.join("compare.csv"), self.csv.as_bytes())?;
        durable::write_bytes(&folder.join("report.html"), self.report.to_html().as_bytes())
    }
}

/// A table with these headings and rows.
fn table(title: &str, columns: &[&str], rows: Vec<Vec<String>>) -> Table {
    let columns = columns.iter().map(|&column| column.to_owned()).collect();
    Table { title: title.to_owned(), columns, rows }
}
