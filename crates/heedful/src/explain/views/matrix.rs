//! The attention matrix of one layer, with labels for rows and columns, by token or by word.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::super::explanation::{
    ExplainedKind, ExplainedLayer, ExplainedOutput, ExplainedSource, ExplainedToken, Explanation, HeadWeights,
};
use super::choice::{HeadChoice, LayerChoice, ViewError};

/// Whether rows and columns are tokens or words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Granularity {
    /// Tokens, as the model reads and generates them.
    #[default]
    Token,
    /// Words; each special token stays on its own.
    Word,
}

/// Attention weights with labels.
#[derive(Clone, Debug, PartialEq)]
pub struct AttentionMatrix {
    /// Layer and head: `decoder.1.cross.3`.
    pub title: String,
    /// The labels of the queries.
    pub rows: Vec<String>,
    /// The labels of the keys.
    pub columns: Vec<String>,
    /// Rows × columns, row-major.
    pub weights: Vec<f32>,
    /// The log-probability of each query token; `None` for source tokens.
    pub log_probabilities: Vec<Option<f64>>,
}

/// The tokens of one row or column.
struct TokenGroup {
    label: String,
    tokens: std::ops::Range<usize>,
    log_probability: Option<f64>,
}

impl AttentionMatrix {
    /// The weights of a chosen layer and head.
    pub fn of(
        explanation: &Explanation,
        output: &ExplainedOutput,
        layer: LayerChoice,
        head: HeadChoice,
        level: Granularity,
    ) -> Result<AttentionMatrix, ViewError> {
        let layer = layer.find(output)?;
        let (weights, name) = match head {
            HeadChoice::Mean if layer.head_count() == 1 => (layer.head(0), layer.name.to_string()),
            HeadChoice::Mean => (layer.mean(), format!("{}, mean of all heads", layer.name)),
            HeadChoice::One(head) if head < layer.head_count() => {
                (layer.head(head), format!("{}.{head}", layer.name))
            }
            HeadChoice::One(head) => {
                let last = layer.head_count().saturating_sub(1);
                return Err(ViewError::NoHead { layer: layer.name, head, last });
            }
        };
        let [rows, columns] = query_and_key_tokens(&explanation.source, output, layer.kind);
        Ok(grouped(name, &weights, &groups(&rows, level), &groups(&columns, level), layer.keys))
    }
}

impl ExplainedLayer {
    /// The number of heads.
    pub(crate) fn head_count(&self) -> usize {
        match &self.heads {
            HeadWeights::Rows(heads) => heads.len(),
            HeadWeights::Packed(heads) => heads.len(),
        }
    }

    /// The weights of one head, row-major.
    ///
    /// # Panics
    /// If `head` is out of range.
    pub fn head(&self, head: usize) -> Vec<f32> {
        match &self.heads {
            HeadWeights::Rows(heads) => heads[head].concat(),
            HeadWeights::Packed(heads) => unpacked(&heads[head], self.queries * self.keys),
        }
    }

    /// The mean over all heads.
    pub fn mean(&self) -> Vec<f32> {
        let count = self.head_count();
        let mut mean = vec![0.0; self.queries * self.keys];
        for head in 0..count {
            for (mean, weight) in mean.iter_mut().zip(self.head(head)) {
                *mean += weight / count as f32;
            }
        }
        mean
    }
}

/// The query tokens and the key tokens of a layer.
pub(super) fn query_and_key_tokens(
    source: &ExplainedSource,
    output: &ExplainedOutput,
    kind: ExplainedKind,
) -> [Vec<ExplainedToken>; 2] {
    let (input, generated) = (source.tokens.clone(), output.tokens.clone());
    match kind {
        ExplainedKind::Encoder => [input.clone(), input],
        ExplainedKind::Cross | ExplainedKind::Pooling => [generated, input],
        ExplainedKind::Decoder => {
            let bos = ExplainedToken {
                piece: "<bos>".to_owned(),
                word: None,
                log_probability: None,
                alternatives: Vec::new(),
            };
            let previous = generated[..generated.len().saturating_sub(1)].iter().cloned();
            let keys = [bos].into_iter().chain(previous).collect();
            [generated, keys]
        }
    }
}

