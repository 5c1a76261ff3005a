//! The variations as tables and pictures.

use super::super::{ComparisonFiles, table, text};
use super::{LengthAccuracy, SkippedVariation, VariationGroup, VariationPlan, VariationResult};
use crate::metrics::Measure;
use crate::plot::{Fact, LineChart, Mark, Report, Scale, Series, Status, Table};
use crate::train::run::{environment, settings};

/// A column of results: what was measured, heading, and what the number is multiplied by.
type Column = (Measure, &'static str, f64);

const PERPLEXITY: Column = (Measure::ValidPerplexity, "perplexity", 1.0);
const BLEU: Column = (Measure::ValidBleu, "BLEU", 1.0);
const ACCURACY: Column = (Measure::ValidAccuracy, "accuracy, %", 100.0);
const MACRO_F1: Column = (Measure::ValidMacroF1, "macro F1, %", 100.0);
const CSV: [&str; 10] = [
    "variation",
    "changes",
    "parameters",
    "steps",
    "seconds",
    "valid_perplexity",
    "valid_bleu",
    "valid_accuracy",
    "valid_macro_f1",
    "ending",
];

/// The comparison so far, as files.
pub fn files(plan: &VariationPlan, entries: &[VariationResult]) -> ComparisonFiles {
    let mut tables = vec![variations(entries)];
    tables.extend(by_length(entries));
    if !plan.left_out.is_empty() {
        tables.push(left_out(&plan.left_out));
    }
    let (done, of) = (entries.len(), plan.variations.len());
    let subtitle = format!(
        "one recipe, {} with something changed, as in the paper's table 3; values of the best validation of each",
        match of.saturating_sub(1) {
            1 => "once".to_owned(),
            count => format!("{count} times"),
        }
    );
    let markdown: Vec<String> = tables.iter().map(text::markdown).collect();
    let base = plan.variations.first().map(|base| &base.recipe);
    ComparisonFiles {
        markdown: format!(
            "# Variations of a model ({done} of {of} trained)\n\n{subtitle}\n\n{}",
            markdown.join("\n")
        ),
        csv: text::csv(&CSV, &entries.iter().map(row).collect::<Vec<_>>()),
        report: Report {
            title: "Variations of a model".to_owned(),
            subtitle,
            status: Status::Compared { done, of },
            results: results(entries),
            curves: charts(entries),
            tables,
            settings: base.map(settings).unwrap_or_default(),
            environment: base.map(environment).unwrap_or_default(),
            ..Report::default()
        },
    }
}

fn variations(entries: &[VariationResult]) -> Table {
    let judged = columns(entries);
    let mut headings = vec!["variation", "what differs", "parameters, M"];
    headings.extend(judged.iter().map(|(_, heading, _)| *heading));
    headings.extend(["steps", "time, min", "ended because"]);
    let line = |entry: &VariationResult| {
        let mut cells = vec![
            entry.name.clone(),
            if entry.group.is_none() { "the recipe as it is".to_owned() } else { entry.changes.clone() },
            format!("{:.2}", entry.parameters as f64 / 1e6),
        ];
        cells.extend(judged.iter().map(|&column| value(entry, column)));
        cells.extend([entry.step.to_string(), format!("{:.1}", entry.seconds / 60.0), entry.ending.clone()]);
        cells
    };
    table("Variations", &headings, entries.iter().map(line).collect())
}

/// The accuracy of classifiers by the length of the text; none for other tasks.
fn by_length(entries: &[VariationResult]) -> Option<Table> {
    let groups = &entries.iter().find(|entry| !entry.by_length.is_empty())?.by_length;
    let heading = |group: &LengthAccuracy| format!("{} to {} tokens", group.shortest, group.longest);
    let headings: Vec<String> = groups.iter().map(heading).collect();
    let columns: Vec<&str> =
        std::iter::once("variation").chain(headings.iter().map(String::as_str)).collect();
    let percent =
        |group: &LengthAccuracy| format!("{:.1}", 100.0 * group.correct as f64 / group.texts.max(1) as f64);
    let line = |entry: &VariationResult| {
        std::iter::once(entry.name.clone()).chain(entry.by_length.iter().map(percent)).collect()
    };
    // A model with fewer positions reads fewer texts, and is not compared by others.
    let texts = |group: &LengthAccuracy| (group.shortest, group.longest, group.texts);
    let measured =
        entries.iter().filter(|entry| entry.by_length.iter().map(texts).eq(groups.iter().map(texts)));
    Some(table("Accuracy by the length of the text, %", &columns, measured.map(line).collect()))
}

fn left_out(left_out: &[SkippedVariation]) -> Table {
    let line = |left_out: &SkippedVariation| vec![left_out.name.clone(), left_out.reason.clone()];
    table("Left out", &["variation", "why"], left_out.iter().map(line).collect())
}

/// A line of the CSV file, in the order of [`CSV`].
fn row(entry: &VariationResult) -> Vec<String> {
    let plain = |measure: Measure| entry.value(measure).map_or_else(String::new, |value| value.to_string());
    vec![
        entry.name.clone(),
        entry.changes.clone(),
        entry.parameters.to_string(),
        entry.step.to_string(),
        format!("{:.1}", entry.seconds),
        plain(Measure::ValidPerplexity),
        plain(Measure::ValidBleu),
        plain(Measure::ValidAccuracy),
        plain(Measure::ValidMacroF1),
        entry.ending.clone(),
    ]
}

/// Perplexity, and the other metrics of the task.
fn columns(entries: &[VariationResult]) -> Vec<Column> {
    let has = |(measure, ..): Column| entries.iter().any(|entry| !entry.curve(measure).is_empty());
    let mut columns = vec![PERPLEXITY];
    if has(BLEU) {
        columns.push(BLEU);
    } else {
        columns.extend([ACCURACY, MACRO_F1].into_iter().filter(|&column| has(column)));
    }
    columns
}

fn value(entry: &VariationResult, (measure, _, factor): Column) -> String {
    entry.value(measure).map_or_else(|| text::NOTHING.to_owned(), |value| format!("{:.2}", factor * value))
}

/// The results of the base, and the best ones.
fn results(entries: &[VariationResult]) -> Vec<Fact> {
    let mut facts = Vec::new();
    for column in columns(entries) {
        let (measure, heading, _) = column;
        if let Some(base) = entries.iter().find(|entry| entry.group.is_none()) {
            facts.push(Fact::new(heading, value(base, column)).noted("base"));
        }
        let sign = if column == PERPLEXITY { -1.0 } else { 1.0 };
        let judged = entries.iter().filter_map(|entry| Some((sign * entry.value(measure)?, entry)));
        if let Some((_, best)) = judged.max_by(|a, b| a.0.total_cmp(&b.0)) {
            facts.push(Fact::new(&format!("best {heading}"), value(best, column)).noted(&best.name));
        }
    }
    facts
}

/// All variations together, then each group with the base.
fn charts(entries: &[VariationResult]) -> Vec<LineChart> {
    let mut charts = Vec::new();
    for column in columns(entries) {
        charts.push(chart("all variations", column, entries.iter()));
    }
    for group in VariationGroup::ALL {
        let members = || entries.iter().filter(|entry| entry.group.is_none_or(|of| of == group));
        if members().any(|entry| entry.group.is_some()) {
            charts.push(chart(group.name(), PERPLEXITY, members()));
        }
    }
    charts
}

fn chart<'a>(
    what: &str,
    (measure, heading, factor): Column,
    entries: impl Iterator<Item = &'a VariationResult>,
) -> LineChart {
    let line = |entry: &VariationResult| Series {
        name: entry.name.clone(),
        points: entry.curve(measure).into_iter().map(|(step, value)| (step, factor * value)).collect(),
        mark: Mark::Nothing,
    };
    LineChart {
        title: format!("Validation {heading}: {what}"),
        x_label: "step".to_owned(),
        scale: if measure == PERPLEXITY.0 { Scale::Log } else { Scale::Linear },
        series: entries.map(line).collect(),
        ..LineChart::default()
    }
}
