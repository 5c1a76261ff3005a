//! Attention rollout (Abnar and Zuidema, 2020): attention weights, averaged over heads and mixed equally with
//! the residual connection, multiplied through the layers.
//!
//! ```text
//! encoder    R ← ½ (R + A R)                            R = I before the first layer
//! decoder    D ← ½ (D + A_self D),  S ← ½ (S + A_self S)
//!            D ← ½ D,               S ← ½ (S + A_cross R)
//! ```
//!
//! `D` is the share of the target's prefix, `S` that of the source; the row of a prediction sums to 1. A
//! classifier's prediction is the mean of the rows by the weights of its pooling.

use super::AttributedTarget;
use crate::explain::inspect::{Inspected, Readout};
use crate::layers::{AttentionMap, AttentionRole};
use crate::recipe::Pooling;
use crate::{Error, Result};

/// A row-major matrix.
#[derive(Clone)]
struct Matrix {
    width: usize,
    values: Vec<f64>,
}

pub(super) fn rollout(text: &Inspected<'_>) -> Result<Vec<AttributedTarget>> {
    let mut pass = text.pass().recording();
    let scores = text.scores(&mut pass)?;
    let maps = pass.take_attention()?;
    let mean = |role: AttentionRole, blocks: usize| -> Result<Vec<Matrix>> {
        let found: Vec<Matrix> = maps.iter().filter(|map| map.site.role == role).map(Matrix::of).collect();
        if found.len() == blocks {
            return Ok(found);
        }
        Err(Error::new(
            "rollout needs self attention in every layer, and this model has layers without: use --method occlusion",
        ))
    };
    let sides = text.inputs();
    let last = text.last_stack();
    let mut encoded = Matrix::identity(sides[0].pieces.len());
    let stacks: Vec<Matrix> = match sides {
        [encoder, decoder] => {
            for attention in mean(AttentionRole::EncoderSelf, encoder.blocks)? {
                encoded = encoded.after(&attention);
            }
            let mut prefix = Matrix::identity(decoder.pieces.len());
            let mut source = Matrix::zeros(decoder.pieces.len(), encoder.pieces.len());
            let own = mean(AttentionRole::DecoderSelf, decoder.blocks)?;
            let cross = mean(AttentionRole::Cross, decoder.blocks)?;
            for (own, cross) in own.iter().zip(&cross) {
                (prefix, source) = (prefix.after(own), source.after(own));
                source = source.mixed(&cross.times(&encoded));
                prefix.values.iter_mut().for_each(|value| *value *= 0.5);
            }
            vec![source, prefix]
        }
        _ => {
            let role = match last.stack {
                crate::layers::StackSide::Encoder => AttentionRole::EncoderSelf,
                crate::layers::StackSide::Decoder => AttentionRole::DecoderSelf,
            };
            for attention in mean(role, last.blocks)? {
                encoded = encoded.after(&attention);
            }
            vec![encoded]
        }
    };
    let weights = readout(text, &maps)?;
    let target = |prediction: usize| AttributedTarget {
        target: text.predictions()[prediction].clone(),
        log_probability: scores[prediction],
        scores: stacks.iter().map(|stack| stack.combined(&weights[prediction])).collect(),
        completeness: None,
    };
    Ok(text.all().into_iter().map(target).collect())
}

/// The weight of each position of the last stack in each prediction.
fn readout(text: &Inspected<'_>, maps: &[AttentionMap]) -> Result<Vec<Vec<f64>>> {
    let positions = text.last_stack().pieces.len();
    let only = |row: usize| (0..positions).map(|at| if at == row { 1.0 } else { 0.0 }).collect::<Vec<f64>>();
    Ok(match &text.readout {
        Readout::Rows(rows) => rows.iter().map(|&row| only(row)).collect(),
        Readout::Pooled(Pooling::First) => vec![only(0)],
        Readout::Pooled(Pooling::Last) => vec![only(positions - 1)],
        Readout::Pooled(Pooling::Mean) => vec![vec![1.0 / positions as f64; positions]],
        Readout::Pooled(Pooling::Attention) => {
            let pooling = maps.iter().find(|map| map.site.role == AttentionRole::Pooling);
            let pooling = pooling.ok_or_else(|| Error::new("the model recorded no pooling weights"))?;
            vec![pooling.mean_over_heads(0).into_iter().map(f64::from).collect()]
        }
        Readout::Pooled(Pooling::Max) => {
            return Err(Error::new(
                "rollout has no weights for max pooling, which takes each dimension from another token: use --method occlusion",
            ));
        }
    })
}

impl Matrix {
    fn identity(n: usize) -> Matrix {
        let mut matrix = Matrix::zeros(n, n);
        (0..n).for_each(|i| matrix.values[i * n + i] = 1.0);
        matrix
    }

    fn zeros(rows: usize, width: usize) -> Matrix {
        Matrix { width, values: vec![0.0; rows * width] }
    }

    /// The mean over the heads of a layer.
    fn of(map: &AttentionMap) -> Matrix {
        let values = map.mean_over_heads(0).into_iter().map(f64::from).collect();
        Matrix { width: map.keys.tokens(), values }
    }

    fn times(&self, other: &Matrix) -> Matrix {
        let rows = self.values.chunks_exact(self.width);
        Matrix { width: other.width, values: rows.flat_map(|row| other.combined(row)).collect() }
    }

    /// The sum of the rows, weighted.
    fn combined(&self, weights: &[f64]) -> Vec<f64> {
        let mut sum = vec![0.0; self.width];
        for (weight, row) in weights.iter().zip(self.values.chunks_exact(self.width)) {
            sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += weight * value);
        }
        sum
    }

    /// `½ (self + other)`.
    fn mixed(&self, other: &Matrix) -> Matrix {
        let values = self.values.iter().zip(&other.values).map(|(a, b)| 0.5 * (a + b)).collect();
        Matrix { width: self.width, values }
    }

    /// `½ (self + attention · self)`.
    fn after(&self, attention: &Matrix) -> Matrix {
        self.mixed(&attention.times(self))
    }
}
