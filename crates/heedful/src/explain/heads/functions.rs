//! The functions of heads on one text, as in work on circuits of language models (Elhage et al., 2021; Olsson
//! et al., 2022).
//!
//! ```text
//! previous    mean_i A[i, i−1]                                          on the text
//! alignment   mean_i Σ_j A[i, j] over the source tokens j aligned to i  on a translation, aligned by the model itself
//! duplicate   mean_i A[i, i−n]          ┐ on n random tokens, written twice: for the second copy, the same
//! induction   mean_i A[i, i−n+1]        ┘ token in the first, and the token after it
//! ```
//!
//! Self attention of a decoder: query i is its input i, where `<bos>` is input 0. A head that copies by
//! induction attends to the token after the previous occurrence of the current one.

use std::collections::HashSet;

use heedful_tensor::random::Stream;
use serde::{Serialize, Serializer};

use crate::Result;
use crate::decode::{AlignmentLayer, align};
use crate::explain::inspect::Inspected;
use crate::layers::{AttentionMap, AttentionRole};
use crate::models::HeadName;
use crate::plot::{Fact, HeatMapOptions, Picture, PictureGroup, Report, Status, Table, heat_map_svg};

/// The scores of every head on one text.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeadFunctions {
    /// The number of random tokens that were written twice.
    pub random_tokens: usize,
    /// All heads, in the order of computation.
    pub heads: Vec<HeadFunction>,
}

/// The scores of one head: mean attention weights. `None` where the score is not defined.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct HeadFunction {
    /// `decoder.0.self.1`.
    #[serde(rename = "head", serialize_with = "as_text")]
    pub name: HeadName,
    /// The weight of the previous token.
    pub previous: Option<f64>,
    /// The weight of the earlier occurrence of the same token.
    pub duplicate: Option<f64>,
    /// The weight of the token after the earlier occurrence of the same token.
    pub induction: Option<f64>,
    /// The weight of aligned source tokens.
    pub alignment: Option<f64>,
}

