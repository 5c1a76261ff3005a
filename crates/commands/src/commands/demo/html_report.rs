//! The demo's `report.html`: the training run's report with the test result and the attention of the example.

use std::path::Path;

use anyhow::Result;
use heedful::layers::AttentionMap;
use heedful::plot::{AttentionGrid, Fact, Report, Table};
use heedful::store::durable;
use heedful_grammar::LengthClass;

use super::direction::Direction;
use super::evaluation::{ExactMatch, TestResult};
use super::model::DemoModel;
use super::trace::Trace;

/// Adds test result and attention to the run's report, and writes it.
pub(super) fn write(
    mut report: Report,
    (model, direction): (DemoModel, Direction),
    test: &TestResult,
    traces: &[Trace<'_>],
    path: &Path,
) -> Result<()> {
    let all = test.exact_match();
    report.title = format!("heedful demo: {direction}");
    report.subtitle = format!("{} test phrases, translated by {model}", all.total);
    let results = [
        Fact::new("exact match", all.percent())
            .with_note(format!("{} of {} unseen phrases", all.correct, all.total)),
        Fact::new("BLEU", format!("{:.2}", test.bleu.score)).with_note("on the same phrases"),
    ];
    report.results.splice(0..0, results);
    report.attention = traces.iter().flat_map(grids).collect();
    report.tables.insert(0, by_length(test));
    Ok(durable::write_bytes(path, report.to_html().as_bytes())?)
}

fn grids(trace: &Trace<'_>) -> Vec<AttentionGrid> {
    let grid = |map: &AttentionMap| AttentionGrid {
        title: format!("{} → {}: {}", trace.source, trace.output, map.site.layer_name()),
        heads: map.weights[0].clone(),
        rows: trace.rows.clone(),
        columns: trace.columns.clone(),
    };
    trace.maps.iter().map(grid).collect()
}

fn by_length(test: &TestResult) -> Table {
    let row = |(length, found): (LengthClass, ExactMatch)| {
        vec![length.to_string(), found.percent(), found.correct.to_string(), found.total.to_string()]
    };
    Table {
        title: "Exact match by length".to_owned(),
        columns: ["Chinese words", "exact match", "correct", "total"].map(str::to_owned).to_vec(),
        rows: test.by_length().into_iter().map(row).collect(),
    }
}
