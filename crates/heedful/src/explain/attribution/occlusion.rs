//! Occlusion: every token vector in turn is replaced by zeros.

use super::{AttributedTarget, TokenVectors};
use crate::Result;
use crate::explain::inspect::Inspected;
use crate::layers::StateSite;

/// Maximum number of logits in a batch.
const LOGITS: usize = 1 << 24;

pub(super) fn occlusion(text: &Inspected<'_>) -> Result<Vec<AttributedTarget>> {
    let tokens = TokenVectors::of(text)?;
    // The whole text is copy 0, as the others with replaced token vectors.
    let occluded = tokens
        .stacks
        .iter()
        .enumerate()
        .flat_map(|(stack, x)| (0..x.len() / tokens.width).map(move |token| Some((stack, token))));
    let copies: Vec<Option<(usize, usize)>> = [None].into_iter().chain(occluded).collect();
    let classes = text.logits(&mut text.pass(), 1, &[0])?.width();
    let in_batch = tokens.copies().min((LOGITS / (classes * text.predictions().len())).max(1));
    let mut scores: Vec<Vec<f64>> = Vec::new();
    for chunk in copies.chunks(in_batch) {
        scores.extend(copy_scores(text, &tokens, chunk)?);
    }
    let (whole, occluded) = scores.split_first().expect("the whole text is a copy");
    let target = |prediction: usize| {
        let mut rest = occluded;
        let stacks = tokens.stacks.iter().map(|x| {
            let (here, later) = rest.split_at(x.len() / tokens.width);
            rest = later;
            here.iter().map(|scores| whole[prediction] - scores[prediction]).collect()
        });
        AttributedTarget {
            target: text.predictions()[prediction].clone(),
            log_probability: whole[prediction],
            scores: stacks.collect(),
            completeness: None,
        }
    };
    Ok(text.all().into_iter().map(target).collect())
}

/// The log-probabilities of all predictions of each copy, without its occluded token.
fn copy_scores(
    text: &Inspected<'_>,
    tokens: &TokenVectors,
    copies: &[Option<(usize, usize)>],
) -> Result<Vec<Vec<f64>>> {
    let state = |(number, x): (usize, &Vec<f32>)| {
        let mut values = x.repeat(copies.len());
        for (copy, occluded) in copies.iter().enumerate() {
            if let Some((_, token)) = occluded.filter(|(stack, _)| *stack == number) {
                let start = copy * x.len() + token * tokens.width;
                values[start..start + tokens.width].fill(0.0);
            }
        }
        let site = StateSite::Tokens(text.inputs()[number].stack);
        (site, text.state(tokens.width, &values))
    };
    let states = tokens.stacks.iter().enumerate().map(state).collect();
    let count = text.predictions().len();
    let all: Vec<usize> = (0..copies.len() * count).collect();
    let rows = text.log_probabilities(&mut text.pass().replacing(states), copies.len(), &all)?;
    let score = |(number, row): (usize, &Vec<f64>)| row[text.predictions()[number % count].class as usize];
    let scores: Vec<f64> = rows.iter().enumerate().map(score).collect();
    Ok(scores.chunks_exact(count).map(<[f64]>::to_vec).collect())
}
