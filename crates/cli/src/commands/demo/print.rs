//! What the demo tells on the terminal when it is done.

use std::io::{self, Write};

use unicode_width::UnicodeWidthStr;

use super::direction::{Direction, Lesson};
use super::exam::Exam;
use super::head::{self, Chosen};
use super::model::DemoModel;
use super::trace::Traced;
use crate::heatmap::{self, Heatmap, Labels, Style};

/// Right answers and mistakes that are shown.
const SHOWN: (usize, usize) = (8, 3);

/// The marks of the exam, by length, with samples.
pub(super) fn exam(
    (model, direction): (DemoModel, Direction),
    exam: &Exam,
    out: &mut impl Write,
) -> io::Result<()> {
    let all = exam.exact_match();
    writeln!(out, "{direction}: {} phrases that {model} has never seen\n", all.asked)?;
    writeln!(out, "  BLEU         {:.2}   ({})", exam.bleu.score, exam.bleu.signature)?;
    writeln!(out, "  exact match  {}   ({} of {})\n", all.percent(), all.right, all.asked)?;
    for (length, found) in exam.by_length() {
        writeln!(out, "  {length:<18} {:>8}   ({} of {})", found.percent(), found.right, found.asked)?;
    }
    writeln!(out)?;
    let samples = exam.samples(SHOWN.0, SHOWN.1);
    let width = samples.iter().map(|answer| answer.source.width()).max().unwrap_or(0);
    for answer in samples {
        let space = " ".repeat(width - answer.source.width());
        writeln!(out, "  {}{space}   {}", answer.source, answer.output)?;
        if !answer.is_right() {
            writeln!(out, "  {}   ✗ {}", " ".repeat(width), answer.reference)?;
        }
    }
    Ok(())
}

/// The models side by side: how much of the exam each has right, by the length of the phrases.
pub(super) fn comparison(
    direction: Direction,
    columns: &[(&str, &Exam)],
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
    let by_length: Vec<_> = columns.iter().map(|(_, exam)| exam.by_length()).collect();
    for row in 0..by_length.first().map_or(0, Vec::len) {
        let cells: Vec<String> = by_length.iter().map(|lengths| lengths[row].1.percent()).collect();
        line(out, &by_length[0][row].0.to_string(), &cells)?;
    }
    let all: Vec<String> = columns.iter().map(|(_, exam)| exam.exact_match().percent()).collect();
    line(out, "all", &all)?;
    writeln!(out)
}

/// A translation and where its words came from.
pub(in crate::commands) fn alignment(
    traced: &Traced<'_>,
    lesson: Option<&Lesson>,
    out: &mut impl Write,
) -> io::Result<()> {
    writeln!(out, "\n  {}\n  → {}\n", traced.source, traced.output)?;
    let Some(chosen) = Chosen::of(traced, lesson) else { return Ok(()) };
    writeln!(out, "Where the model looked (columns) when it wrote each word (rows):\n")?;
    let Chosen { layer, head, .. } = chosen;
    let title = format!("decoder layer {}, head {}", layer + 1, head + 1);
    let pictures =
        [Heatmap::new(&title, chosen.weights), Heatmap::new("mean of all heads", head::mean(traced))];
    let labels = Labels { rows: traced.rows.clone(), columns: traced.columns.clone() };
    Heatmap::write_side_by_side(&pictures, &labels, Style::of_stdout(), heatmap::stdout_width(), out)?;
    if let (Some(share), Some(lesson)) = (chosen.share, lesson) {
        let Lesson { word, looks_at, why, .. } = lesson;
        writeln!(
            out,
            "\nIn that head (cross.{layer}.{head}) “{word}” looks at {looks_at} with {:.0} % of its attention:",
            100.0 * share
        )?;
        writeln!(out, "{why}.")?;
    }
    Ok(())
}
