//! The explanation of one translation, as numbers: pieces, probabilities, alignment, and every attention weight. The
//! server sends it, `heedful explain` writes it, and the page draws it.
//!
//! ```text
//! {"source": {"text", "tokens": [{"piece", "word"}, …]},
//!  "outputs": [{"text", "score", "log_probability", "tokens": [{"piece", "word", "log_probability"}, …, <eos>],
//!               "alignment": [[source word, target word], …],
//!               "attention": [{"name", "layer", "kind", "queries", "keys", "heads"}, …]}, …]}
//! ```
//!
//! | kind | queries (rows) | keys (columns) |
//! |---|---|---|
//! | encoder | the source's tokens | the source's tokens |
//! | decoder | the output's tokens, each when it is predicted | `<bos>` and the output's tokens without `<eos>` |
//! | cross | the output's tokens | the source's tokens |

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::alternatives::Alternative;
use crate::data::tokenizer::Tokenizer;
use crate::decode::{AlignmentLayer, DecodeError, SearchOptions, align};
use crate::layers::{AttentionMap, AttentionRole};
use crate::tasks::translate::{Output, Translation, Translator};

/// The explanation of a sentence and its outputs.
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
    /// The tokens that the model generated, with `<eos>` at the end.
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
    /// The index of the word that it belongs to; `None` for special tokens and white space.
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
    /// The prefix of its parameters: `decoder.0.cross_attention`.
    pub name: String,
    /// Counted from 0 within its stack.
    pub layer: usize,
    /// What attends to what.
    pub kind: ExplainedKind,
    /// Rows of each head's matrix.
    pub queries: usize,
    /// Columns of each head's matrix.
    pub keys: usize,
    /// One matrix for each head.
    pub heads: HeadWeights,
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
    /// Runs the model once more over a sentence and its outputs, and records probabilities, alignment and attention.
    pub fn new(
        translator: &Translator,
        text: &str,
        translation: &Translation,
        form: WeightForm,
        options: &SearchOptions,
    ) -> Result<Explanation, DecodeError> {
        let tokens = tokens(&translator.tokenizers().source, &translation.source, &[]);
        let source = ExplainedSource { text: text.to_owned(), tokens };
        let outputs = translation.outputs.iter();
        let outputs = outputs
            .map(|output| explain(translator, &source, &translation.source, output, form, options))
            .collect::<Result<_, _>>()?;
        Ok(Explanation { source, outputs })
    }
}

fn explain(
    translator: &Translator,
    source: &ExplainedSource,
    source_ids: &[u32],
    output: &Output,
    form: WeightForm,
    options: &SearchOptions,
) -> Result<ExplainedOutput, DecodeError> {
    let generated = &output.hypothesis.tokens;
    let probabilities = translator.token_scores(source_ids, generated, options)?;
    let mut tokens = tokens(&translator.tokenizers().target, generated, &probabilities.tokens);
    let maps = match form {
        WeightForm::None => translator.attend_to_source(source_ids, generated, options)?,
        _ => translator.attend(source_ids, generated, options)?,
    };
    let words = |tokens: &[ExplainedToken]| tokens.iter().map(|token| token.word).collect::<Vec<_>>();
    let alignment = align(&maps, AlignmentLayer::default(), &words(&source.tokens), &words(&tokens));
    let end = ExplainedToken {
        piece: "<eos>".to_owned(),
        word: None,
        log_probability: probabilities.tokens.last().copied(),
        alternatives: Vec::new(),
    };
    tokens.push(end);
    let attention = match form {
        WeightForm::None => Vec::new(),
        form => maps.iter().filter_map(|map| layer(map, form)).collect(),
    };
    Ok(ExplainedOutput {
        text: output.text.clone(),
        score: output.hypothesis.score,
        log_probability: output.hypothesis.log_probability,
        tokens,
        alignment,
        attention,
    })
}

fn tokens(tokenizer: &Tokenizer, ids: &[u32], log_probabilities: &[f64]) -> Vec<ExplainedToken> {
    let words = tokenizer.display_words(ids);
    let token = |(i, (&id, word))| ExplainedToken {
        piece: tokenizer.piece(id),
        word,
        log_probability: log_probabilities.get(i).copied(),
        alternatives: Vec::new(),
    };
    ids.iter().zip(words).enumerate().map(token).collect()
}

fn layer(map: &AttentionMap, form: WeightForm) -> Option<ExplainedLayer> {
    let kind = match map.site.role {
        AttentionRole::EncoderSelf => ExplainedKind::Encoder,
        AttentionRole::DecoderSelf => ExplainedKind::Decoder,
        AttentionRole::Cross => ExplainedKind::Cross,
        AttentionRole::Pooling => return None,
    };
    let (queries, keys) = (map.queries.tokens(), map.keys.tokens());
    let heads = match form {
        WeightForm::Packed => HeadWeights::Packed(map.weights[0].iter().map(|head| packed(head)).collect()),
        _ => HeadWeights::Rows(map.weights[0].iter().map(|head| rows(head, keys)).collect()),
    };
    Some(ExplainedLayer { name: map.site.to_string(), layer: map.site.layer, kind, queries, keys, heads })
}

fn rows(weights: &[f32], keys: usize) -> Vec<Vec<f32>> {
    weights.chunks_exact(keys.max(1)).map(<[f32]>::to_vec).collect()
}

fn packed(weights: &[f32]) -> String {
    let bytes: Vec<u8> = weights
        .iter()
        .flat_map(|weight| ((weight.clamp(0.0, 1.0) * 65535.0).round() as u16).to_le_bytes())
        .collect();
    STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_weights_are_sixteen_bit_numbers_low_byte_first() {
        let bytes = STANDARD.decode(packed(&[0.0, 1.0, 0.5])).expect("base 64");
        assert_eq!(bytes, [0, 0, 255, 255, 0, 128]);
    }
}
