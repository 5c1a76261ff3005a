//! The explanation of what a model did with one text, as numbers: pieces, probabilities, alignment, every attention weight
//! and, if asked for, every score. The server sends it, `heedful explain` writes it, and the page draws it.
//!
//! ```text
//! {"source": {"text", "tokens": [{"piece", "word"}, …]},
//!  "outputs": [{"text", "score", "log_probability", "tokens": [{"piece", "word", "log_probability"}, …],
//!               "alignment": [[source word, target word], …],
//!               "attention": [{"layer", "kind", "queries", "keys", "heads", "scores"?}, …]}, …]}
//! ```
//!
//! | kind | queries (rows) | keys (columns) |
//! |---|---|---|
//! | encoder | the source's tokens | the source's tokens |
//! | decoder | the output's tokens, each when it is predicted | `<bos>` and the output's tokens without the last |
//! | cross | the output's tokens | the source's tokens |
//! | pooling | the output's one token, a label | the source's tokens |
//!
//! | model | source | outputs | their tokens |
//! |---|---|---|---|
//! | translator | the text | translations | of the translation, and `<eos>` |
//! | classifier | the text, and what the model reads around it: `<bos>` where the first token stands for the text | labels | the label |
//! | language model | empty | the text itself | of the text, and `<eos>` where texts end with it |
//! | masked language model | the text, and what the model reads around it | the text with its gaps filled | the best prediction for each `<mask>` |

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::alternatives::Alternative;
use crate::layers::{AttentionMap, AttentionRole, LayerName};

/// The explanation of a text and its outputs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// The source sentence.
    pub source: ExplainedSource,
    /// The outputs, best first.
    pub outputs: Vec<ExplainedOutput>,
}

/// The source sentence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExplainedSource {
    /// The text as it was given.
    pub text: String,
    /// The tokens that the model reads.
    pub tokens: Vec<ExplainedToken>,
}

/// One output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExplainedOutput {
    /// The text of the output.
    pub text: String,
    /// Its log-probability with the length penalty.
    pub score: f64,
    /// The sum of the log-probabilities of all tokens.
    pub log_probability: f64,
    /// The tokens that the model predicted; those of a translation with `<eos>` at the end.
    pub tokens: Vec<ExplainedToken>,
    /// Pairs of source word and target word, in the order of target words.
    pub alignment: Vec<(usize, usize)>,
    /// One for each attention layer, in the order of computation; empty if it was not requested.
    pub attention: Vec<ExplainedLayer>,
}

/// One token.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExplainedToken {
    /// The token in readable form: spaces as `▁`.
    pub piece: String,
    /// The index of the word that it belongs to; `None` for special tokens, and for white space that no word follows.
    pub word: Option<usize>,
    /// Its log-probability given all tokens before it; only tokens of outputs have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_probability: Option<f64>,
    /// What could have stood in its place, most probable first; only if it was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<Alternative>,
}

/// The weights of one attention layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExplainedLayer {
    /// Its name: `decoder.0.cross`.
    #[serde(rename = "layer")]
    pub name: LayerName,
    /// What attends to what.
    pub kind: ExplainedKind,
    /// Rows of each head's matrix.
    pub queries: usize,
    /// Columns of each head's matrix.
    pub keys: usize,
    /// One matrix for each head.
    pub heads: HeadWeights,
    /// Their scores before the softmax, if they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scores: Option<HeadScores>,
}

/// What attends to what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExplainedKind {
    /// Self attention of the source.
    Encoder,
    /// Self attention of the output.
    Decoder,
    /// Cross attention from the output to the source.
    Cross,
    /// A classifier's attention from its query to the source.
    Pooling,
}

/// The matrices of a layer's heads, in the requested form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum HeadWeights {
    /// Rows of numbers, exactly as the model computed them.
    Rows(Vec<Vec<Vec<f32>>>),
    /// Base 64 of each weight as a 16-bit integer (low byte first), 65535 for 1, row after row: a long sentence has
    /// millions of weights.
    Packed(Vec<String>),
}

/// The scores of a layer's heads before the softmax, in the requested form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum HeadScores {
    /// Rows of numbers; `None` (null) where a mask hides the key, whose score is −∞.
    Rows(Vec<Vec<Vec<Option<f32>>>>),
    /// Base 64 of each score as a 32-bit float (low byte first), row after row; −∞ where a mask hides the key.
    Packed(Vec<String>),
}

/// Whether and how an explanation holds attention weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WeightForm {
    /// Without weights.
    #[default]
    None,
    /// As [`HeadWeights::Rows`].
    Rows,
    /// As [`HeadWeights::Packed`].
    Packed,
}

impl Explanation {
    /// How many attention weights and scores it holds.
    #[doc(hidden)]
    pub fn numbers(&self) -> usize {
        let layers = self.outputs.iter().flat_map(|output| &output.attention);
        let of_layer = |layer: &ExplainedLayer| {
            let kinds = if layer.scores.is_some() { 2 } else { 1 };
            kinds * layer.head_count() * layer.queries * layer.keys
        };
        layers.map(of_layer).sum()
    }
}

