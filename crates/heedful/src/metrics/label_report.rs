//! How well labels were predicted, as numbers, text, JSON and tables.
//!
//! ```text
//! accuracy, macro, micro and weighted F1; precision, recall and F1 of each label; the confusion matrix
//! ```
//!
//! With one label for each text, micro F1 is the accuracy. Weighted F1 is the mean of the labels' F1, each as often as the label
//! occurs. All are those of scikit-learn, over the labels that occur, actual or predicted.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::classification::ConfusionMatrix;
use crate::plot::Table;

/// The most labels of a report: its matrix has the square of them.
const MOST_LABELS: usize = 2048;
/// The most labels whose confusion matrix is shown as a table.
const MOST_SHOWN: usize = 24;

/// Labels and how they were predicted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelReport {
    names: Vec<String>,
    confusion: ConfusionMatrix,
}

/// Labels that cannot be reported on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LabelReportError {
    /// There is no text.
    #[error("there is no label to compare: give at least one")]
    Empty,
    /// Not as many predictions as labels.
    #[error("{predicted} predictions for {actual} labels: give one for each")]
    Lengths {
        /// How many labels there are.
        actual: usize,
        /// How many predictions.
        predicted: usize,
    },
    /// There are too many different labels.
    #[error("there are more than {MOST_LABELS} different labels: are these labels, or texts?")]
    TooMany,
}

impl crate::error::Cause for LabelReportError {}

impl LabelReport {
    /// Of a matrix over the labels with these names.
    ///
    /// # Panics
    /// If the matrix has another number of labels.
    pub fn new(names: &[String], confusion: ConfusionMatrix) -> LabelReport {
        assert_eq!(names.len(), confusion.labels(), "LabelReport: names of all labels");
        LabelReport { names: names.to_vec(), confusion }
    }

    /// Compares predictions with labels, text by text. An empty prediction is a text without one, and wrong.
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
            if known.len() > MOST_LABELS {
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

    /// How often each was predicted for each.
    pub fn confusion(&self) -> &ConfusionMatrix {
        &self.confusion
    }

    /// The numbers as JSON, in per cent with so many decimals.
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

    /// The lines of a report as text.
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

    /// Scores by label, and the confusion matrix if it is small enough to be read; `set` says whose they are.
    pub fn tables(&self, set: &str, digits: usize) -> Vec<Table> {
        let count = self.names.len();
        let scores = (0..count).map(|label| {
            let score = self.confusion.score(label);
            let share = |value: f64| format!("{:.digits$} %", 100.0 * value);
            let name = self.shown(label);
            vec![name, score.texts.to_string(), share(score.precision), share(score.recall), share(score.f1)]
        });
        let mut tables = vec![Table {
            title: format!("Labels {set}"),
            columns: ["label", "texts", "precision", "recall", "F1"].map(str::to_owned).to_vec(),
            rows: scores.collect(),
        }];
        if count <= MOST_SHOWN {
            let row = |actual: usize| {
                let counts = (0..count).map(|predicted| self.confusion.count(actual, predicted).to_string());
                [self.shown(actual)].into_iter().chain(counts).collect()
            };
            let predicted = (0..count).map(|label| format!("predicted {}", self.shown(label)));
            tables.push(Table {
                title: format!("Confusion matrix {set}"),
                columns: ["true label".to_owned()].into_iter().chain(predicted).collect(),
                rows: (0..count).map(row).collect(),
            });
        }
        tables
    }

    /// A label's name; that of a text without a prediction is empty.
    fn shown(&self, label: usize) -> String {
        if self.names[label].is_empty() { "(none)".to_owned() } else { self.names[label].clone() }
    }
}

/// Rounded as text is.
fn rounded(value: f64, digits: usize) -> f64 {
    format!("{value:.digits$}").parse().expect("a number that was just written")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `tests/golden/labels.py` made these with scikit-learn 1.9.
    #[test]
    fn numbers_are_those_of_scikit_learn() {
        let golden: Value =
            serde_json::from_str(include_str!("../../tests/golden/labels.json")).expect("JSON");
        for case in golden.as_array().expect("cases") {
            let labels = |key: &str| -> Vec<String> {
                let list = case[key].as_array().expect("labels").iter();
                list.map(|label| label.as_str().expect("a label").to_owned()).collect()
            };
            let report = LabelReport::of(&labels("actual"), &labels("predicted")).expect("labels");
            let close = |found: f64, key: &str| {
                let wanted = case[key].as_f64().expect("a number");
                assert!((found - wanted).abs() < 1e-12, "{key}: {found}, not {wanted}");
            };
            let confusion = report.confusion();
            close(confusion.accuracy(), "accuracy");
            close(confusion.macro_f1(), "macro_f1");
            close(confusion.accuracy(), "micro_f1");
            close(confusion.weighted_f1(), "weighted_f1");
            for (label, wanted) in case["labels"].as_array().expect("labels").iter().enumerate() {
                assert_eq!(wanted["label"], report.names()[label].as_str());
                let score = confusion.score(label);
                for (found, key) in
                    [(score.precision, "precision"), (score.recall, "recall"), (score.f1, "f1")]
                {
                    let wanted = wanted[key].as_f64().expect("a number");
                    assert!((found - wanted).abs() < 1e-12, "{key} of {label}: {found}, not {wanted}");
                }
                assert_eq!(wanted["texts"], score.texts);
            }
            let counts = report.to_json(2)["confusion"]["counts"].clone();
            assert_eq!(counts, case["confusion"]);
        }
    }

    #[test]
    fn what_cannot_be_compared_is_refused() {
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
