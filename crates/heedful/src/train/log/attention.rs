//! One line of `attention.jsonl`: the attention weights for one sentence. The sentence is the same at every
//! validation, so that the lines show how attention develops during training.
//!
//! ```text
//! {"step":500,"layer":"decoder layer 2, …","rows":["▁an",…,"<eos>"],"columns":["一",…],"weights":[[0.912,…],…],
//!  "layers":[{"layer":"encoder layer 0, …","rows":[…],"columns":[…],"heads":["AAD//w…",…]},…]}
//! ```
//!
//! `weights` are those of the last layer, averaged over its heads; `rows` are the queries and `columns` the
//! keys. `layers` has every head of every layer: the weights in row-major order as 16-bit little-endian
//! integers (65535 is 1), in base64. Long sentences and large models are truncated to the first tokens: a
//! line has at most 2^15 weights of heads, about 90 kB.

use serde::{Deserialize, Serialize};

use super::StepLine;
use crate::explain::packed_weights;
use crate::plot::AttentionGrid;

/// Maximum number of tokens, to limit a line to a few kilobytes.
const MAX_TOKENS: usize = 48;
/// Maximum number of weights of all heads in one line.
const MAX_WEIGHTS: usize = 1 << 15;
/// Weights are rounded to three decimals, enough for a picture.
const ROUNDED: f32 = 1000.0;

/// The attention weights at one step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AttentionRecord {
    /// Updates so far.
    pub step: u64,
    /// The name of the layer.
    pub layer: String,
    /// The query tokens.
    pub rows: Vec<String>,
    /// The key tokens.
    pub columns: Vec<String>,
    /// One row of weights for each query, rounded.
    pub weights: Vec<Vec<f64>>,
    /// Every head of every layer; empty in files of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<LayerRecord>,
}

/// The heads of one layer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LayerRecord {
    /// The name of the layer.
    pub layer: String,
    /// The query tokens.
    pub rows: Vec<String>,
    /// The key tokens.
    pub columns: Vec<String>,
    /// One matrix for each head, packed.
    pub heads: Vec<String>,
}

impl AttentionRecord {
    /// All layers of a model; `None` if the last one has no heads.
    pub fn of(step: u64, grids: &[AttentionGrid]) -> Option<AttentionRecord> {
        let grid = grids.last()?;
        let (heads, width) = (grid.heads.len(), grid.columns.len());
        if heads == 0 || width == 0 {
            return None;
        }
        let weight = |row: usize, column: usize| {
            let sum: f32 = grid.heads.iter().map(|head| head[row * width + column]).sum();
            // JSON has no NaN: the weights of a diverged model are written as 0.
            f64::from((sum / heads as f32 * ROUNDED).round().max(0.0)) / f64::from(ROUNDED)
        };
        let (rows, columns) = (grid.rows.len().min(MAX_TOKENS), width.min(MAX_TOKENS));
        Some(AttentionRecord {
            step,
            layer: grid.title.clone(),
            rows: grid.rows[..rows].to_vec(),
            columns: grid.columns[..columns].to_vec(),
            weights: (0..rows).map(|row| (0..columns).map(|column| weight(row, column)).collect()).collect(),
            layers: AttentionGrid::bounded(grids, MAX_TOKENS, MAX_WEIGHTS).into_iter().map(layer).collect(),
        })
    }
}

fn layer(grid: AttentionGrid) -> LayerRecord {
    let heads = grid.heads.iter().map(|head| packed_weights(head)).collect();
    LayerRecord { layer: grid.title, rows: grid.rows, columns: grid.columns, heads }
}

impl StepLine for AttentionRecord {
    fn step(&self) -> u64 {
        self.step
    }

    fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers and text")
    }

    fn from_json(line: &str) -> Result<AttentionRecord, String> {
        let record: AttentionRecord = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let has_width = |row: &Vec<f64>| row.len() == record.columns.len();
        if record.weights.len() != record.rows.len() || !record.weights.iter().all(has_width) {
            return Err("its weights are not rows × columns".to_owned());
        }
        Ok(record)
    }
}

#[cfg(test)]
mod tests {
    use super::super::AttentionFile;
    use super::*;

    fn grid(heads: Vec<Vec<f32>>) -> AttentionGrid {
        let text = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        AttentionGrid {
            title: "cross".to_owned(),
            heads,
            rows: text(&["an", "<eos>"]),
            columns: text(&["一", "车"]),
        }
    }

    #[test]
    fn the_last_layer_is_averaged_and_every_head_is_included() {
        let last = grid(vec![vec![1.0, 0.0, 0.5, 0.5], vec![0.0, 1.0, 0.33333, 0.66667]]);
        let first = AttentionGrid { title: "encoder".to_owned(), ..grid(vec![vec![0.0, 1.0, 1.0, 0.0]]) };
        let record = AttentionRecord::of(7, &[first, last]).expect("there are heads");
        assert_eq!(
            record.to_json(),
            concat!(
                r#"{"step":7,"layer":"cross","rows":["an","<eos>"],"columns":["一","车"],"weights":[[0.5,0.5],[0.417,0.583]],"#,
                r#""layers":[{"layer":"encoder","rows":["an","<eos>"],"columns":["一","车"],"heads":["AAD/////AAA="]},"#,
                r#"{"layer":"cross","rows":["an","<eos>"],"columns":["一","车"],"heads":["//8AAACAAIA=","AAD//1VVqqo="]}]}"#
            )
        );
        assert_eq!(AttentionRecord::from_json(&record.to_json()), Ok(record));
        assert_eq!(AttentionRecord::of(7, &[grid(Vec::new())]), None);
        assert_eq!(AttentionRecord::of(7, &[]), None);
    }

    #[test]
    fn a_line_of_a_large_model_is_bounded() {
        let tokens: Vec<String> = (0..200).map(|token| token.to_string()).collect();
        let large = AttentionGrid {
            title: "encoder".to_owned(),
            heads: vec![vec![0.005; 200 * 200]; 16],
            rows: tokens.clone(),
            columns: tokens,
        };
        let record = AttentionRecord::of(1, &vec![large; 18]).expect("there are heads");
        assert_eq!((record.layers.len(), record.layers[0].heads.len()), (18, 16));
        assert_eq!(record.layers[17].rows.len(), 10);
        assert!(record.to_json().len() < 130_000, "{}", record.to_json().len());
    }

    #[test]
    fn a_resumed_run_logs_no_step_twice() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("attention.jsonl");
        let mut file = AttentionFile::create(&path).expect("a new file");
        for step in [5, 10, 15] {
            let record = AttentionRecord::of(step, &[grid(vec![vec![0.25; 4]])]).expect("there are heads");
            file.write(&record).expect("written");
        }
        let (_, kept) = AttentionFile::resume(&path, 12).expect("resumed");
        assert_eq!(kept.iter().map(|record| record.step).collect::<Vec<_>>(), [5, 10]);
        assert_eq!(super::super::read_attention(&path).expect("readable"), kept);
    }

    #[test]
    fn weights_of_another_shape_are_rejected() {
        let line = r#"{"step":1,"layer":"","rows":["a"],"columns":["b"],"weights":[[1,2]]}"#;
        assert!(AttentionRecord::from_json(line).is_err());
    }
}
