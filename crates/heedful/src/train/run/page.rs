//! The report of a run: curves of its records, samples, settings.

use std::path::Path;

use heedful_tensor::cpu::{isa, threads};

use super::Ready;
use super::watcher::flops_text;
use crate::data::CorpusReport;
use crate::metrics::Measure;
use crate::plot::{
    AttentionGrid, Fact, HeatMapOptions, Highlight, LineChart, Picture, PictureGroup, Report, Scale, Series,
    SettingsGroup, Status, Table, heat_map_svg,
};
use crate::recipe::{Literal, Recipe, SECTIONS, find_key};
use crate::tasks::ModelConfig;
use crate::train::TimePlan;
use crate::train::log::{AttentionRecord, Record, sample_histories, series};

/// Maximum number of tokens in an attention map, and of cells in all maps: about 3 MB of pictures.
const MAX_TOKENS: usize = 48;
const MAX_CELLS: usize = 1 << 15;

/// Maximum number of pictures of attention over time.
const MOMENTS: usize = 6;

/// The contents of the report besides the logs.
pub(super) struct Page {
    pub(super) title: String,
    pub(super) subtitle: String,
    pub(super) recipe: Recipe,
    /// The plan of a run with a time limit only.
    pub(super) plan: Option<TimePlan>,
    pub(super) corpus: CorpusReport,
    pub(super) attention: Vec<AttentionGrid>,
    /// The tables of the last validation.
    pub(super) tables: Vec<Table>,
}

/// The logs of a run so far.
#[derive(Default)]
pub(super) struct RunLogs {
    pub(super) records: Vec<Record>,
    pub(super) attention: Vec<AttentionRecord>,
}

/// Truncates the attention maps of all layers and heads to the first tokens.
pub(super) fn shown(attention: &[AttentionGrid]) -> Vec<AttentionGrid> {
    AttentionGrid::bounded(attention, MAX_TOKENS, MAX_CELLS)
}

/// The explanation of the FLOPs in the report.
const FLOPS: &str = "three times the products of the forward passes";

/// The whole report.
pub(super) fn page(page: &Page, logs: &RunLogs, status: Status) -> Report {
    let records = &logs.records;
    Report {
        title: page.title.clone(),
        subtitle: page.subtitle.clone(),
        status,
        results: results(records),
        curves: curves(records),
        samples: sample_histories(records),
        attention: page.attention.clone(),
        pictures: over_time(&logs.attention).into_iter().collect(),
        tables: [page.tables.clone(), vec![corpus_table(&page.corpus)]].concat(),
        settings: settings(&page.recipe),
        environment: [environment(&page.recipe), plan_facts(page)].concat(),
    }
}

/// The time limit of a run and its plan.
fn plan_facts(page: &Page) -> Vec<Fact> {
    let time = find_key("training.time").expect("a key").value(&page.recipe);
    let fact =
        |plan: &TimePlan| Fact::new("time", time.to_string().trim_matches('"')).with_note(plan.to_string());
    page.plan.iter().map(fact).collect()
}

