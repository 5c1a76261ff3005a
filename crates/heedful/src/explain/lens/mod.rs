//! The logit lens (nostalgebraist, 2020): the predictions of every layer's state.
//!
//! ```text
//! p_l(y | position) = softmax(Head(x_l))      x_l: the residual stream after l blocks; 0: the embedding's output
//! ```
//!
//! `Head` is everything behind the last block: the final norm of a pre-norm stack, the output matrix with its
//! bias, a masked language model's hidden layer, a classifier's pooling. The lens of the last block is the
//! model's own output. The decoder of a translator attends to the complete encoder in every layer.

mod views;

#[cfg(test)]
mod tests;

use serde::Serialize;

use super::inspect::{Inspected, Prediction};
use crate::layers::StateSite;
use crate::{Error, Result};

/// The predictions of every layer at every position.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Lens {
    /// The positions at which the model predicts.
    pub positions: Vec<LensPosition>,
    /// The layers, the embedding first.
    pub layers: Vec<LensLayer>,
}

/// A position at which the model predicts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LensPosition {
    /// The newest input token at this position; the whole text has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// The token or label whose probability and rank are followed through the layers.
    pub target: Prediction,
}

/// The predictions of one layer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LensLayer {
    /// `decoder.embedding`, `decoder.0`, …
    pub name: String,
    /// One entry for each position.
    pub predictions: Vec<LensPrediction>,
}

/// The prediction of a layer's state at a position.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LensPrediction {
    /// The most probable tokens or labels, best first.
    pub top: Vec<LensToken>,
    /// The probability of the position's target.
    pub probability: f64,
    /// The rank of the target: 1 for the most probable.
    pub rank: usize,
}

/// A token or label with its probability.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LensToken {
    /// The token or label in readable form.
    pub piece: String,
    /// Its probability.
    pub probability: f64,
}

impl Lens {
    /// The lens of a text, with the `top` most probable predictions of every layer and position.
    pub fn new(text: &Inspected<'_>, top: usize) -> Result<Lens> {
        if top == 0 {
            return Err(Error::new("the number of predictions is 0: set it to at least 1"));
        }
        let states = text.states()?;
        let at = |stack, blocks| {
            let site = StateSite::Residual { stack, blocks };
            states.at(site).cloned().ok_or_else(|| Error::new(format!("the model recorded no state {site}")))
        };
        let last = text.last_stack();
        let mut layers = Vec::new();
        for layer in 0..=last.blocks {
            let final_site = |stack, blocks| StateSite::Residual { stack, blocks };
            let mut replaced = vec![(final_site(last.stack, last.blocks), at(last.stack, layer)?)];
            // The encoder's output does not depend on the layer.
            for before in text.inputs().iter().filter(|inputs| inputs.stack != last.stack) {
                let site = final_site(before.stack, before.blocks);
                replaced.push((site, at(before.stack, before.blocks)?));
            }
            let rows = text.log_probabilities(&mut text.pass().replacing(replaced), 1, &text.all())?;
            let predictions = rows.iter().zip(text.predictions());
            layers.push(LensLayer {
                name: Inspected::layer_name(last.stack, layer),
                predictions: predictions.map(|(row, target)| prediction(text, row, target, top)).collect(),
            });
        }
        let inputs = (text.predictions().len() == last.pieces.len()).then_some(&last.pieces);
        let positions = text.predictions().iter().enumerate();
        let position = |(at, target): (usize, &Prediction)| LensPosition {
            input: inputs.map(|inputs| inputs[at].clone()),
            target: target.clone(),
        };
        Ok(Lens { positions: positions.map(position).collect(), layers })
    }
}

fn prediction(text: &Inspected<'_>, row: &[f64], target: &Prediction, top: usize) -> LensPrediction {
    let score = row[target.class as usize];
    let mut best: Vec<usize> = (0..row.len()).collect();
    let order = |a: &usize, b: &usize| row[*b].total_cmp(&row[*a]).then(a.cmp(b));
    if top < best.len() {
        best.select_nth_unstable_by(top, order);
        best.truncate(top);
    }
    best.sort_unstable_by(order);
    let token = |class: usize| LensToken { piece: text.piece(class as u32), probability: row[class].exp() };
    LensPrediction {
        top: best.into_iter().map(token).collect(),
        probability: score.exp(),
        rank: 1 + row.iter().filter(|&&other| other > score).count(),
    }
}
