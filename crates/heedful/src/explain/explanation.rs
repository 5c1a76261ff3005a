//! What a translator did with one sentence, as numbers: pieces, probabilities, alignment, and every attention weight.
//! The server sends it, `heedful explain` writes it, and the page draws it.
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
//! | decoder | the output's tokens, each as the step that says it | `<bos>` and the output's tokens without `<eos>` |
//! | cross | the output's tokens | the source's tokens |

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::data::tokenizer::Tokenizer;
use crate::decode::{AlignmentLayer, DecodeError, SearchOptions, align};
use crate::layers::{AttentionMap, AttentionRole};
use crate::tasks::translate::{Output, Translation, Translator};

/// All that can be shown of a sentence and its outputs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// What was read.
    pub source: ExplainedSource,
    /// What was said, best first.
    pub outputs: Vec<ExplainedOutput>,
}

/// The sentence that was read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExplainedSource {
    /// As it was given.
    pub text: String,
    /// As the model reads it.
    pub tokens: Vec<ExplainedToken>,
}

/// One output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExplainedOutput {
    /// As text.
    pub text: String,
    /// Its log-probability with the length penalty.
    pub score: f64,
    /// Over all tokens.
    pub log_probability: f64,
    /// As the model says it, with `<eos>` at the end.
    pub tokens: Vec<ExplainedToken>,
    /// Pairs of source word and target word, in the order of target words.
    pub alignment: Vec<(usize, usize)>,
    /// One for each attention layer, in the order of computation; empty if nobody asked.
    pub attention: Vec<ExplainedLayer>,
}

/// One token.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExplainedToken {
    /// For people: spaces as `▁`.
    pub piece: String,
    /// Which word it belongs to, counted from 0; none for special tokens and white space.
    pub word: Option<usize>,
    /// How probable it was after all before it; only what was said has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_probability: Option<f64>,
}

/// The weights of one attention layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExplainedLayer {
    /// The parameters' prefix: `decoder.0.cross_attention`.
    pub name: String,
    /// Counted from 0 within its stack.
    pub layer: usize,
    /// Who looks at whom.
    pub kind: ExplainedKind,
    /// Rows of each head's matrix.
    pub queries: usize,
    /// Columns of each head's matrix.
    pub keys: usize,
    /// One matrix for each head.
    pub heads: Heads,
}

/// Who looks at whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExplainedKind {
    /// The source at itself.
    Encoder,
    /// The output at its own past.
    Decoder,
    /// The output at the source.
    Cross,
}

/// Matrices in the form that was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Heads {
    /// Rows of numbers, as the model computed them.
    Rows(Vec<Vec<Vec<f32>>>),
    /// Base 64 of each weight as a 16-bit integer (low byte first), 65535 for 1, row after row: a long sentence has
    /// millions of weights.
    Packed(Vec<String>),
}

/// Which weights an explanation holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WeightForm {
    /// None.
    #[default]
    None,
    /// As [`Heads::Rows`].
    Rows,
    /// As [`Heads::Packed`].
    Packed,
}

impl Explanation {
    /// Goes through a sentence and its outputs once more and looks at everything on the way.
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
    let said = &output.hypothesis.tokens;
    let probabilities = translator.token_scores(source_ids, said, options)?;
    let mut tokens = tokens(&translator.tokenizers().target, said, &probabilities.tokens);
    let maps = translator.attend(source_ids, said, options)?;
    let words = |tokens: &[ExplainedToken]| tokens.iter().map(|token| token.word).collect::<Vec<_>>();
    let alignment = align(&maps, AlignmentLayer::default(), &words(&source.tokens), &words(&tokens));
    let end = ExplainedToken {
        piece: "<eos>".to_owned(),
        word: None,
        log_probability: probabilities.tokens.last().copied(),
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
    let words = tokenizer.reading_words(ids);
    let token = |(i, (&id, word))| ExplainedToken {
        piece: tokenizer.piece(id),
        word,
        log_probability: log_probabilities.get(i).copied(),
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
        WeightForm::Packed => Heads::Packed(map.weights[0].iter().map(|head| packed(head)).collect()),
        _ => Heads::Rows(map.weights[0].iter().map(|head| rows(head, keys)).collect()),
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
