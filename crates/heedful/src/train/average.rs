//! Checkpoint averaging: the mean of several checkpoints often performs better than each of them.

use std::path::PathBuf;

use super::checkpoint::{self, CheckpointError};
use crate::store::weights::Weights;

/// Which weights of a checkpoint are averaged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Averaged {
    /// The trained parameters.
    #[default]
    Parameters,
    /// The moving average of the parameters; an error if the run kept none.
    MovingAverage,
    /// The weights that validation uses: the moving average if the run kept one, else the parameters.
    Validated,
}

/// The mean of the weights of `checkpoints`, summed in f64 in the given order.
///
/// # Panics
/// If there is no checkpoint.
pub fn average(checkpoints: &[PathBuf], what: Averaged) -> Result<Weights, CheckpointError> {
    let weights = |path: &PathBuf| {
        let (parameters, average) = checkpoint::read_weights(path)?;
        match (what, average) {
            (Averaged::MovingAverage | Averaged::Validated, Some(average)) => Ok(average),
            (Averaged::MovingAverage, None) => Err(CheckpointError::NoMovingAverage { path: path.clone() }),
            (Averaged::Parameters | Averaged::Validated, _) => Ok(parameters),
        }
    };
    let (first, others) = checkpoints.split_first().expect("average: no checkpoint");
    let mut sum = Sum::new(weights(first)?);
    for path in others {
        if !sum.add(&weights(path)?) {
            return Err(CheckpointError::OtherModel { path: path.clone(), first: first.clone() });
        }
    }
    Ok(sum.mean(checkpoints.len()))
}

struct Sum {
    like: Weights,
    sums: Vec<f64>,
}

impl Sum {
    fn new(like: Weights) -> Sum {
        let sums = like.iter().flat_map(|(.., values)| values).map(|&value| value.into()).collect();
        Sum { like, sums }
    }

    /// False if the weights have other names or shapes.
    fn add(&mut self, weights: &Weights) -> bool {
        let shapes = |weights: &Weights| {
            weights.iter().map(|(name, shape, _)| (name.to_owned(), shape)).collect::<Vec<_>>()
        };
        if shapes(&self.like) != shapes(weights) {
            return false;
        }
        let values = weights.iter().flat_map(|(.., values)| values);
        self.sums.iter_mut().zip(values).for_each(|(sum, &value)| *sum += f64::from(value));
        true
    }

    fn mean(self, count: usize) -> Weights {
        let values = self.sums.iter().map(|sum| (sum / count as f64) as f32).collect();
        let matrices = self.like.iter().map(|(name, shape, _)| (name.to_owned(), shape));
        Weights::from_matrices(matrices, values)
    }
}
