//! Why positions are added.
//!
//! ```text
//! without positions   Encoder(π(x)) = π(Encoder(x))    for every permutation π: a sentence is a set of words
//! with positions      this does not hold
//! ```
//!
//! Attention is a sum over keys, which does not depend on their order. A sentence and a permutation of it are
//! encoded by the same model with and without its position encoding.

use std::path::Path;

use heedful_tensor::random::Stream;
use heedful_tensor::{DType, Ragged};
use serde_json::{Value, json};

use super::Experiment;
use crate::layers::{Pass, Positions};
use crate::models::EncoderDecoderConfig;
use crate::models::Generate;
use crate::models::transformer::{Transformer, TransformerConfig};
use crate::plot::{HeatMapOptions, Table, heat_map_svg};
use crate::tasks::OpenOptions;
use crate::{Error, Result};

use crate::tasks::folder::ModelFolder;
use crate::tasks::translate::Translator;

/// The maximum length of the sentence: a picture has a cell for each pair of tokens.
const MAX_TOKENS: usize = 64;

/// The sentence and its permutation.
#[derive(Clone, Debug)]
pub struct OrderSettings {
    /// The sentence.
    pub text: String,
    /// How its tokens are reordered.
    pub permutation: Permutation,
}

/// A permutation of a sentence's tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permutation {
    /// From the last to the first.
    Reversed,
    /// A random permutation with this seed.
    Random(u64),
}

/// Runs the experiment with the encoder of a translation Transformer in a folder.
pub fn order_of_model(folder: &Path, settings: &OrderSettings) -> Result<Experiment> {
    let (translator, config) = Translator::open_with_config(ModelFolder::open(folder)?, &OpenOptions::new())?;
    let EncoderDecoderConfig::Transformer(config) = config else {
        let why =
            "only a Transformer has positions that can be left out, and this model is not a Transformer";
        return Err(Error::new(why));
    };
    let tokens = translator.encode(&settings.text);
    let labels = tokens.iter().map(|&token| translator.tokenizers().source.piece(token)).collect();
    let copy = |positions: Positions| {
        // Windowed attention depends on distances, which are positional information too.
        let window = config.window.filter(|_| positions != Positions::None);
        let model = Transformer::new(TransformerConfig { positions, window, ..config.clone() }, 1);
        let model = model.expect("the folder's model can be built, and this one has no other parameters");
        for param in model_params(&model).iter() {
            let trained = translator.model().params().get(param.name());
            param.set(&trained.expect("the same parameters except those of positions").to_vec());
        }
        model
    };
    let models = Models { with: copy(config.positions), without: copy(Positions::None) };
    experiment(&models, &Sentence { tokens, labels }, settings, &folder.display().to_string())
}

/// Runs the experiment with a randomly initialised Transformer whose tokens are the words of the sentence.
pub fn order_of_random_model(settings: &OrderSettings, seed: u64) -> Result<Experiment> {
    let labels: Vec<String> = settings.text.split_whitespace().map(str::to_owned).collect();
    let mut words: Vec<&String> = Vec::new();
    let tokens = labels.iter().map(|label| {
        let known = words.iter().position(|word| *word == label);
        let id = known.unwrap_or(words.len());
        if known.is_none() {
            words.push(label);
        }
        id as u32 + SPECIAL
    });
    let tokens: Vec<u32> = tokens.collect();
    let model = |positions: Positions| {
        let config = TransformerConfig {
            d_model: 64,
            heads: 4,
            encoder_layers: 2,
            decoder_layers: 1,
            positions,
            ..TransformerConfig::tiny(SPECIAL as usize + MAX_TOKENS)
        };
        Transformer::new(config, seed).expect("a valid configuration")
    };
    let models = Models { with: model(Positions::Sinusoidal), without: model(Positions::None) };
    let name = format!("a Transformer of 2 layers that was never trained, seed {seed}");
    experiment(&models, &Sentence { tokens, labels }, settings, &name)
}

/// The number of special tokens.
const SPECIAL: u32 = 4;

/// The same model with and without its position encoding.
struct Models {
    with: Transformer,
    without: Transformer,
}

struct Sentence {
    tokens: Vec<u32>,
    labels: Vec<String>,
}

/// The states of a permuted sentence compared with those of the original.
struct Compared {
    /// For each token of the permuted sentence, the distance of its state from that of the same token in the
    /// original, relative to the latter's norm.
    moved: Vec<f64>,
    /// 1 − distance of each pair of states, at least 0: permuted × original.
    sameness: Vec<f32>,
}

fn model_params(model: &Transformer) -> &heedful_tensor::Params {
    crate::models::Model::params(model)
}

