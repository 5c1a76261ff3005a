//! A report on predicted labels, as values, text, JSON and tables.
//!
//! ```text
//! accuracy, macro, micro and weighted F1; precision, recall and F1 of each label; the confusion matrix
//! ```
//!
//! With one label per text, micro F1 equals the accuracy. Weighted F1 is the mean of the labels' F1, weighted
//! by their frequency. All values match scikit-learn's, over the labels that occur, actual or predicted.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::classification::ConfusionMatrix;
use crate::plot::Table;

/// The maximum number of labels: the matrix grows with its square.
const MAX_LABELS: usize = 2048;
/// The maximum number of labels for which the confusion matrix is shown as a table.
const MAX_LABELS_SHOWN: usize = 24;

/// Labels with the confusion matrix of their predictions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelReport {
    names: Vec<String>,
    confusion: ConfusionMatrix,
}

/// Labels for which no report can be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LabelReportError {
    /// There are no texts.
    #[error("there are no labels to compare: give at least one")]
    Empty,
    /// The numbers of predictions and labels differ.
    #[error("{predicted} predictions for {actual} labels: give one prediction per label")]
    Lengths {
        /// The number of labels.
        actual: usize,
        /// The number of predictions.
        predicted: usize,
    },
    /// There are too many different labels.
    #[error("there are more than {MAX_LABELS} different labels: are these labels, or texts?")]
    TooMany,
}

impl crate::error::Cause for LabelReportError {}

impl LabelReport {
    /// The report of a confusion matrix over the labels with these names.
    ///
    /// # Panics
    /// If the matrix has a different number of labels.
    pub fn new(names: &[String], confusion: ConfusionMatrix) -> LabelReport {
        assert_eq!(names.len(), confusion.labels(), "LabelReport: one name per label is needed");
        LabelReport { names: names.to_vec(), confusion }
    }

    /// Compares predictions with labels, text by text. An empty string means that nothing was predicted,
    /// which is wrong.
    pub fn of<S: AsRef<str>>(actual: &[S], predicted: &[S]) -> Result<LabelReport, LabelReportError> {
        if actual.is_empty() {
            return Err(LabelReportError::Empty);
        }
        if actual.len() != predicted.len() {
            return Err(LabelReportError::Lengths { actual: actual.len(), predicted: predicted.len() });
        }
        let mut known: BTreeSet<&str> = BTreeSet::new();
        for label in actual.iter().chain(predicted) {
            known.insert(label.as_ref());
            if known.len() > MAX_LABELS {
                return Err(LabelReportError::TooMany);
            }
        }
        let names: Vec<&str> = known.into_iter().collect();
        let index = |label: &S| names.binary_search(&label.as_ref()).expect("all were collected") as u32;
        let mut confusion = ConfusionMatrix::new(names.len());
        for (actual, predicted) in actual.iter().zip(predicted) {
            confusion.add(index(actual), index(predicted));
        }
        Ok(LabelReport { names: names.into_iter().map(str::to_owned).collect(), confusion })
    }

    /// The names of the labels, by index.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The confusion matrix.
    pub fn confusion(&self) -> &ConfusionMatrix {
        &self.confusion
    }

    /// The report as JSON, in per cent with the given number of decimals.
    pub fn to_json(&self, digits: usize) -> Value {
        let percent = |share: f64| rounded(100.0 * share, digits);
        let labels: Vec<Value> = (0..self.names.len())
            .map(|label| {
                let score = self.confusion.score(label);
                json!({
                    "label": self.names[label],
                    "texts": score.texts,
                    "precision": percent(score.precision),
                    "recall": percent(score.recall),
                    "f1": percent(score.f1),
                })
            })
            .collect();
        let row = |actual: usize| -> Vec<u64> {
            (0..self.names.len()).map(|predicted| self.confusion.count(actual, predicted)).collect()
        };
        json!({
            "texts": self.confusion.texts(),
            "accuracy": { "score": percent(self.confusion.accuracy()) },
            "f1": {
                "macro": percent(self.confusion.macro_f1()),
                "micro": percent(self.confusion.accuracy()),
                "weighted": percent(self.confusion.weighted_f1()),
                "labels": labels,
            },
            "confusion": { "labels": self.names, "counts": (0..self.names.len()).map(row).collect::<Vec<_>>() },
        })
    }

    /// The report as text.
    pub fn to_text(&self, digits: usize) -> String {
        let percent = |share: f64| format!("{:.digits$}", 100.0 * share);
        let mut text = format!(
            "accuracy = {}\nmacro F1 = {}\nmicro F1 = {}\nweighted F1 = {}\n",
            percent(self.confusion.accuracy()),
            percent(self.confusion.macro_f1()),
            percent(self.confusion.accuracy()),
            percent(self.confusion.weighted_f1())
        );
        for table in self.tables("of the texts", digits) {
            text += &format!("\n{}", table.to_markdown());
        }
        text
    }