fn groups(tokens: &[ExplainedToken], level: Granularity) -> Vec<TokenGroup> {
    let words = match level {
        Granularity::Token => vec![None; tokens.len()],
        Granularity::Word => words(tokens),
    };
    let mut groups: Vec<TokenGroup> = Vec::new();
    let mut last = None;
    for (index, (token, word)) in tokens.iter().zip(words).enumerate() {
        match groups.last_mut() {
            Some(group) if word.is_some() && word == last => {
                group.label += &token.piece;
                group.tokens.end = index + 1;
                // A word's probability is the product of its tokens' probabilities.
                group.log_probability = group.log_probability.zip(token.log_probability).map(|(a, b)| a + b);
            }
            _ => groups.push(TokenGroup {
                label: match word {
                    Some(_) => token.piece.trim_start_matches('▁').to_owned(),
                    None => token.piece.clone(),
                },
                tokens: index..index + 1,
                log_probability: token.log_probability,
            }),
        }
        last = word;
    }
    groups
}

/// The word of each token; a token of white space belongs to the following word.
fn words(tokens: &[ExplainedToken]) -> Vec<Option<usize>> {
    let mut words: Vec<Option<usize>> = tokens.iter().map(|token| token.word).collect();
    for index in (1..tokens.len()).rev() {
        let is_space = tokens[index - 1].piece.chars().all(|c| c == '▁');
        if words[index - 1].is_none() && is_space {
            words[index - 1] = words[index];
        }
    }
    words
}

fn grouped(
    title: String,
    weights: &[f32],
    rows: &[TokenGroup],
    columns: &[TokenGroup],
    keys: usize,
) -> AttentionMatrix {
    let mut sums = Vec::with_capacity(rows.len() * columns.len());
    for row in rows {
        for column in columns {
            let of_token = |token: usize| weights[token * keys..][column.tokens.clone()].iter().sum::<f32>();
            sums.push(row.tokens.clone().map(of_token).sum::<f32>() / row.tokens.len() as f32);
        }
    }
    let labels = |groups: &[TokenGroup]| groups.iter().map(|group| group.label.clone()).collect();
    AttentionMatrix {
        title,
        rows: labels(rows),
        columns: labels(columns),
        weights: sums,
        log_probabilities: rows.iter().map(|row| row.log_probability).collect(),
    }
}

