//! The data that explains one output of a model: tokens, probabilities, alignment, all attention weights and,
//! on request, the scores before the softmax. The server sends it, `heedful explain` writes it, and the page
//! draws it.
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
//! | decoder | the output's tokens, as predicted | `<bos>` and the output's tokens except the last |
//! | cross | the output's tokens | the source's tokens |
//! | pooling | the output's one token, a label | the source's tokens |
//!
//! | model | source | outputs | their tokens |
//! |---|---|---|---|
//! | translator | the text | translations | of the translation, and `<eos>` |
//! | classifier | the text with the model's special tokens, such as `<bos>` | labels | the label |
//! | language model | empty | the text itself | of the text, and `<eos>` where texts end with it |
//! | masked LM | the text with the model's special tokens | the text with its gaps filled | the best prediction per `<mask>` |

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
    /// The text as given.
    pub text: String,
    /// The input tokens of the model.
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
    /// The predicted tokens; a translation's end with `<eos>`.
    pub tokens: Vec<ExplainedToken>,
    /// Pairs of source word and target word, ordered by target word.
    pub alignment: Vec<(usize, usize)>,
    /// One entry per attention layer, in the order of computation; empty unless requested.
    pub attention: Vec<ExplainedLayer>,
}

/// One token.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExplainedToken {
    /// The token in readable form, with spaces as `▁`.
    pub piece: String,
    /// The index of its word; `None` for special tokens, and for white space that no word follows.
    pub word: Option<usize>,
    /// Its log-probability given all tokens before it; only tokens of outputs have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_probability: Option<f64>,
    /// The most probable tokens at this position, most probable first; empty unless requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<Alternative>,
}

/// The weights of one attention layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExplainedLayer {
    /// Its name: `decoder.0.cross`.
    #[serde(rename = "layer")]
    pub name: LayerName,
    /// Which sequence attends to which.
    pub kind: ExplainedKind,
    /// The number of rows of each head's matrix.
    pub queries: usize,
    /// The number of columns of each head's matrix.
    pub keys: usize,
    /// One matrix for each head.
    pub heads: HeadWeights,
    /// The scores before the softmax, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scores: Option<HeadScores>,
}

/// Which sequence attends to which.
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
    /// Rows of weights, exactly as the model computed them.
    Rows(Vec<Vec<Vec<f32>>>),
    /// Base64 of 16-bit integers, little-endian, row-major, where 65535 is a weight of 1. It is compact: a
    /// long sentence has millions of weights.
    Packed(Vec<String>),
}

/// The scores of a layer's heads before the softmax, in the requested form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum HeadScores {
    /// Rows of scores; `None` (null) for masked keys, whose score is −∞.
    Rows(Vec<Vec<Vec<Option<f32>>>>),
    /// Base64 of f32 values, little-endian, row-major; −∞ for masked keys.
    Packed(Vec<String>),
}

/// Whether an explanation contains attention weights, and in which form.
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
    /// The number of attention weights and scores that it contains.
    #[doc(hidden)]
    pub fn value_count(&self) -> usize {
        let layers = self.outputs.iter().flat_map(|output| &output.attention);
        let of_layer = |layer: &ExplainedLayer| {
            let matrices_per_head = if layer.scores.is_some() { 2 } else { 1 };
            matrices_per_head * layer.head_count() * layer.queries * layer.keys
        };
        layers.map(of_layer).sum()
    }
}

impl ExplainedLayer {
    /// A layer's weights, and its scores if they were recorded, of a pass over one sequence.
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

/// Encodes weights as [`HeadWeights::Packed`] describes.
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
    fn packed_weights_are_little_endian_u16() {
        let bytes = STANDARD.decode(packed(&[0.0, 1.0, 0.5])).expect("base 64");
        assert_eq!(bytes, [0, 0, 255, 255, 0, 128]);
    }

    #[test]
    fn scores_of_masked_keys_are_null_in_json_and_survive_a_round_trip() {
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
        let scores: Vec<f32> = bytes.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
        assert_eq!(scores, [-0.25, f32::NEG_INFINITY, 3.0, 3.0]);
        let unscored = ExplainedLayer::new(&AttentionMap { scores: None, ..map }, WeightForm::Rows);
        assert!(!serde_json::to_string(&unscored).expect("plain data").contains("scores"));
    }
}
