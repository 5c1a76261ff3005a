//! Top-k of every row of scores (logits), and the log-sum-exp that normalizes scores to log-probabilities.
//!
//! ```text
//! log p_j = x_j − log Σ_k e^{x_k}
//! ```
//!
//! Shapes: scores are `rows × classes`, f32. The CPU reads a row while it is in the L1 cache. In int8 it reads
//! the scores once, as they are computed. A GPU computes the maximum and the sum of exponentials of every 64 scores, inside the output
//! GEMM where the kernel supports it; top-k then reads only blocks that can contain a winner. No row is
//! sorted and no probabilities are written. There is no gradient.

pub(crate) mod block_stats;
mod chosen;
mod cpu;
pub(crate) mod cuda;

pub use chosen::{ChosenColumns, ChosenGroup, project_chosen};

use bytemuck::{Pod, Zeroable};

use super::linear::Projection;
use super::linear::{project_f32_out, project_with_block_stats};
use crate::cuda::{current_step, gpu};
use crate::{Array, Compute, Device, Precision, Rounding, Tensor};

/// A column of a row and its score.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Scored {
    /// The column.
    pub index: u32,
    /// Its score, unchanged.
    pub score: f32,
}

/// The results of a top-k search. The memory is reused by the next search.
#[derive(Default)]
pub struct TopK {
    normalizers: Vec<f64>,
    best: Vec<Scored>,
    count: usize,
    /// Requested scores, sorted by row and column.
    extra: Vec<(usize, u32, f32)>,
    from_gpu: cuda::FromGpu,
    requested: Normalizers,
}

/// Whether searches compute the [normalizers](TopK::normalizer).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Normalizers {
    /// Each row's log-sum-exp.
    #[default]
    Computed,
    /// A CPU spares the exponentials. Searches for no column compute them anyway.
    Skipped,
}

impl TopK {
    /// Whether the following searches compute the normalizers.
    pub fn request_normalizers(&mut self, normalizers: Normalizers) {
        self.requested = normalizers;
    }

    /// Finds the `count` best columns of each row (all of them if there are fewer); ties go to the first
    /// column.
    pub fn find(&mut self, scores: &Tensor, count: usize, rounding: Rounding) {
        self.find_with_extra(scores, count, &[], rounding);
    }

    /// As [`TopK::find`]; also keeps the scores of the `extra` rows and columns, for [`TopK::extra`]. In a
    /// step on a GPU the results are available after [`TopK::collect`].
    pub fn find_with_extra(
        &mut self,
        scores: &Tensor,
        count: usize,
        extra: &[(usize, u32)],
        rounding: Rounding,
    ) {
        let [rows, width] = scores.shape();
        if scores.device() == Device::Cuda && count > cuda::MAX_COUNT {
            let scores = Tensor::from_f32(rows, width, &scores.to_vec());
            return self.find_with_extra(&scores, count, extra, rounding);
        }
        match scores.device() {
            Device::Cpu => {
                self.clear(rows, count.min(width));
                self.request(extra);
                cpu::find(scores.array(), rounding, self.requested, &mut self.normalizers, &mut self.best);
                let values = scores.array().f32();
                for (row, column, score) in &mut self.extra {
                    *score = values[*row * width + *column as usize];
                }
            }
            Device::Cuda => self.find_on_gpu(scores.array(), None, count, extra),
        }
    }

    /// As [`TopK::find_with_extra`] on a GPU, for scores whose [`block_stats`] may be known already.
    fn find_on_gpu(&mut self, scores: &Array, stats: Option<Array>, count: usize, extra: &[(usize, u32)]) {
        self.clear(scores.rows(), count.min(scores.width()));
        self.request(extra);
        cuda::find(scores, stats, self);
        if current_step().is_none() {
            gpu().expect("the scores are on it").wait();
            self.collect();
        }
    }

    /// Copies the results of a finished step from the GPU. Does nothing on the CPU.
    pub fn collect(&mut self) {
        cuda::collect(self);
    }

    /// As [`TopK::find_with_extra`] for the scores `x Wᵀ + b`: where possible, the scores are searched as
    /// they are computed and never written. Returns false, without results, if this is not supported for the
    /// compute type or for so many columns.
    pub fn find_in_product<'a>(
        &mut self,
        x: &Tensor,
        projection: impl Into<Projection<'a>>,
        compute: Compute,
        count: usize,
        extra: &[(usize, u32)],
    ) -> bool {
        let projection = projection.into();
        projection.check("find_in_product", x);
        let [width, _] = projection.weight.shape();
        if x.device() == Device::Cuda && count > cuda::MAX_COUNT {
            self.find_with_extra(
                &project_f32_out(x, projection, compute),
                count,
                extra,
                compute.precision.rounding(),
            );
            return true;
        }
        if x.device() == Device::Cuda {
            let (scores, stats) = project_with_block_stats(x, projection, compute);
            self.find_on_gpu(&scores, stats, count, extra);
            return true;
        }
        if compute.precision != Precision::Int8 || count > MAX_IN_PRODUCT {
            return false;
        }
        self.clear(x.rows(), count.min(width));
        self.request(extra);
        cpu::find_in_product(x, projection, self);
        true
    }

    fn request(&mut self, extra: &[(usize, u32)]) {
        self.extra.extend(extra.iter().map(|&(row, column)| (row, column, 0.0)));
        self.extra.sort_unstable_by_key(|&(row, column, _)| (row, column));
    }

    /// The score of a requested row and column.
    pub fn extra(&self, row: usize, column: u32) -> Option<f32> {
        let index = self.extra.binary_search_by_key(&(row, column), |&(row, column, _)| (row, column));
        index.ok().map(|index| self.extra[index].2)
    }

    fn clear(&mut self, rows: usize, count: usize) {
        self.count = count;
        self.normalizers.clear();
        self.normalizers.resize(rows, 0.0);
        self.best.clear();
        self.best.resize(rows * count, NONE);
        self.extra.clear();
    }

    /// The log-sum-exp `log Σ_k e^{x_k}` of a row: a log-probability is the score minus this. If normalizers are
    /// [skipped](Normalizers::Skipped), another number may take its place. In both cases, it is not finite if the
    /// row contains NaN or ∞, or only −∞.
    #[inline]
    pub fn normalizer(&self, row: usize) -> f64 {
        self.normalizers[row]
    }

    /// The best columns of a row, best first.
    #[inline]
    pub fn best(&self, row: usize) -> &[Scored] {
        &self.best[row * self.count..(row + 1) * self.count]
    }
}

/// The largest `count` that [`TopK::find_in_product`] supports without writing the scores.
const MAX_IN_PRODUCT: usize = 64;

const NONE: Scored = Scored { index: 0, score: f32::NEG_INFINITY };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minus_infinity_is_a_score_and_nan_is_not_hidden() {
        let mut found = TopK::default();
        let infinite = f32::NEG_INFINITY;
        found.find(
            &Tensor::from_f32(
                4,
                3,
                &[
                    infinite,
                    2.0,
                    infinite,
                    infinite,
                    infinite,
                    infinite,
                    0.0,
                    f32::NAN,
                    1.0,
                    0.0,
                    f32::INFINITY,
                    1.0,
                ],
            ),
            2,
            Rounding::Fused,
        );
        assert_eq!(found.best(0)[0], Scored { index: 1, score: 2.0 });
        assert_eq!(found.normalizer(0), 2.0);
        assert!((1..4).all(|row| !found.normalizer(row).is_finite()));
    }
}