/// Decodes [`HeadWeights::Packed`]. Invalid text yields zeros: the explanation may come from an untrusted
/// file.
fn unpacked(text: &str, count: usize) -> Vec<f32> {
    let bytes = STANDARD.decode(text).unwrap_or_default();
    let values = bytes.as_chunks::<2>().0.iter().map(|&pair| f32::from(u16::from_le_bytes(pair)) / 65535.0);
    let mut weights: Vec<f32> = values.collect();
    weights.resize(count, 0.0);
    weights
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn token(piece: &str, word: Option<usize>, probability: Option<f64>) -> ExplainedToken {
        ExplainedToken {
            piece: piece.to_owned(),
            word,
            log_probability: probability.map(f64::ln),
            alternatives: Vec::new(),
        }
    }

    fn layer(name: &str, kind: ExplainedKind, heads: Vec<Vec<Vec<f32>>>) -> ExplainedLayer {
        let (queries, keys) = (heads[0].len(), heads[0][0].len());
        ExplainedLayer {
            name: name.parse().expect("a layer"),
            kind,
            queries,
            keys,
            heads: HeadWeights::Rows(heads),
            scores: None,
        }
    }

    /// `自动车` is translated as `a ca|r <eos>`.
    pub(in super::super) fn example() -> Explanation {
        let cross = vec![
            vec![vec![1.0, 0.0], vec![0.2, 0.8], vec![0.4, 0.6], vec![0.0, 1.0]],
            vec![vec![0.5, 0.5], vec![0.5, 0.5], vec![0.5, 0.5], vec![0.5, 0.5]],
        ];
        let causal: Vec<Vec<f32>> = (0..4_usize)
            .map(|i| (0..4_usize).map(|j| if j <= i { 1.0 / (i + 1) as f32 } else { 0.0 }).collect())
            .collect();
        let output = ExplainedOutput {
            text: "a car".to_owned(),
            score: -1.0,
            log_probability: -1.0,
            tokens: vec![
                token("▁a", Some(0), Some(0.5)),
                token("▁ca", Some(1), Some(0.5)),
                token("r", Some(1), Some(0.25)),
                token("<eos>", None, Some(1.0)),
            ],
            alignment: vec![(0, 0), (1, 1)],
            attention: vec![
                layer("decoder.0.self", ExplainedKind::Decoder, vec![causal]),
                layer("decoder.0.cross", ExplainedKind::Cross, cross),
            ],
        };
        let tokens = vec![token("自动", Some(0), None), token("车", Some(1), None)];
        Explanation {
            source: ExplainedSource { text: "自动车".to_owned(), tokens }, outputs: vec![output]
        }
    }

    fn matrix(head: HeadChoice, level: Granularity) -> AttentionMatrix {
        let example = example();
        AttentionMatrix::of(&example, &example.outputs[0], LayerChoice::CROSS, head, level)
            .expect("it is there")
    }

    #[test]
    fn rows_of_words_are_averages_and_columns_are_sums() {
        let words = matrix(HeadChoice::One(0), Granularity::Word);
        assert_eq!(words.rows, ["a", "car", "<eos>"]);
        assert_eq!(words.columns, ["自动", "车"]);
        for (found, expected) in words.weights.iter().zip([1.0, 0.0, 0.3, 0.7, 0.0, 1.0]) {
            assert!((found - expected).abs() < 1e-6, "{:?}", words.weights);
        }
        let probabilities: Vec<f64> = words.log_probabilities.iter().flatten().map(|log| log.exp()).collect();
        assert!((probabilities[1] - 0.125).abs() < 1e-12, "{probabilities:?}");
        assert_eq!(matrix(HeadChoice::One(0), Granularity::Token).rows, ["▁a", "▁ca", "r", "<eos>"]);
    }

    #[test]
    fn a_token_of_white_space_joins_the_following_word() {
        let pieces = ["a", "▁", "b", "c", "▁", "<eos>"];
        let words = [Some(0), None, Some(1), Some(1), None, None];
        let tokens: Vec<ExplainedToken> =
            pieces.iter().zip(words).map(|(piece, word)| token(piece, word, Some(0.5))).collect();
        let labels: Vec<String> =
            groups(&tokens, Granularity::Word).into_iter().map(|group| group.label).collect();
        assert_eq!(labels, ["a", "bc", "▁", "<eos>"]);
    }

    #[test]
    fn decoder_self_attention_has_its_inputs_as_columns() {
        let example = example();
        let choice = "decoder.0".parse().expect("a layer");
        let matrix =
            AttentionMatrix::of(&example, &example.outputs[0], choice, HeadChoice::Mean, Granularity::Token);
        assert_eq!(matrix.expect("it is there").columns, ["<bos>", "▁a", "▁ca", "r"]);
    }

    #[test]
    fn mean_and_packed_weights_agree_with_rows() {
        let mean = matrix(HeadChoice::Mean, Granularity::Token);
        assert_eq!(mean.weights[..2], [0.75, 0.25]);
        assert_eq!(mean.title, "decoder.0.cross, mean of all heads");
        assert_eq!(matrix(HeadChoice::One(1), Granularity::Token).title, "decoder.0.cross.1");
        assert_eq!(unpacked(&STANDARD.encode([0, 0, 255, 255]), 3), [0.0, 1.0, 0.0]);
    }

    #[test]
    fn errors_name_the_missing_layer_or_head() {
        let example = example();
        let output = &example.outputs[0];
        let of = |layer: &str, head| {
            let layer = layer.parse().expect("a layer");
            AttentionMatrix::of(&example, output, layer, head, Granularity::Token)
                .expect_err("an error")
                .to_string()
        };
        let error = of("encoder.3", HeadChoice::Mean);
        assert!(error.contains("it has decoder.0.self, decoder.0.cross"), "{error}");
        assert!(of("cross.0", HeadChoice::One(2)).ends_with("its heads are 0 to 1"));
    }
}
