//! Experiments that explain design choices: why scores are divided by √d_k, why positions are added, why one
//! vector is not enough, what a head is for. Each returns an [`Experiment`] with findings, tables and
//! pictures.

mod ablation;
mod deciding;
mod order;
mod scaling;

pub use ablation::AblationResults;
pub use ablation::ChangeCounts;
pub use ablation::{Ablation, join_head_names};
pub use deciding::MAX_DECIDING_HEADS;
pub use order::{OrderSettings, Permutation, order_of_model, order_of_random_model};
pub use scaling::{ScalingSettings, scaling};

use serde_json::Value;

use crate::plot::{LineChart, Picture, PictureGroup, Report, Status, Table, line_chart_svg, row_svg};

/// The results of an experiment.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Its question: "Why are scores divided by √d_k?".
    pub title: String,
    /// Its settings: sizes, seed, model.
    pub setting: String,
    /// Its findings, one sentence each.
    pub findings: Vec<String>,
    /// Its tables.
    pub tables: Vec<Table>,
    /// Curves.
    pub curves: Vec<LineChart>,
    /// Other pictures, as SVG.
    pub pictures: Vec<String>,
    /// All values in full precision.
    pub json: Value,
}

impl Experiment {
    /// Findings and tables as text for the terminal.
    pub fn to_text(&self) -> String {
        let tables = self.tables.iter().map(|table| format!("\n{}", table.to_markdown()));
        let findings = self.findings.iter().map(|finding| format!("{finding}\n"));
        format!(
            "{}\n{}\n\n{}{}",
            self.title,
            self.setting,
            findings.collect::<String>(),
            tables.collect::<String>()
        )
    }

    /// Merges several experiments into one; `None` if there are none.
    pub fn joined(mut all: Vec<Experiment>) -> Option<Experiment> {
        if all.len() <= 1 {
            return all.pop();
        }
        let titles: Vec<&str> = all.iter().map(|one| one.title.as_str()).collect();
        Some(Experiment {
            title: titles.join(" "),
            setting: all.iter().map(|one| one.setting.as_str()).collect::<Vec<_>>().join("; "),
            findings: all.iter().flat_map(|one| one.findings.clone()).collect(),
            tables: all.iter().flat_map(|one| one.tables.clone()).collect(),
            curves: all.iter().flat_map(|one| one.curves.clone()).collect(),
            pictures: all.iter().flat_map(|one| one.pictures.clone()).collect(),
            json: all.into_iter().map(|one| one.json).collect(),
        })
    }

    /// All curves and pictures side by side in one SVG.
    pub fn to_svg(&self) -> String {
        row_svg(&self.all_pictures())
    }

    /// The experiment as a report page.
    pub fn report(&self) -> Report {
        let group = PictureGroup {
            title: String::new(),
            note: String::new(),
            pictures: self.all_pictures().into_iter().map(Picture::from).collect(),
        };
        let row = |finding: &String| vec![finding.clone()];
        let findings = Table {
            title: "Findings".to_owned(),
            columns: vec![String::new()],
            rows: self.findings.iter().map(row).collect(),
        };
        Report {
            title: self.title.clone(),
            subtitle: self.setting.clone(),
            status: Status::Absent,
            pictures: vec![group],
            tables: [findings].into_iter().chain(self.tables.iter().cloned()).collect(),
            ..Report::default()
        }
    }

    fn all_pictures(&self) -> Vec<String> {
        self.curves.iter().map(line_chart_svg).chain(self.pictures.iter().cloned()).collect()
    }
}
