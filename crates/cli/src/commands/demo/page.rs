//! The demo's `report.html`: the run's own, with the exam and with the example's attention.

use std::path::Path;

use anyhow::Result;
use heedful::layers::AttentionMap;
use heedful::plot::{AttentionGrid, Fact, Report, Table};
use heedful::store::durable;
use heedful_grammar::LengthClass;

use super::direction::Direction;
use super::exam::{ExactMatch, Exam};
use super::model::DemoModel;
use super::trace::Traced;

/// Adds what the run did not know, and writes the page.
pub(super) fn write(
    mut report: Report,
    (model, direction): (DemoModel, Direction),
    exam: &Exam,
    traced: &[Traced<'_>],
    path: &Path,
) -> Result<()> {
    let all = exam.exact_match();
    report.title = format!("heedful demo: {direction}");
    report.subtitle = format!("{} phrases that were never trained on, translated by {model}", all.asked);
    let results = [
        Fact::new("exact match", all.percent())
            .noted(format!("{} of {} unseen phrases", all.right, all.asked)),
        Fact::new("BLEU", format!("{:.2}", exam.bleu.score)).noted("on the same phrases"),
    ];
    report.results.splice(0..0, results);
    report.attention = traced.iter().flat_map(grids).collect();
    report.tables.insert(0, by_length(exam));
    Ok(durable::write_bytes(path, report.to_html().as_bytes())?)
}

fn grids(traced: &Traced<'_>) -> Vec<AttentionGrid> {
    let grid = |map: &AttentionMap| AttentionGrid {
        title: format!("{} → {}: decoder layer {}", traced.source, traced.output, map.place.layer + 1),
        heads: map.weights[0].clone(),
        rows: traced.rows.clone(),
        columns: traced.columns.clone(),
    };
    traced.maps.iter().map(grid).collect()
}

fn by_length(exam: &Exam) -> Table {
    let row = |(length, found): (LengthClass, ExactMatch)| {
        vec![length.to_string(), found.percent(), found.right.to_string(), found.asked.to_string()]
    };
    Table {
        title: "Exact match by length".to_owned(),
        columns: ["Chinese words", "exact match", "right", "asked"].map(str::to_owned).to_vec(),
        rows: exam.by_length().into_iter().map(row).collect(),
    }
}