    /// Scores by label, and the confusion matrix if it is small enough; `set` describes the texts, for the
    /// titles.
    pub fn tables(&self, set: &str, digits: usize) -> Vec<Table> {
        let count = self.names.len();
        let scores = (0..count).map(|label| {
            let score = self.confusion.score(label);
            let share = |value: f64| format!("{:.digits$} %", 100.0 * value);
            let name = self.display_name(label);
            vec![name, score.texts.to_string(), share(score.precision), share(score.recall), share(score.f1)]
        });
        let mut tables = vec![Table {
            title: format!("Labels {set}"),
            columns: ["label", "texts", "precision", "recall", "F1"].map(str::to_owned).to_vec(),
            rows: scores.collect(),
        }];
        if count <= MAX_LABELS_SHOWN {
            let row = |actual: usize| {
                let counts = (0..count).map(|predicted| self.confusion.count(actual, predicted).to_string());
                [self.display_name(actual)].into_iter().chain(counts).collect()
            };
            let predicted = (0..count).map(|label| format!("predicted {}", self.display_name(label)));
            tables.push(Table {
                title: format!("Confusion matrix {set}"),
                columns: ["true label".to_owned()].into_iter().chain(predicted).collect(),
                rows: (0..count).map(row).collect(),
            });
        }
        tables
    }

    /// A label's name, or `(none)` for the empty label of texts without a prediction.
    fn display_name(&self, label: usize) -> String {
        if self.names[label].is_empty() { "(none)".to_owned() } else { self.names[label].clone() }
    }
}

/// Rounded as formatting rounds.
fn rounded(value: f64, digits: usize) -> f64 {
    format!("{value:.digits$}").parse().expect("a number that was just written")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `tests/golden/labels.py` computed the expected values with scikit-learn 1.9.
    #[test]
    fn scores_match_scikit_learn() {
        let golden: Value =
            serde_json::from_str(include_str!("../../tests/golden/labels.json")).expect("JSON");
        for case in golden.as_array().expect("cases") {
            let labels = |key: &str| -> Vec<String> {
                let list = case[key].as_array().expect("labels").iter();
                list.map(|label| label.as_str().expect("a label").to_owned()).collect()
            };
            let report = LabelReport::of(&labels("actual"), &labels("predicted")).expect("labels");
            let close = |found: f64, key: &str| {
                let expected = case[key].as_f64().expect("a number");
                assert!((found - expected).abs() < 1e-12, "{key}: {found}, not {expected}");
            };
            let confusion = report.confusion();
            close(confusion.accuracy(), "accuracy");
            close(confusion.macro_f1(), "macro_f1");
            close(confusion.accuracy(), "micro_f1");
            close(confusion.weighted_f1(), "weighted_f1");
            for (label, expected) in case["labels"].as_array().expect("labels").iter().enumerate() {
                assert_eq!(expected["label"], report.names()[label].as_str());
                let score = confusion.score(label);
                for (found, key) in
                    [(score.precision, "precision"), (score.recall, "recall"), (score.f1, "f1")]
                {
                    let expected = expected[key].as_f64().expect("a number");
                    assert!((found - expected).abs() < 1e-12, "{key} of {label}: {found}, not {expected}");
                }
                assert_eq!(expected["texts"], score.texts);
            }
            let counts = report.to_json(2)["confusion"]["counts"].clone();
            assert_eq!(counts, case["confusion"]);
        }
    }

    #[test]
    fn unusable_labels_are_errors() {
        assert_eq!(LabelReport::of::<&str>(&[], &[]), Err(LabelReportError::Empty));
        let lengths = LabelReportError::Lengths { actual: 2, predicted: 1 };
        assert_eq!(LabelReport::of(&["a", "b"], &["a"]), Err(lengths));
        let texts: Vec<String> = (0..3000).map(|text| text.to_string()).collect();
        assert_eq!(LabelReport::of(&texts, &texts), Err(LabelReportError::TooMany));
    }

    #[test]
    fn a_text_without_a_prediction_is_wrong_and_shown() {
        let report = LabelReport::of(&["a", "a", "b"], &["a", "", "b"]).expect("labels");
        let text = report.to_text(1);
        assert!(text.starts_with("accuracy = 66.7\nmacro F1 = 55.6\n"), "{text}");
        assert!(text.contains("(none)") && text.contains("predicted (none)"), "{text}");
    }
}