impl ExplainedLayer {
    /// A layer's weights, and its scores if they were recorded, for the only sequence of a pass.
    pub(super) fn new(map: &AttentionMap, form: WeightForm) -> ExplainedLayer {
        let (queries, keys) = (map.queries.tokens(), map.keys.tokens());
        let heads = match form {
            WeightForm::Packed => {
                HeadWeights::Packed(map.weights[0].iter().map(|head| packed(head)).collect())
            }
            _ => HeadWeights::Rows(map.weights[0].iter().map(|head| rows(head, keys)).collect()),
        };
        let scores = map.scores.as_ref().map(|scores| match form {
            WeightForm::Packed => {
                HeadScores::Packed(scores[0].iter().map(|head| packed_scores(head)).collect())
            }
            _ => HeadScores::Rows(scores[0].iter().map(|head| score_rows(head, keys)).collect()),
        });
        let (name, kind) = (map.site.layer_name(), map.site.role.into());
        ExplainedLayer { name, kind, queries, keys, heads, scores }
    }
}

impl From<AttentionRole> for ExplainedKind {
    fn from(role: AttentionRole) -> ExplainedKind {
        match role {
            AttentionRole::EncoderSelf => ExplainedKind::Encoder,
            AttentionRole::DecoderSelf => ExplainedKind::Decoder,
            AttentionRole::Cross => ExplainedKind::Cross,
            AttentionRole::Pooling => ExplainedKind::Pooling,
        }
    }
}

impl From<ExplainedKind> for AttentionRole {
    fn from(kind: ExplainedKind) -> AttentionRole {
        match kind {
            ExplainedKind::Encoder => AttentionRole::EncoderSelf,
            ExplainedKind::Decoder => AttentionRole::DecoderSelf,
            ExplainedKind::Cross => AttentionRole::Cross,
            ExplainedKind::Pooling => AttentionRole::Pooling,
        }
    }
}

fn rows(weights: &[f32], keys: usize) -> Vec<Vec<f32>> {
    weights.chunks_exact(keys.max(1)).map(<[f32]>::to_vec).collect()
}

fn score_rows(scores: &[f32], keys: usize) -> Vec<Vec<Option<f32>>> {
    let finite = |score: &f32| score.is_finite().then_some(*score);
    scores.chunks_exact(keys.max(1)).map(|row| row.iter().map(finite).collect()).collect()
}

/// The form of [`HeadWeights::Packed`].
pub(crate) fn packed(weights: &[f32]) -> String {
    let bytes: Vec<u8> = weights
        .iter()
        .flat_map(|weight| ((weight.clamp(0.0, 1.0) * 65535.0).round() as u16).to_le_bytes())
        .collect();
    STANDARD.encode(bytes)
}

fn packed_scores(scores: &[f32]) -> String {
    STANDARD.encode(scores.iter().flat_map(|score| score.to_le_bytes()).collect::<Vec<u8>>())
}

#[cfg(test)]
mod tests {
    use heedful_tensor::Ragged;

    use super::*;
    use crate::layers::AttentionSite;

    #[test]
    fn packed_weights_are_sixteen_bit_numbers_low_byte_first() {
        let bytes = STANDARD.decode(packed(&[0.0, 1.0, 0.5])).expect("base 64");
        assert_eq!(bytes, [0, 0, 255, 255, 0, 128]);
    }

    #[test]
    fn scores_of_hidden_keys_are_null_and_come_back() {
        let two = Ragged::from_lengths([2]);
        let map = AttentionMap {
            site: AttentionSite::new("decoder.1.self_attention", 1, AttentionRole::DecoderSelf),
            queries: two.clone(),
            keys: two,
            weights: vec![vec![vec![1.0, 0.0, 0.5, 0.5]]],
            scores: Some(vec![vec![vec![-0.25, f32::NEG_INFINITY, 3.0, 3.0]]]),
        };
        let layer = ExplainedLayer::new(&map, WeightForm::Rows);
        let json = serde_json::to_string(&layer).expect("plain data");
        assert!(json.starts_with(r#"{"layer":"decoder.1.self","kind":"decoder","#), "{json}");
        assert!(json.contains(r#""scores":[[[-0.25,null],[3.0,3.0]]]"#), "{json}");
        assert_eq!(serde_json::from_str::<ExplainedLayer>(&json).expect("the same"), layer);
        let packed = ExplainedLayer::new(&map, WeightForm::Packed);
        let Some(HeadScores::Packed(heads)) = &packed.scores else { panic!("{packed:?}") };
        let bytes = STANDARD.decode(&heads[0]).expect("base 64");
        let numbers: Vec<f32> = bytes.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
        assert_eq!(numbers, [-0.25, f32::NEG_INFINITY, 3.0, 3.0]);
        let unscored = ExplainedLayer::new(&AttentionMap { scores: None, ..map }, WeightForm::Rows);
        assert!(!serde_json::to_string(&unscored).expect("plain data").contains("scores"));
    }
}