/// The title of a run: the name of its folder.
pub(super) fn title(folder: &Path) -> String {
    folder.file_name().map_or_else(|| "Training run".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// The size of the model and of its text.
pub(super) fn subtitle(config: &ModelConfig, ready: &Ready) -> String {
    let millions = ready.parameters as f64 / 1e6;
    format!(
        "{}: {millions:.1} million parameters, {} training {}",
        config.summary(),
        ready.pairs,
        ready.unit()
    )
}

/// Attention at a few steps from the first to the last, side by side; `None` if there are fewer than two.
fn over_time(attention: &[AttentionRecord]) -> Option<PictureGroup> {
    let last = attention.len().checked_sub(1).filter(|&last| last > 0)?;
    let shown = MOMENTS.min(attention.len());
    let picture = |moment: usize| {
        let record = &attention[moment * last / (shown - 1)];
        let weights: Vec<f32> = record.weights.iter().flatten().map(|&weight| weight as f32).collect();
        let options = HeatMapOptions { title: format!("step {}", record.step), ..HeatMapOptions::default() };
        heat_map_svg(&weights, &record.rows, &record.columns, &options)
    };
    let title = format!("Attention over time: {}, mean of its heads", attention[last].layer);
    let pictures = (0..shown).map(picture).map(Picture::from).collect();
    Some(PictureGroup { title, note: String::new(), pictures })
}

fn results(records: &[Record]) -> Vec<Fact> {
    let best = |measure: Measure, better: fn(f64, f64) -> bool| {
        let points = series(records, measure);
        let found = points.into_iter().filter(|(_, value)| value.is_finite());
        found.reduce(|best, point| if better(point.1, best.1) { point } else { best })
    };
    let fact = |name: &str, (step, value): (f64, f64)| {
        Fact::new(name, format!("{value:.2}")).with_note(format!("at step {step}"))
    };
    let mut facts = Vec::new();
    // Only classifiers have a macro F1.
    let macro_f1 = best(Measure::ValidMacroF1, |a, b| a > b);
    let accuracy = if macro_f1.is_some() { "best accuracy" } else { "best token accuracy" };
    let percent = |name: &str, (step, share): (f64, f64)| {
        Fact::new(name, format!("{:.2} %", 100.0 * share)).with_note(format!("at step {step}"))
    };
    facts.extend(macro_f1.map(|point| percent("best macro F1", point)));
    facts.extend(best(Measure::ValidBleu, |a, b| a > b).map(|point| fact("best validation BLEU", point)));
    facts.extend(
        best(Measure::ValidPerplexity, |a, b| a < b).map(|point| fact("lowest validation perplexity", point)),
    );
    for (key, name) in [
        (Measure::ValidWordPerplexity, "lowest perplexity of a word"),
        (Measure::ValidBytePerplexity, "lowest perplexity of a byte"),
    ] {
        facts.extend(best(key, |a, b| a < b).map(|point| fact(name, point)));
    }
    facts.extend(best(Measure::ValidAccuracy, |a, b| a > b).map(|point| percent(accuracy, point)));
    if let Some(last) = records.last() {
        let time = match last.seconds {
            ..90.0 => format!("{:.0} s", last.seconds),
            90.0..5400.0 => format!("{:.1} min", last.seconds / 60.0),
            _ => format!("{:.1} h", last.seconds / 3600.0),
        };
        facts.push(Fact::new("training time", time).with_note(format!("{} steps", last.step)));
        let flops = records.iter().rev().find_map(|record| record.value(Measure::Flops));
        facts.extend(flops.map(|flops| Fact::new("training FLOPs", flops_text(flops)).with_note(FLOPS)));
    }
    facts
}

fn curves(records: &[Record]) -> Vec<LineChart> {
    let line = |name: &str, measure: Measure, highlight| Series {
        name: name.to_owned(),
        points: series(records, measure),
        highlight,
    };
    let chart = |title: &str, scale, series: Vec<Series>| LineChart {
        title: title.to_owned(),
        x_label: "step".to_owned(),
        scale,
        series: series.into_iter().filter(|series| !series.points.is_empty()).collect(),
        ..LineChart::default()
    };
    let charts = vec![
        chart(
            "Loss",
            Scale::Linear,
            vec![
                line("training", Measure::Loss, Highlight::None),
                line("validation", Measure::ValidLoss, Highlight::Lowest),
            ],
        ),
        chart("BLEU", Scale::Linear, vec![line("validation", Measure::ValidBleu, Highlight::Highest)]),
        chart("Macro F1", Scale::Linear, vec![line("validation", Measure::ValidMacroF1, Highlight::Highest)]),
        chart(
            "Perplexity",
            Scale::Log,
            vec![line("validation", Measure::ValidPerplexity, Highlight::Lowest)],
        ),
        chart(
            "Accuracy",
            Scale::Linear,
            vec![
                line("training", Measure::Accuracy, Highlight::None),
                line("validation", Measure::ValidAccuracy, Highlight::Highest),
            ],
        ),
        chart("Learning rate", Scale::Linear, vec![line("rate", Measure::LearningRate, Highlight::Peak)]),
        chart("Gradient norm", Scale::Log, vec![line("norm", Measure::GradientNorm, Highlight::None)]),
        chart(
            "Speed",
            Scale::Linear,
            vec![line("tokens a second", Measure::TokensPerSecond, Highlight::None)],
        ),
    ];
    charts.into_iter().filter(|chart| !chart.series.is_empty()).collect()
}

fn corpus_table(corpus: &CorpusReport) -> Table {
    let row = |line: &str| {
        let (name, count) = line.trim_end().rsplit_once("  ").unwrap_or((line, ""));
        vec![name.trim_end().to_owned(), count.trim().to_owned()]
    };
    Table {
        title: "Training text".to_owned(),
        columns: vec!["what".to_owned(), "count".to_owned()],
        rows: corpus.to_string().lines().map(row).collect(),
    }
}

/// Every key that a run with this recipe uses, with its value.
pub(crate) fn settings(recipe: &Recipe) -> Vec<SettingsGroup> {
    let group = |section: &'static crate::recipe::Section| {
        let used = section.keys.iter().filter(|key| recipe.why_unused(key).is_none());
        let values = used.map(|key| (key.name.to_owned(), shown_value(key.value(recipe))));
        let values = values.filter(|(_, value)| !value.is_empty()).collect();
        SettingsGroup { name: section.name.to_owned(), values }
    };
    SECTIONS.iter().map(group).filter(|group| !group.values.is_empty()).collect()
}

/// Formats a value for the report: strings without quotes, lists separated by commas.
fn shown_value(value: Literal) -> String {
    match value {
        Literal::Text(text) => text,
        Literal::List(items) => items.into_iter().map(shown_value).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// The environment of the training.
pub(crate) fn environment(recipe: &Recipe) -> Vec<Fact> {
    vec![
        Fact::new("heedful", env!("CARGO_PKG_VERSION")),
        Fact::new("instruction set", isa::current()),
        Fact::new("threads", threads::thread_count()),
        Fact::new("matrix products in", recipe.training.compute),
    ]
}
