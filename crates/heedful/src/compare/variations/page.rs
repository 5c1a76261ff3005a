//! The results of the variations as tables and charts.

use super::super::{ComparisonFiles, table, text};
use super::{LengthAccuracy, SkippedVariation, VariationGroup, VariationPlan, VariationResult};
use crate::metrics::Measure;
use crate::plot::{Fact, Highlight, LineChart, Report, Scale, Series, Status, Table};
use crate::train::run::{environment, settings};

/// A column of results: the measure, its heading, and a factor for display.
type Column = (Measure, &'static str, f64);

const PERPLEXITY: Column = (Measure::ValidPerplexity, "perplexity", 1.0);
const BLEU: Column = (Measure::ValidBleu, "BLEU", 1.0);
const ACCURACY: Column = (Measure::ValidAccuracy, "accuracy, %", 100.0);
const MACRO_F1: Column = (Measure::ValidMacroF1, "macro F1, %", 100.0);
const CSV: [&str; 11] = [
    "variation",
    "seed",
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

/// The runs of one variation with different seeds.
type Runs<'a> = &'a [VariationResult];

/// The results grouped by variation, in the order of the plan.
fn by_variation(entries: &[VariationResult]) -> impl Iterator<Item = Runs<'_>> {
    entries.chunk_by(|one, next| one.name == next.name)
}

/// The comparison so far, as files.
pub fn files(plan: &VariationPlan, entries: &[VariationResult]) -> ComparisonFiles {
    let mut tables = vec![variations_table(entries)];
    tables.extend(by_length(entries));
    if !plan.skipped.is_empty() {
        tables.push(skipped_table(&plan.skipped));
    }
    let (done, of) = (entries.len(), plan.variations.len());
    let subtitle = subtitle(plan);
    let markdown: Vec<String> = tables.iter().map(text::markdown).collect();
    let base = plan.variations.first().map(|base| &base.recipe);
    ComparisonFiles {
        markdown: format!(
            "# Variations of a model ({done} of {of} trained)\n\n{subtitle}\n\n{}",
            markdown.join("\n")
        ),
        csv: text::csv(&CSV, &entries.iter().map(csv_row).collect::<Vec<_>>()),
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

fn subtitle(plan: &VariationPlan) -> String {
    let count = match (plan.variations.len() / plan.seeds.max(1)).saturating_sub(1) {
        1 => "one variation".to_owned(),
        count => format!("{count} variations"),
    };
    let mut text = format!(
        "one recipe and {count} of it, as in the paper's table 3; values are those of each run's best validation"
    );
    if plan.seeds > 1 {
        text += &format!("; mean ± standard deviation of {} seeds", plan.seeds);
    }
    let remark = |group: VariationGroup| {
        group.remark().filter(|_| plan.variations.iter().any(|run| run.group == Some(group)))
    };
    for remark in VariationGroup::ALL.into_iter().filter_map(remark) {
        text += &format!(". {remark}");
    }
    text
}

fn variations_table(entries: &[VariationResult]) -> Table {
    let measured = columns(entries);
    let mut headings = vec!["variation", "what differs", "parameters, M"];
    headings.extend(measured.iter().map(|(_, heading, _)| *heading));
    headings.extend(["steps", "time, min", "ended because"]);
    let line = |runs: Runs<'_>| {
        let first = &runs[0];
        let mut cells = vec![
            first.name.clone(),
            if first.group.is_none() { "the recipe unchanged".to_owned() } else { first.changes.clone() },
            format!("{:.2}", first.parameters as f64 / 1e6),
        ];
        cells.extend(measured.iter().map(|&column| value(runs, column)));
        let seconds: f64 = runs.iter().map(|run| run.seconds).sum();
        cells.extend([distinct(runs, |run| run.step.to_string()), format!("{:.1}", seconds / 60.0)]);
        cells.push(distinct(runs, |run| run.ending.clone()));
        cells
    };
    table("Variations", &headings, by_variation(entries).map(line).collect())
}

/// A text of every run, without repeating equal ones.
fn distinct(runs: Runs<'_>, text: impl Fn(&VariationResult) -> String) -> String {
    let mut texts: Vec<String> = runs.iter().map(text).collect();
    texts.dedup();
    texts.join("; ")
}

/// The accuracy of classifiers by text length, over all seeds; `None` for other tasks.
fn by_length(entries: &[VariationResult]) -> Option<Table> {
    let groups = &entries.iter().find(|entry| !entry.by_length.is_empty())?.by_length;
    let heading = |group: &LengthAccuracy| format!("{} to {} tokens", group.shortest, group.longest);
    let headings: Vec<String> = groups.iter().map(heading).collect();
    let columns: Vec<&str> =
        std::iter::once("variation").chain(headings.iter().map(String::as_str)).collect();
    // A model with fewer positions accepts fewer texts, so it cannot be compared.
    let texts = |group: &LengthAccuracy| (group.shortest, group.longest, group.texts);
    let is_measured = |run: &VariationResult| run.by_length.iter().map(texts).eq(groups.iter().map(texts));
    let line = |runs: Runs<'_>| -> Vec<String> {
        let percent = |index: usize| {
            let of_length = || runs.iter().map(|run| &run.by_length[index]);
            let correct: usize = of_length().map(|group| group.correct).sum();
            let texts: usize = of_length().map(|group| group.texts).sum();
            format!("{:.1}", 100.0 * correct as f64 / texts.max(1) as f64)
        };
        std::iter::once(runs[0].name.clone()).chain((0..groups.len()).map(percent)).collect()
    };
    let measured = by_variation(entries).filter(|runs| runs.iter().all(is_measured));
    Some(table("Accuracy by the length of the text, %", &columns, measured.map(line).collect()))
}

fn skipped_table(skipped: &[SkippedVariation]) -> Table {
    let line = |variation: &SkippedVariation| vec![variation.name.clone(), variation.reason.clone()];
    table("Left out", &["variation", "reason"], skipped.iter().map(line).collect())
}

/// A line of the CSV file, in the order of [`CSV`].
fn csv_row(entry: &VariationResult) -> Vec<String> {
    let plain = |measure: Measure| entry.value(measure).map_or_else(String::new, |value| value.to_string());
    vec![
        entry.name.clone(),
        entry.seed.to_string(),
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

/// Perplexity and the other metrics of the task.
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

/// The mean over the best validations of all runs, and the standard deviation if there are several runs.
fn spread(runs: Runs<'_>, (measure, _, factor): Column) -> Option<(f64, Option<f64>)> {
    let values: Vec<f64> = runs.iter().filter_map(|run| Some(factor * run.value(measure)?)).collect();
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (!values.is_empty()).then(|| (mean, (values.len() > 1).then(|| (squares / (count - 1.0)).sqrt())))
}

fn value(runs: Runs<'_>, column: Column) -> String {
    match spread(runs, column) {
        None => text::MISSING.to_owned(),
        Some((mean, None)) => format!("{mean:.2}"),
        Some((mean, Some(deviation))) => {
            let digits = digits(mean);
            format!("{mean:.digits$} ± {deviation:.digits$}")
        }
    }
}

/// The number of decimals of a mean with a deviation: one more for small values, such as perplexities near 1.
fn digits(mean: f64) -> usize {
    if mean.abs() < 10.0 { 3 } else { 2 }
}

/// A mean, with its deviation and the name of the variation as a note.
fn fact(name: &str, runs: Runs<'_>, column: Column) -> Option<Fact> {
    let (mean, deviation) = spread(runs, column)?;
    let digits = deviation.map_or(2, |_| digits(mean));
    let spread = deviation.map_or_else(String::new, |deviation| format!("± {deviation:.digits$}, "));
    Some(Fact::new(name, format!("{mean:.digits$}")).with_note(format!("{spread}{}", runs[0].name)))
}

/// The results of the base and of the best variations.
fn results(entries: &[VariationResult]) -> Vec<Fact> {
    let mut facts = Vec::new();
    for column in columns(entries) {
        let heading = column.1;
        if let Some(base) = by_variation(entries).find(|runs| runs[0].group.is_none()) {
            facts.extend(fact(heading, base, column));
        }
        let sign = if column == PERPLEXITY { -1.0 } else { 1.0 };
        let scored = by_variation(entries).filter_map(|runs| Some((sign * spread(runs, column)?.0, runs)));
        if let Some((_, best)) = scored.max_by(|a, b| a.0.total_cmp(&b.0)) {
            facts.extend(fact(&format!("best {heading}"), best, column));
        }
    }
    facts
}

/// All variations together, then each group with the base.
fn charts(entries: &[VariationResult]) -> Vec<LineChart> {
    let mut charts = Vec::new();
    for column in columns(entries) {
        charts.push(chart("all variations", column, by_variation(entries)));
    }
    for group in VariationGroup::ALL {
        let members = || by_variation(entries).filter(|runs| runs[0].group.is_none_or(|of| of == group));
        if members().any(|runs| runs[0].group.is_some()) {
            charts.push(chart(group.name(), PERPLEXITY, members()));
        }
    }
    charts
}

fn chart<'a>(
    title: &str,
    (measure, heading, factor): Column,
    variations: impl Iterator<Item = Runs<'a>>,
) -> LineChart {
    let line = |runs: Runs<'_>| Series {
        name: runs[0].name.clone(),
        points: mean_curve(runs, measure).into_iter().map(|(step, value)| (step, factor * value)).collect(),
        highlight: Highlight::None,
    };
    LineChart {
        title: format!("Validation {heading}: {title}"),
        x_label: "step".to_owned(),
        scale: if measure == PERPLEXITY.0 { Scale::Log } else { Scale::Linear },
        series: variations.map(line).collect(),
        ..LineChart::default()
    }
}

/// The mean curve of the runs, at the steps that all of them have.
fn mean_curve(runs: Runs<'_>, measure: Measure) -> Vec<(f64, f64)> {
    let curves: Vec<Vec<(f64, f64)>> = runs.iter().map(|run| run.curve(measure)).collect();
    let at =
        |step: f64, curve: &Vec<(f64, f64)>| curve.iter().find(|point| point.0 == step).map(|point| point.1);
    let mean = |&(step, _): &(f64, f64)| {
        let values: Option<Vec<f64>> = curves.iter().map(|curve| at(step, curve)).collect();
        values.map(|values| (step, values.iter().sum::<f64>() / values.len() as f64))
    };
    curves.first().map_or_else(Vec::new, |first| first.iter().filter_map(mean).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::log::Record;

    fn result(name: &str, seed: u64, perplexities: [f64; 2]) -> VariationResult {
        let record = |(step, value): (u64, f64)| Record::new(step, 1.0).with(Measure::ValidPerplexity, value);
        let validations = [1, 2].into_iter().zip(perplexities).map(record).collect::<Vec<_>>();
        VariationResult {
            group: (name != "base").then_some(VariationGroup::Norm),
            name: name.to_owned(),
            run: format!("{name}-seed-{seed}"),
            seed,
            changes: String::new(),
            parameters: 1,
            step: 2,
            seconds: 60.0,
            ending: "all steps are done".to_owned(),
            best: validations.last().cloned(),
            validations,
            by_length: Vec::new(),
        }
    }

    #[test]
    fn runs_with_several_seeds_are_one_row_with_mean_and_deviation() {
        let entries = [
            result("base", 1, [9.0, 3.0]),
            result("base", 2, [7.0, 5.0]),
            result("norm-pre-layer", 1, [8.0, 6.0]),
        ];
        let table = variations_table(&entries);
        let cells: Vec<&str> = table.rows.iter().map(|row| row[3].as_str()).collect();
        assert_eq!(cells, ["4.000 ± 1.414", "6.00"]);
        assert_eq!(table.rows[0][5], "2.0", "the total time of both runs");
        assert_eq!(mean_curve(&entries[..2], Measure::ValidPerplexity), [(1.0, 8.0), (2.0, 4.0)]);
        assert_eq!(results(&entries)[1], Fact::new("best perplexity", "4.000").with_note("± 1.414, base"));
    }
}
