//! `--label-text`: compares predicted labels with the given ones.

use std::path::Path;

use anyhow::{Context, Result, bail};
use heedful::metrics::LabelReport;
use heedful::metrics::classification::ConfusionMatrix;
use heedful::plot::{Fact, Report, Status};
use heedful::store::output::OutputFile;
use heedful::tasks::classify::Classifier;

use super::Arguments;

/// Confusion matrix of given and predicted labels.
pub(super) struct Tally {
    names: Vec<String>,
    confusion: ConfusionMatrix,
}

impl Tally {
    pub(super) fn new(classifier: &Classifier) -> Tally {
        let labels = classifier.labels();
        Tally { names: labels.names().to_vec(), confusion: ConfusionMatrix::new(labels.count()) }
    }

    /// Adds a chunk of texts; blank ones do not count.
    pub(super) fn add(&mut self, actual: &[Option<u32>], predicted: &[Option<u32>]) {
        for (actual, predicted) in actual.iter().zip(predicted) {
            if let (Some(actual), Some(predicted)) = (actual, predicted) {
                self.confusion.add(*actual, *predicted);
            }
        }
    }

    pub(super) fn report(self, file: &str) -> Result<LabelReport> {
        if self.confusion.texts() == 0 {
            bail!("{file} has no labelled text: there is nothing to report");
        }
        Ok(LabelReport::new(&self.names, self.confusion))
    }
}

/// The file of `--report`, opened before the work begins.
pub(super) struct ReportFile {
    file: OutputFile,
    format: Format,
}

#[derive(Clone, Copy)]
enum Format {
    Html,
    Json,
    Markdown,
}

impl ReportFile {
    pub(super) fn open(path: &Path, arguments: &Arguments, inputs: &[&Path]) -> Result<ReportFile> {
        let format = match path.extension().and_then(|extension| extension.to_str()) {
            Some("html") => Format::Html,
            Some("json") => Format::Json,
            Some("md") => Format::Markdown,
            _ => bail!("{}: the file name must end in .html, .json or .md", path.display()),
        };
        if [&arguments.output, &arguments.attention.file].into_iter().flatten().any(|other| other == path) {
            bail!("{} is named twice: give --report a different file", path.display());
        }
        Ok(ReportFile { file: arguments.force.open(path, inputs)?, format })
    }

    pub(super) fn finish(self, report: &LabelReport, model: &Path) -> Result<()> {
        let contents = match self.format {
            Format::Html => page(report, model).to_html(),
            Format::Json => format!("{}\n", report.to_json(2)),
            Format::Markdown => report.to_text(2),
        };
        self.file.finish_with(contents.as_bytes()).context("the report could not be saved")
    }
}

fn page(report: &LabelReport, model: &Path) -> Report {
    let confusion = report.confusion();
    let percent = |share: f64| format!("{:.2} %", 100.0 * share);
    Report {
        title: "Labels".to_owned(),
        subtitle: model.display().to_string(),
        status: Status::Absent,
        results: vec![
            Fact::new("texts", confusion.texts()),
            Fact::new("accuracy", percent(confusion.accuracy())),
            Fact::new("macro F1", percent(confusion.macro_f1())),
            Fact::new("weighted F1", percent(confusion.weighted_f1())),
        ],
        tables: report.tables("of the texts", 2),
        ..Report::default()
    }
}
