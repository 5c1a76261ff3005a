//! What the batches of all ranks came to, known to all of them.

use heedful_tensor::collective::{Failure, Group};
use heedful_tensor::flops;
use heedful_tensor::ops::{BatchLoss, Divergence, StepResult};

use super::wire::{Reader, Writer};
use crate::layers::BatchStatistics;

/// The losses and the statistics of all batches, in their order, given those of this rank. What the others have counted of
/// operations counts here too.
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
    let numbers: Vec<f32> = statistics.iter().flat_map(BatchStatistics::numbers).collect();
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
        // Every batch has passed the same norms, so those of other ranks look like this one's.
        let mut numbers = &input.f32s()[..];
        all_statistics.extend(statistics.iter().map(|like| like.with_numbers(&mut numbers)));
    }
    Ok((all_losses, all_statistics))
}

/// What a step of several GPUs came to, given what it came to on this rank's: each has the losses of its own batches, and all
/// have decided by the same gradient whether to make it.
pub(in crate::train) fn add_results(
    group: &Group,
    result: Result<StepResult, Divergence>,
) -> Result<Result<StepResult, Divergence>, Failure> {
    let (is_made, own) = match result {
        Ok(result) => (1, result),
        Err(_) => (0, StepResult { norm: 0.0, loss: 0.0, negative_log_likelihood: 0.0, correct: 0 }),
    };
    let out = Writer::default().byte(is_made).f32s(&[own.loss]);
    let all = group.all_gather(out.f64(own.negative_log_likelihood).u64(own.correct as u64).finish())?;
    if all.iter().any(|bytes| Reader(bytes).byte() != is_made) {
        let error = "some ranks have rejected a step that others have made".to_owned();
        return Err(Failure { call: "step", error });
    }
    let nothing = StepResult { loss: 0.0, negative_log_likelihood: 0.0, correct: 0, ..own };
    Ok(result.map(|_| {
        all.iter().fold(nothing, |sum, bytes| {
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