impl HeadFunctions {
    /// Measures every head on a text, and on `random_tokens` tokens, drawn with `seed`, that are written
    /// twice.
    pub fn new(text: &Inspected<'_>, random_tokens: usize, seed: u64) -> Result<HeadFunctions> {
        if random_tokens < 2 {
            return Err(crate::Error::new("fewer than 2 random tokens have no order: draw at least 2"));
        }
        let run = |text: &Inspected<'_>| -> Result<Vec<AttentionMap>> {
            let mut pass = text.pass().recording();
            text.logits(&mut pass, 1, &[0])?;
            let mut maps = pass.take_attention()?;
            maps.retain(|map| map.site.role != AttentionRole::Pooling);
            Ok(maps)
        };
        let repeated = text.repeated(random_tokens, Stream::new(seed, 0, 0));
        let (maps, repeated_maps) = (run(text)?, run(&repeated)?);
        let links = aligned_tokens(text, &maps);
        let mut heads = Vec::new();
        for (map, repeated_map) in maps.iter().zip(&repeated_maps) {
            let role = map.site.role;
            let first = repeated.first_random(role);
            for (head, weights) in map.weights[0].iter().enumerate() {
                let (keys, repeated_keys) = (map.keys.tokens(), repeated_map.keys.tokens());
                let again = &repeated_map.weights[0][head];
                let is_self = role != AttentionRole::Cross;
                let second = first + random_tokens..first + 2 * random_tokens;
                let shifted = |back: usize| {
                    let weights = second.clone().map(|query| again[query * repeated_keys + query - back]);
                    is_self.then(|| mean(weights)).flatten()
                };
                let before = (1..map.queries.tokens()).map(|query| weights[query * keys + query - 1]);
                heads.push(HeadFunction {
                    name: HeadName { role, layer: map.site.layer, head },
                    previous: is_self.then(|| mean(before)).flatten(),
                    duplicate: shifted(random_tokens),
                    induction: shifted(random_tokens - 1),
                    alignment: if is_self { None } else { alignment(weights, keys, &links) },
                });
            }
        }
        Ok(HeadFunctions { random_tokens, heads })
    }

    /// One row for each head.
    pub fn table(&self) -> Table {
        let maybe = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.3}"));
        let row = |head: &HeadFunction| {
            let HeadFunction { name, previous, duplicate, induction, alignment } = *head;
            let scores = [previous, duplicate, induction, alignment].map(maybe);
            [name.to_string()].into_iter().chain(scores).collect()
        };
        Table {
            title: format!("Functions of heads; {} random tokens, written twice", self.random_tokens),
            columns: ["head", "previous", "duplicate", "induction", "alignment"].map(str::to_owned).to_vec(),
            rows: self.heads.iter().map(row).collect(),
        }
    }

    /// The scores as CSV with a header line; missing scores are empty.
    pub fn to_csv(&self) -> String {
        let maybe = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
        let mut csv = "head,previous,duplicate,induction,alignment\n".to_owned();
        for HeadFunction { name, previous, duplicate, induction, alignment } in &self.heads {
            let scores = [*previous, *duplicate, *induction, *alignment].map(maybe);
            csv += &format!("{name},{}\n", scores.join(","));
        }
        csv
    }

    /// A page with a heat map and the table.
    pub fn report(&self, subtitle: &str) -> Report {
        let columns = self.table().columns.split_off(1);
        let rows: Vec<String> = self.heads.iter().map(|head| head.name.to_string()).collect();
        let values = self.heads.iter().flat_map(|head| {
            [head.previous, head.duplicate, head.induction, head.alignment]
                .map(|score| score.map_or(f32::NAN, |score| score as f32))
        });
        let options = HeatMapOptions { title: "Mean weights".to_owned(), ..HeatMapOptions::default() };
        let svg = heat_map_svg(&values.collect::<Vec<_>>(), &rows, &columns, &options);
        Report {
            title: "What the heads do".to_owned(),
            subtitle: subtitle.to_owned(),
            status: Status::Absent,
            results: vec![Fact::new("heads", self.heads.len())],
            pictures: vec![PictureGroup {
                title: "Functions".to_owned(),
                note: String::new(),
                pictures: vec![Picture::from(svg)],
            }],
            tables: vec![self.table()],
            ..Report::default()
        }
    }
}

/// The pairs of a target and a source token that the model aligns.
fn aligned_tokens(text: &Inspected<'_>, maps: &[AttentionMap]) -> HashSet<(usize, usize)> {
    let Some([source_words, target_words]) = &text.words else { return HashSet::new() };
    let words = align(maps, AlignmentLayer::default(), source_words, target_words);
    let tokens_of = |words: &[Option<usize>], word: usize| -> Vec<usize> {
        (0..words.len()).filter(|&token| words[token] == Some(word)).collect()
    };
    let pairs = words.iter().flat_map(|&(source, target)| {
        let (sources, targets) = (tokens_of(source_words, source), tokens_of(target_words, target));
        targets
            .into_iter()
            .flat_map(move |target| sources.clone().into_iter().map(move |source| (target, source)))
    });
    pairs.collect()
}

/// The mean weight of aligned source tokens over the target tokens that have one.
fn alignment(weights: &[f32], keys: usize, links: &HashSet<(usize, usize)>) -> Option<f64> {
    let of_query = |(query, row): (usize, &[f32])| {
        let aligned: Vec<f32> = row
            .iter()
            .enumerate()
            .filter(|(key, _)| links.contains(&(query, *key)))
            .map(|(_, &w)| w)
            .collect();
        (!aligned.is_empty()).then(|| aligned.iter().sum::<f32>())
    };
    mean(weights.chunks_exact(keys).enumerate().filter_map(of_query))
}

fn mean(values: impl Iterator<Item = f32>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0_usize), |(sum, count), value| (sum + f64::from(value), count + 1));
    (count > 0).then(|| sum / count as f64)
}

fn as_text<S: Serializer>(name: &HeadName, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(name)
}

#[cfg(test)]
mod tests;