fn experiment(
    models: &Models,
    sentence: &Sentence,
    settings: &OrderSettings,
    name: &str,
) -> Result<Experiment> {
    let count = sentence.tokens.len();
    if !(2..=MAX_TOKENS).contains(&count) {
        let why = format!("the sentence has {count} tokens: give one of 2 to {MAX_TOKENS}");
        return Err(Error::new(why));
    }
    let order = settings.permutation.of(count);
    let permuted: Vec<String> = order.iter().map(|&from| sentence.labels[from].clone()).collect();
    let with = compare(&models.with, &sentence.tokens, &order)?;
    let without = compare(&models.without, &sentence.tokens, &order)?;
    let max_moved = |compared: &Compared| compared.moved.iter().copied().fold(0.0, f64::max);
    let has_positions = models.with.config().positions != Positions::None;
    let mut findings = vec![format!(
        "Without positions, the states of the permuted sentence are those of the sentence, permuted: no state moves by more \
         than {:.1e} of its length, which is rounding.",
        max_moved(&without)
    )];
    findings.push(match has_positions {
        true => format!(
            "With positions, states move by up to {:.0} % of their length, {:.0} % on average: the encoder knows the order.",
            100.0 * max_moved(&with),
            100.0 * with.moved.iter().sum::<f64>() / count as f64
        ),
        false => "The model was trained without positions: it cannot use the order.".to_owned(),
    });
    let picture = |title: &str, compared: &Compared| {
        let options = HeatMapOptions { title: title.to_owned(), ..HeatMapOptions::default() };
        heat_map_svg(&compared.sameness, &permuted, &sentence.labels, &options)
    };
    Ok(Experiment {
        title: "Why are positions added?".to_owned(),
        setting: format!(
            "{name}: states of “{}” (rows) beside those of “{}” (columns), in f32",
            permuted.join(" "),
            sentence.labels.join(" ")
        ),
        findings,
        tables: vec![table(&order, &permuted, &with, &without)],
        curves: Vec::new(),
        pictures: vec![
            picture("with positions: 1 is the same state", &with),
            picture("without positions: 1 is the same state", &without),
        ],
        json: json!({
            "tokens": sentence.labels,
            "permuted": permuted,
            "order": order,
            "with_positions": with.json(count),
            "without_positions": without.json(count),
        }),
    })
}

impl Permutation {
    /// The original index of the token at each position of the permuted sentence.
    fn of(self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).rev().collect();
        if let Permutation::Random(seed) = self {
            let stream = Stream::new(seed, 0, 0);
            order.sort_by_key(|&token| stream.bits(token as u32));
            // The identity permutation would show nothing.
            if order.is_sorted() {
                order.rotate_left(1);
            }
        }
        order
    }
}

fn compare(model: &Transformer, tokens: &[u32], order: &[usize]) -> Result<Compared> {
    let sequences = Ragged::from_lengths([tokens.len()]);
    model.check_source(tokens, &sequences)?;
    let width = model.config().d_model;
    let states = |tokens: &[u32]| -> Vec<f32> {
        model.encode(tokens, &sequences, &mut Pass::inference(DType::F32)).states.to_vec()
    };
    let permuted: Vec<u32> = order.iter().map(|&from| tokens[from]).collect();
    let (original, permuted) = (states(tokens), states(&permuted));
    let distance = |row: usize, column: usize| {
        let (a, b) = (&permuted[row * width..][..width], &original[column * width..][..width]);
        let norm = |pairs: &mut dyn Iterator<Item = f64>| pairs.map(|x| x * x).sum::<f64>().sqrt();
        let difference = norm(&mut a.iter().zip(b).map(|(a, b)| f64::from(*a) - f64::from(*b)));
        difference / norm(&mut b.iter().map(|&b| f64::from(b))).max(f64::MIN_POSITIVE)
    };
    let cells = (0..order.len()).flat_map(|row| (0..order.len()).map(move |column| (row, column)));
    Ok(Compared {
        moved: order.iter().enumerate().map(|(row, &from)| distance(row, from)).collect(),
        sameness: cells.map(|(row, column)| (1.0 - distance(row, column)).max(0.0) as f32).collect(),
    })
}

impl Compared {
    fn json(&self, count: usize) -> Value {
        let rows: Vec<&[f32]> = self.sameness.chunks(count).collect();
        json!({ "moved": self.moved, "sameness": rows })
    }
}

fn table(order: &[usize], permuted: &[String], with: &Compared, without: &Compared) -> Table {
    let row = |(to, &from): (usize, &usize)| {
        vec![
            permuted[to].clone(),
            (from + 1).to_string(),
            (to + 1).to_string(),
            format!("{:.4}", with.moved[to]),
            format!("{:.1e}", without.moved[to]),
        ]
    };
    Table {
        title: "Distance that a token's state moves when the sentence is permuted, relative to the norm of the state"
            .to_owned(),
        columns: ["token", "from position", "to position", "with positions", "without"].map(str::to_owned).to_vec(),
        rows: order.iter().enumerate().map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str, permutation: Permutation) -> OrderSettings {
        OrderSettings { text: text.to_owned(), permutation }
    }

    #[test]
    fn states_are_permuted_without_positions_and_changed_with_them() {
        for permutation in [Permutation::Reversed, Permutation::Random(3)] {
            let found = order_of_random_model(&settings("the dog bites the old man", permutation), 5);
            let json = found.expect("a valid sentence").json;
            let max_moved = |side: &str| {
                let moved = json[side]["moved"].as_array().expect("an array").iter();
                moved.map(|number| number.as_f64().expect("a number")).fold(0.0, f64::max)
            };
            assert!(max_moved("without_positions") < 1e-5, "{json}");
            assert!(max_moved("with_positions") > 0.05, "{json}");
        }
    }

    #[test]
    fn a_random_permutation_has_every_token_once() {
        let mut order = Permutation::Random(7).of(20);
        assert_ne!(order, (0..20).collect::<Vec<_>>());
        order.sort_unstable();
        assert_eq!(order, (0..20).collect::<Vec<_>>());
    }

    #[test]
    fn a_sentence_too_short_or_too_long_is_an_error() {
        for text in ["", "dog", &"dog ".repeat(65)] {
            let error =
                order_of_random_model(&settings(text, Permutation::Reversed), 1).expect_err("a bad length");
            assert!(error.to_string().contains("2 to 64"), "{error}");
        }
    }
}
