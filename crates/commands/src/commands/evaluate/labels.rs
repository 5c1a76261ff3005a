//! Compares predicted with reference labels: accuracy, F1 and the confusion matrix, equal to scikit-learn's.

use std::io::{self, Write};

use anyhow::{Context, Result, bail};
use heedful::metrics::LabelReport;

use super::Arguments;
use super::lines::{self, read_lines};
use super::settings::MetricName;

/// Prints the report, or only the requested metrics.
pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let [reference] = arguments.references.as_slice() else {
        bail!("labels are compared with a single file of labels: give --ref once");
    };
    if arguments.hypotheses == *reference {
        bail!("HYP and --ref name the same file: give the predictions and the labels");
    }
    let predicted = labels(&arguments.hypotheses)?;
    let actual = labels(reference)?;
    super::check_alignment((&arguments.hypotheses, predicted.len()), (reference, actual.len()))?;
    if let Some(line) = actual.iter().position(String::is_empty) {
        bail!("{}, line {}: there is no label", lines::name(reference), line + 1);
    }
    let report = LabelReport::of(&actual, &predicted)
        .with_context(|| format!("{} and {}", lines::name(&arguments.hypotheses), lines::name(reference)))?;
    let digits = usize::from(arguments.width);
    let mut out = io::stdout().lock();
    if arguments.json {
        let mut object = report.to_json(digits);
        if let Some(object) = object.as_object_mut() {
            object.retain(|key, _| is_wanted(arguments, key));
        }
        writeln!(out, "{object}")?;
    } else if arguments.metrics.contains(&MetricName::F1) {
        out.write_all(report.to_text(digits).as_bytes())?;
    } else {
        writeln!(out, "accuracy = {:.digits$}", 100.0 * report.confusion().accuracy())?;
    }
    Ok(out.flush()?)
}

/// The confusion matrix is printed with F1.
fn is_wanted(arguments: &Arguments, key: &str) -> bool {
    match key {
        "accuracy" => arguments.metrics.contains(&MetricName::Accuracy),
        "f1" | "confusion" => arguments.metrics.contains(&MetricName::F1),
        _ => true,
    }
}

/// The label of each line: the text before the first tab, as in the output of `heedful classify` and in
/// training files.
fn labels(path: &std::path::Path) -> Result<Vec<String>> {
    let label = |line: String| line.split('\t').next().unwrap_or_default().trim().to_owned();
    Ok(read_lines(path)?.into_iter().map(label).collect())
}
