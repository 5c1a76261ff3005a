//! What the batches of all ranks came to, known to all of them.

use heedful_tensor::collective::{Failure, Group};
use heedful_tensor::flops;
use heedful_tensor::ops::BatchLoss;

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
