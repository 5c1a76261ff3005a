//! The measurements as tables and charts.

use heedful_tensor::cpu::{isa, threads};

use super::super::{ComparisonFiles, table, text};
use super::{LayerKind, LayerSettings, Measurement};
use crate::plot::{Fact, Highlight, LineChart, Report, Scale, Series, Status, Table};

const MILLI: f64 = 1e3;
const MEBI: f64 = 1.0 / (1 << 20) as f64;
const COLUMNS: [&str; 11] = [
    "layer",
    "n",
    "d",
    "forward_seconds",
    "forward_and_backward_seconds",
    "peak_bytes",
    "kept_bytes",
    "sequential_steps",
    "longest_path",
    "complexity",
    "repetitions",
];

/// The result files of the comparison.
pub fn files(settings: &LayerSettings, measurements: &[Measurement]) -> ComparisonFiles {
    let mut tables = vec![paper_table(settings)];
    tables.extend(settings.widths.iter().map(|&d| measured_table(measurements, d)));
    let subtitle = format!(
        "one sequence, {} on {}, {}",
        settings.compute,
        isa::current(),
        match threads::thread_count() {
            1 => "1 thread".to_owned(),
            count => format!("{count} threads"),
        }
    );
    let markdown: Vec<String> = tables.iter().map(text::markdown).collect();
    let rows: Vec<Vec<String>> = measurements.iter().map(csv_row).collect();
    ComparisonFiles {
        markdown: format!("# Why self attention: table 1, measured\n\n{subtitle}\n\n{}", markdown.join("\n")),
        csv: text::csv(&COLUMNS, &rows),
        report: Report {
            title: "Why self attention".to_owned(),
            subtitle: format!("Table 1 of the paper, measured: {subtitle}"),
            status: Status::Compared { done: measurements.len(), of: settings.count() },
            results: results(settings, measurements),
            curves: settings.widths.iter().flat_map(|&d| charts(settings, measurements, d)).collect(),
            tables,
            environment: vec![
                Fact::new("heedful", env!("CARGO_PKG_VERSION")),
                Fact::new("instruction set", isa::current()),
                Fact::new("threads", threads::thread_count()),
                Fact::new("matrix products in", settings.compute),
                Fact::new("window r", settings.window),
                Fact::new("kernel size k", settings.kernel_size),
                Fact::new("seconds for each measurement", settings.seconds),
            ],
            ..Report::default()
        },
    }
}

/// The paper's own table.
fn paper_table(settings: &LayerSettings) -> Table {
    let row = |kind: LayerKind| {
        let (steps, path) = match kind {
            LayerKind::SelfAttention => ("O(1)", "O(1)"),
            LayerKind::Restricted => ("O(1)", "O(n/r)"),
            LayerKind::Recurrence => ("O(n)", "O(n)"),
            LayerKind::Convolution => ("O(1)", "O(n/k)"),
            LayerKind::Dilated => ("O(1)", "O(log_k n)"),
        };
        vec![kind.to_string(), kind.complexity().to_owned(), steps.to_owned(), path.to_owned()]
    };
    table(
        &format!("In the paper (here r is {}, k is {})", settings.window, settings.kernel_size),
        &["layer", "complexity", "sequential steps", "longest path"],
        LayerKind::ALL.map(row).to_vec(),
    )
}

/// The measurements at one width.
fn measured_table(measurements: &[Measurement], d: usize) -> Table {
    let row = |found: &Measurement| {
        let Measurement { kind, n, forward, training, peak, kept, .. } = *found;
        vec![
            kind.to_string(),
            n.to_string(),
            format!("{:.3}", forward * MILLI),
            format!("{:.3}", training * MILLI),
            format!("{:.3}", peak as f64 * MEBI),
            format!("{:.3}", kept as f64 * MEBI),
            kind.sequential_steps(n).to_string(),
            found.longest_path.to_string(),
            kind.complexity().to_owned(),
        ]
    };
    table(
        &format!("Measured with d = {d}"),
        &[
            "layer",
            "n",
            "forward, ms",
            "forward + backward, ms",
            "peak, MiB",
            "kept for backward, MiB",
            "sequential steps",
            "longest path",
            "complexity",
        ],
        measurements.iter().filter(|found| found.d == d).map(row).collect(),
    )
}

/// A line of the CSV file, in the order of [`COLUMNS`].
fn csv_row(measurement: &Measurement) -> Vec<String> {
    let &Measurement { kind, n, d, forward, training, peak, kept, longest_path, repetitions } = measurement;
    vec![
        kind.to_string(),
        n.to_string(),
        d.to_string(),
        format!("{forward:.3e}"),
        format!("{training:.3e}"),
        peak.to_string(),
        kept.to_string(),
        kind.sequential_steps(n).to_string(),
        longest_path.to_string(),
        kind.complexity().to_owned(),
        repetitions.to_string(),
    ]
}

/// Self attention compared with recurrence, for the shortest and the longest sequences.
fn results(settings: &LayerSettings, measurements: &[Measurement]) -> Vec<Fact> {
    let time = |kind, n, d| {
        let matches = |found: &&Measurement| (found.kind, found.n, found.d) == (kind, n, d);
        measurements.iter().find(matches).map(|found| found.training)
    };
    let mut facts = Vec::new();
    for &d in &settings.widths {
        for n in [settings.lengths.first(), settings.lengths.last()].into_iter().flatten().copied() {
            let (attention, recurrence) =
                (time(LayerKind::SelfAttention, n, d), time(LayerKind::Recurrence, n, d));
            if let (Some(attention), Some(recurrence)) = (attention, recurrence) {
                let name = format!("n = {n}, d = {d}");
                let note = "time of recurrence relative to self attention, forward and backward";
                facts.push(Fact::new(&name, format!("{:.2} ×", recurrence / attention)).with_note(note));
            }
        }
    }
    facts.dedup();
    facts
}

fn charts(settings: &LayerSettings, measurements: &[Measurement], d: usize) -> Vec<LineChart> {
    let chart = |title: &str, value: fn(&Measurement) -> f64| {
        let line = |kind: LayerKind| Series {
            name: kind.to_string(),
            points: measurements
                .iter()
                .filter(|found| (found.kind, found.d) == (kind, d))
                .map(|found| (found.n as f64, value(found)))
                .collect(),
            highlight: Highlight::None,
        };
        LineChart {
            title: format!("{title}, d = {d}"),
            x_label: format!("tokens n (r = {}, k = {})", settings.window, settings.kernel_size),
            x_scale: Scale::Log,
            scale: Scale::Log,
            series: LayerKind::ALL.map(line).to_vec(),
        }
    };
    vec![
        chart("Forward, ms", |found| found.forward * MILLI),
        chart("Forward and backward, ms", |found| found.training * MILLI),
        chart("Peak memory, MiB", |found| found.peak as f64 * MEBI),
        chart("Kept for backward, MiB", |found| found.kept as f64 * MEBI),
    ]
}
