//! Why positions are added.
//!
//! ```text
//! without positions   Encoder(π(x)) = π(Encoder(x))    for every permutation π: a sentence is a set of words
//! with positions      not so
//! ```
//!
//! Attention is a sum over keys, and a sum does not know its order. A sentence and a permutation of it go through the encoder of
//! one model twice: as it is, and with its positions left out.

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

use crate::tasks::translate::Translator;

/// The most tokens of the sentence: a picture has a cell for each pair of them.
const MOST_TOKENS: usize = 64;

/// The sentence and how it is permuted.
#[derive(Clone, Debug)]
pub struct OrderSettings {
    /// The sentence.
    pub text: String,
    /// Its other order.
    pub permutation: Permutation,
}

/// Another order of a sentence's tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permutation {
    /// From the last to the first.
    Reversed,
    /// Drawn from a seed.
    Drawn(u64),
}

/// With the Transformer of a folder, which translates.
pub fn order_of_model(folder: &Path, settings: &OrderSettings) -> Result<Experiment> {
    let (translator, config) = Translator::open_with_config(folder, &OpenOptions::new())?;
    let EncoderDecoderConfig::Transformer(config) = config else {
        let why = "only a Transformer has positions that can be left out, and this model is none";
        return Err(Error::new(why));
    };
    let tokens = translator.encode(&settings.text);
    let labels = tokens.iter().map(|&token| translator.tokenizers().source.piece(token)).collect();
    let copy = |positions: Positions| {
        // A window asks how far away a token stands, so it belongs to the positions.
        let window = config.window.filter(|_| positions != Positions::None);
        let model = Transformer::new(TransformerConfig { positions, window, ..config.clone() }, 1);
        let model = model.expect("the model of the folder can be built, and has no more parameters");
        for param in model_params(&model).iter() {
            let trained = translator.model().params().get(param.name());
            param.set(&trained.expect("the same parameters, less those of positions").to_vec());
        }
        model
    };
    let models = Models { with: copy(config.positions), without: copy(Positions::None) };
    experiment(&models, &Sentence { tokens, labels }, settings, &folder.display().to_string())
}

/// With a Transformer that was never trained, whose tokens are the words of the sentence.
pub fn order_of_random_model(settings: &OrderSettings, seed: u64) -> Result<Experiment> {
    let labels: Vec<String> = settings.text.split_whitespace().map(str::to_owned).collect();
    let mut words: Vec<&String> = Vec::new();
    let tokens = labels.iter().map(|label| {
        let known = words.iter().position(|word| *word == label);
        let number = known.unwrap_or(words.len());
        if known.is_none() {
            words.push(label);
        }
        number as u32 + SPECIAL
    });
    let tokens: Vec<u32> = tokens.collect();
    let model = |positions: Positions| {
        let config = TransformerConfig {
            d_model: 64,
            heads: 4,
            encoder_layers: 2,
            decoder_layers: 1,
            positions,
            ..TransformerConfig::tiny(SPECIAL as usize + MOST_TOKENS)
        };
        Transformer::new(config, seed).expect("a good configuration")
    };
    let models = Models { with: model(Positions::Sinusoidal), without: model(Positions::None) };
    let name = format!("a Transformer of 2 layers that was never trained, seed {seed}");
    experiment(&models, &Sentence { tokens, labels }, settings, &name)
}

/// Tokens that are no words.
const SPECIAL: u32 = 4;

/// One model, with its positions and without.
struct Models {
    with: Transformer,
    without: Transformer,
}

struct Sentence {
    tokens: Vec<u32>,
    labels: Vec<String>,
}

/// The states of a permuted sentence beside those of the sentence.
struct Compared {
    /// For each token of the permuted sentence, how far its state is from that of the same token in the sentence, relative to
    /// the latter's norm.
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
    if !(2..=MOST_TOKENS).contains(&count) {
        let why = format!("the sentence has {count} tokens: give one of 2 to {MOST_TOKENS}");
        return Err(Error::new(why));
    }
    let order = settings.permutation.of(count);
    let permuted: Vec<String> = order.iter().map(|&from| sentence.labels[from].clone()).collect();
    let with = compare(&models.with, &sentence.tokens, &order)?;
    let without = compare(&models.without, &sentence.tokens, &order)?;
    let most = |compared: &Compared| compared.moved.iter().copied().fold(0.0, f64::max);
    let has_positions = models.with.config().positions != Positions::None;
    let mut findings = vec![format!(
        "Without positions, the states of the permuted sentence are those of the sentence, permuted: no state moves by more \
         than {:.1e} of its length, which is rounding.",
        most(&without)
    )];
    findings.push(match has_positions {
        true => format!(
            "With positions, states move by up to {:.0} % of their length, {:.0} % on average: the encoder knows the order.",
            100.0 * most(&with),
            100.0 * with.moved.iter().sum::<f64>() / count as f64
        ),
        false => "The model was trained without positions: it cannot know the order.".to_owned(),
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
    /// Which token stands at each place of the permuted sentence.
    fn of(self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).rev().collect();
        if let Permutation::Drawn(seed) = self {
            let stream = Stream::new(seed, 0, 0);
            order.sort_by_key(|&token| stream.bits(token as u32));
            // A draw may be the sentence itself, which would show nothing.
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
        let squares = |pairs: &mut dyn Iterator<Item = f64>| pairs.map(|x| x * x).sum::<f64>().sqrt();
        let apart = squares(&mut a.iter().zip(b).map(|(a, b)| f64::from(*a) - f64::from(*b)));
        apart / squares(&mut b.iter().map(|&b| f64::from(b))).max(f64::MIN_POSITIVE)
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
    let row = |(place, &from): (usize, &usize)| {
        vec![
            permuted[place].clone(),
            (from + 1).to_string(),
            (place + 1).to_string(),
            format!("{:.4}", with.moved[place]),
            format!("{:.1e}", without.moved[place]),
        ]
    };
    Table {
        title: "How far the state of a token moves when the sentence is permuted, in lengths of the state"
            .to_owned(),
        columns: ["token", "from place", "to place", "with positions", "without"].map(str::to_owned).to_vec(),
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
        for permutation in [Permutation::Reversed, Permutation::Drawn(3)] {
            let found = order_of_random_model(&settings("the dog bites the old man", permutation), 5);
            let numbers = found.expect("a good sentence").json;
            let most = |side: &str| {
                let moved = numbers[side]["moved"].as_array().expect("numbers").iter();
                moved.map(|number| number.as_f64().expect("a number")).fold(0.0, f64::max)
            };
            assert!(most("without_positions") < 1e-5, "{numbers}");
            assert!(most("with_positions") > 0.05, "{numbers}");
        }
    }

    #[test]
    fn a_drawn_permutation_has_every_token_once() {
        let mut order = Permutation::Drawn(7).of(20);
        assert_ne!(order, (0..20).collect::<Vec<_>>());
        order.sort_unstable();
        assert_eq!(order, (0..20).collect::<Vec<_>>());
    }

    #[test]
    fn a_sentence_of_one_word_has_no_order() {
        for text in ["", "dog", &"dog ".repeat(65)] {
            let error =
                order_of_random_model(&settings(text, Permutation::Reversed), 1).expect_err("too short");
            assert!(error.to_string().contains("2 to 64"), "{error}");
        }
    }
}
