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

/// Number of correct translations and of mistakes to print.
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

/// A table of all models: exact match by phrase length.
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

/// A translation and its cross attention: the best head, of `among` if not empty, and the mean of all heads.
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
        writeln!(out, "\n{}", explained(head, share, dependency))?;
    }
    Ok(())
}

/// Minimum attention weight that counts as showing a dependency.
const MIN_SHOWN_WEIGHT: f32 = 0.5;

/// Explains a dependency: the linguistic reason, and whether the head shows it.
fn explained(head: HeadName, share: f32, dependency: &Dependency) -> String {
    let Dependency { word, depends_on, why, .. } = dependency;
    let percent = 100.0 * share;
    if share >= MIN_SHOWN_WEIGHT {
        return format!("In {head}, “{word}” gives {percent:.0} % of its attention to {depends_on}:\n{why}.");
    }
    format!(
        "{why}.\nNo cross attention shows it here: of all heads, {head} attends most from “{word}” to {depends_on}, with \
         {percent:.0} %.\nThe encoder mixes information between words: the decoder may get the deciding information from the state of \
         another word."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_only_shows_a_dependency_that_it_attends_to() {
        let dependency =
            Dependency { source: "一自动", word: "an", depends_on: "自动", why: "自动 decides" };
        let head = HeadName { role: AttentionRole::Cross, layer: 0, head: 1 };
        let shown = explained(head, 0.83, &dependency);
        assert!(shown.ends_with("“an” gives 83 % of its attention to 自动:\n自动 decides."), "{shown}");
        let missing = explained(head, 0.004, &dependency);
        assert!(missing.starts_with("自动 decides.\nNo cross attention shows it here"), "{missing}");
        assert!(missing.contains("attends most from “an” to 自动, with 0 %."), "{missing}");
    }
}
