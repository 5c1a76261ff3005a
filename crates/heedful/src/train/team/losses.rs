//! Exchanges losses, batch norm statistics and step results between all ranks.

use heedful_tensor::collective::{Failure, Group};
use heedful_tensor::flops;
use heedful_tensor::ops::{BatchLoss, Divergence, StepResult};

use super::wire::{Reader, Writer};
use crate::layers::BatchStatistics;

/// Gathers the losses and statistics of all batches, in order. The operation counts of the other ranks are
/// added to this rank's.
pub(in crate::train) fn gather_losses(
    group: &Group,
    losses: &[BatchLoss],
    statistics: Vec<BatchStatistics>,
    operations: u64,
) -> Result<(Vec<BatchLoss>, Vec<BatchStatistics>), Failure> {
    let out = Writer::default().u64(operations).u64(losses.len() as u64);
    let out = losses.iter().fold(out, |out, batch| {
        let out = out.f32s(&[batch.share, batch.loss]);
        out.f64(batch.negative_log_likelihood).u64(batch.correct as u64)
    });
    let numbers: Vec<f32> = statistics.iter().flat_map(BatchStatistics::values).collect();
    let all = group.all_gather(out.f32s(&numbers).finish())?;
    let (mut all_losses, mut all_statistics) = (Vec::new(), Vec::new());
    for (rank, bytes) in all.iter().enumerate() {
        let mut input = Reader(bytes);
        let operations = input.u64();
        if rank != group.rank() {
            flops::add_elsewhere(operations);
        }
        for _ in 0..input.u64() {
            let numbers = input.f32s();
            all_losses.push(BatchLoss {
                share: numbers[0],
                loss: numbers[1],
                negative_log_likelihood: input.f64(),
                correct: input.u64() as usize,
            });
        }
        // All ranks have the same norms, so their statistics have the same shapes.
        let mut numbers = &input.f32s()[..];
        all_statistics.extend(statistics.iter().map(|like| like.with_values(&mut numbers)));
    }
    Ok((all_losses, all_statistics))
}

/// Combines the results of a step on several GPUs: each has the losses of its own batches, and all have
/// accepted or rejected the step by the same gradient.
pub(in crate::train) fn add_results(
    group: &Group,
    result: Result<StepResult, Divergence>,
) -> Result<Result<StepResult, Divergence>, Failure> {
    let (is_accepted, own) = match result {
        Ok(result) => (1, result),
        Err(_) => (0, StepResult { norm: 0.0, loss: 0.0, negative_log_likelihood: 0.0, correct: 0 }),
    };
    let out = Writer::default().byte(is_accepted).f32s(&[own.loss]);
    let all = group.all_gather(out.f64(own.negative_log_likelihood).u64(own.correct as u64).finish())?;
    if all.iter().any(|bytes| Reader(bytes).byte() != is_accepted) {
        let error = "some ranks rejected a step that others accepted".to_owned();
        return Err(Failure { call: "step", error });
    }
    let zero = StepResult { loss: 0.0, negative_log_likelihood: 0.0, correct: 0, ..own };
    Ok(result.map(|_| {
        all.iter().fold(zero, |sum, bytes| {
            let mut input = Reader(&bytes[1..]);
            StepResult {
                loss: sum.loss + input.f32s()[0],
                negative_log_likelihood: sum.negative_log_likelihood + input.f64(),
                correct: sum.correct + input.u64() as usize,
                ..sum
            }
        })
    }))
}
