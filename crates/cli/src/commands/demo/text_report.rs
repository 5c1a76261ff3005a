//! The results of the demo on standard output.

use std::io::{self, Write};

use heedful::layers::{AttentionRole, HeadName};
use unicode_width::UnicodeWidthStr;

use super::best_head::{self, BestHead};
use super::direction::{Dependency, Direction};
use super::evaluation::TestResult;
use super::model::DemoModel;
use super::trace::Trace;
use crate::heatmap::{self, Heatmap, Labels, Style};

/// Correct translations and mistakes that are shown.
const SAMPLES: (usize, usize) = (8, 3);

/// BLEU and exact match on the test set, by length, with samples.
pub(super) fn test_result(
    (model, direction): (DemoModel, Direction),
    test: &TestResult,
    out: &mut impl Write,
) -> io::Result<()> {
    let all = test.exact_match();
    writeln!(out, "{direction}: {} test phrases, which {model} was not trained on\n", all.total)?;
    writeln!(out, "  BLEU         {:.2}   ({})", test.bleu.score, test.bleu.signature)?;
    writeln!(out, "  exact match  {}   ({} of {})\n", all.percent(), all.correct, all.total)?;
    for (length, found) in test.by_length() {
        writeln!(out, "  {length:<18} {:>8}   ({} of {})", found.percent(), found.correct, found.total)?;
    }
    writeln!(out)?;
    let samples = test.samples(SAMPLES.0, SAMPLES.1);
    let width = samples.iter().map(|sample| sample.source.width()).max().unwrap_or(0);
    for sample in samples {
        let space = " ".repeat(width - sample.source.width());
        writeln!(out, "  {}{space}   {}", sample.source, sample.output)?;
        if !sample.is_correct() {
            writeln!(out, "  {}   ✗ {}", " ".repeat(width), sample.reference)?;
        }
    }
    Ok(())
}

/// The models side by side: exact match by the length of the phrases.
pub(super) fn comparison(
    direction: Direction,
    columns: &[(&str, &TestResult)],
    out: &mut impl Write,
) -> io::Result<()> {
    writeln!(out, "{direction}: exact match by length\n")?;
    let line = |out: &mut dyn Write, name: &str, cells: &[String]| {
        write!(out, "  {name:<18}")?;
        for cell in cells {
            write!(out, "  {cell:>13}")?;
        }
        writeln!(out)
    };
    let names: Vec<String> = columns.iter().map(|(name, _)| (*name).to_owned()).collect();
    line(out, "", &names)?;
    let by_length: Vec<_> = columns.iter().map(|(_, test)| test.by_length()).collect();
    for row in 0..by_length.first().map_or(0, Vec::len) {
        let cells: Vec<String> = by_length.iter().map(|lengths| lengths[row].1.percent()).collect();
        line(out, &by_length[0][row].0.to_string(), &cells)?;
    }
    let all: Vec<String> = columns.iter().map(|(_, test)| test.exact_match().percent()).collect();
    line(out, "all", &all)?;
    writeln!(out)
}

/// A translation and its cross attention, by the best of these heads or of all.
pub(in crate::commands) fn attention(
    trace: &Trace<'_>,
    dependency: Option<&Dependency>,
    among: &[HeadName],
    out: &mut impl Write,
) -> io::Result<()> {
    writeln!(out, "\n  {}\n  → {}\n", trace.source, trace.output)?;
    let Some(best) = BestHead::of(trace, dependency, among) else { return Ok(()) };
    writeln!(
        out,
        "Cross attention: what the model attended to (columns) when it generated each word (rows):\n"
    )?;
    let head = HeadName { role: AttentionRole::Cross, layer: best.layer, head: best.head };
    let title = head.to_string();
    let pictures =
        [Heatmap::new(&title, best.weights), Heatmap::new("mean of all heads", best_head::mean(trace))];
    let labels = Labels { rows: trace.rows.clone(), columns: trace.columns.clone() };
    Heatmap::write_side_by_side(&pictures, &labels, Style::of_stdout(), heatmap::stdout_width(), out)?;
    if let (Some(share), Some(dependency)) = (best.share, dependency) {
        let Dependency { word, depends_on, why, .. } = dependency;
        writeln!(
            out,
            "\nIn {head}, “{word}” gives {:.0} % of its attention to {depends_on}:",
            100.0 * share
        )?;
        writeln!(out, "{why}.")?;
    }
    Ok(())
}
