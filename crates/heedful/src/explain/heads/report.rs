//! The result of a survey, as a text table, CSV and JSON.

use serde::{Serialize, Serializer};

use super::agreement::Agreement;
use super::examples::HeadExample;
use super::statistics::HeadStatistics;
use crate::layers::{AttentionRole, LayerName};
use crate::models::HeadName;
use crate::plot::Table;

/// Statistics of all heads of a model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeadReport {
    /// The number of sentence pairs.
    pub sentences: u64,
    /// All heads: encoder self attention, decoder self attention, cross attention.
    pub heads: Vec<HeadRow>,
    /// The cross attention layers, if reference alignments were given.
    pub layers: Vec<LayerRow>,
}

/// One head.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeadRow {
    /// `encoder.0.self.3`.
    #[serde(rename = "head", serialize_with = "as_text")]
    pub name: HeadName,
    /// Its attention statistics.
    #[serde(flatten)]
    pub statistics: HeadStatistics,
    /// Agreement with the reference alignments; only for cross attention.
    #[serde(flatten)]
    pub agreement: Option<Agreement>,
    /// The sentences in which it attends most sharply, sharpest first.
    pub examples: Vec<HeadExample>,
}

/// The mean over the heads of one cross attention layer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LayerRow {
    /// `decoder.0.cross`.
    pub layer: LayerName,
    /// Agreement with the reference alignments.
    #[serde(flatten)]
    pub agreement: Agreement,
}

impl HeadReport {
    /// The report as a text table.
    pub fn table(&self) -> Table {
        let is_aligned = self.heads.iter().any(|row| row.agreement.is_some());
        let mut columns =
            vec!["head", "entropy", "confidence", "distance", "previous", "same", "next", "separator"];
        if is_aligned {
            columns.extend(["precision", "recall", "AER"]);
        }
        let number = |value: f64| format!("{value:.3}");
        let maybe = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), number);
        let agreement = |agreement: Option<Agreement>| {
            [agreement.map(|a| a.precision), agreement.map(|a| a.recall), agreement.map(|a| a.aer)].map(maybe)
        };
        let row = |row: &HeadRow| {
            let HeadStatistics { entropy, confidence, distance, previous, same, next, separator, .. } =
                row.statistics;
            let mut cells = vec![
                row.name.to_string(),
                number(entropy),
                number(confidence),
                format!("{distance:.2}"),
                maybe(previous),
                maybe(same),
                maybe(next),
                number(separator),
            ];
            if is_aligned {
                cells.extend(agreement(row.agreement));
            }
            cells
        };
        let layer = |row: &LayerRow| {
            let mut cells = vec![format!("{}, mean", row.layer)];
            cells.resize(8, "–".to_owned());
            cells.extend(agreement(Some(row.agreement)));
            cells
        };
        Table {
            title: format!("Heads over {} sentences", self.sentences),
            columns: columns.into_iter().map(str::to_owned).collect(),
            rows: self.heads.iter().map(row).chain(self.layers.iter().map(layer)).collect(),
        }
    }

    /// The report as CSV with a header line, in full precision; missing statistics are empty.
    pub fn to_csv(&self) -> String {
        let mut csv =
            "head,queries,entropy,confidence,distance,previous,same,next,separator,precision,recall,aer\n"
                .to_owned();
        let maybe = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
        for HeadRow { name, statistics, agreement, .. } in &self.heads {
            let HeadStatistics { queries, entropy, confidence, distance, previous, same, next, separator } =
                *statistics;
            let values = [
                Some(entropy),
                Some(confidence),
                Some(distance),
                previous,
                same,
                next,
                Some(separator),
                agreement.map(|agreement| agreement.precision),
                agreement.map(|agreement| agreement.recall),
                agreement.map(|agreement| agreement.aer),
            ];
            csv += &format!("{name},{queries},{}\n", values.map(maybe).join(","));
        }
        for LayerRow { layer, agreement: Agreement { precision, recall, aer } } in &self.layers {
            csv += &format!("{layer},,,,,,,,,{precision},{recall},{aer}\n");
        }
        csv
    }

    /// The rows of one kind of attention.
    pub(super) fn of_kind(&self, kind: AttentionRole) -> impl Iterator<Item = &HeadRow> {
        self.heads.iter().filter(move |row| row.name.role == kind)
    }
}

fn as_text<S: Serializer>(name: &HeadName, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(name)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn example() -> HeadReport {
        let statistics =
            HeadStatistics { queries: 4, entropy: 1.5, same: Some(0.25), ..HeadStatistics::default() };
        let agreement = Agreement { precision: 0.5, recall: 0.75, aer: 0.4 };
        let row = |name: &str, agreement| HeadRow {
            name: name.parse().expect("a head"),
            statistics,
            agreement,
            examples: Vec::new(),
        };
        HeadReport {
            sentences: 2,
            heads: vec![
                row("encoder.0.self.0", None),
                row("decoder.0.cross.0", Some(agreement)),
                row("decoder.0.cross.1", Some(agreement)),
            ],
            layers: vec![LayerRow { layer: "decoder.0.cross".parse().expect("a layer"), agreement }],
        }
    }

    #[test]
    fn every_table_row_has_a_cell_for_each_column() {
        let table = example().table();
        assert_eq!(table.columns.len(), 11);
        assert!(table.rows.iter().all(|row| row.len() == 11), "{table:?}");
        assert_eq!(table.rows[0][..2], ["encoder.0.self.0", "1.500"]);
        assert_eq!(table.rows[3][8..], ["0.500", "0.750", "0.400"]);
        let columns = |line: &str| line.split(',').count();
        assert!(example().to_csv().lines().all(|line| columns(line) == 12), "{}", example().to_csv());
    }

    #[test]
    fn json_has_one_flat_object_per_head() {
        let json = serde_json::to_value(example()).expect("numbers and text");
        assert_eq!(json["heads"][1]["head"], "decoder.0.cross.0");
        assert_eq!(json["layers"][0]["layer"], "decoder.0.cross");
        assert_eq!(json["heads"][1]["entropy"], 1.5);
        assert_eq!(json["heads"][1]["aer"], 0.4);
        assert!(json["heads"][0].get("aer").is_none());
    }
}
