//! The k best columns of every row of scores (top-k), and what turns scores into log-probabilities.
//!
//! ```text
//! log p_j = x_j − log Σ_k e^{x_k}
//! ```
//!
//! Shapes: scores are `rows × classes`, f32. A row is read three times while it is in the first cache: for the largest
//! score of each block of it, for the sum, and then only the blocks whose largest score is among the best. A GPU finds both for
//! every 64 scores, where it can when it computes them. No row is sorted and no row of probabilities is written. There is no gradient.

mod chosen;
mod cpu;
pub(crate) mod cuda;
pub(crate) mod marks;

pub use chosen::{ChosenColumns, ChosenPart, project_chosen};

use bytemuck::{Pod, Zeroable};

use super::linear::Projection;
use super::linear::{project_marked, project_wide};
use crate::cuda::{current_step, gpu};
use crate::{Array, Compute, Device, Precision, Rounding, Tensor};

/// A column of a row and its score.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Scored {
    /// Which column.
    pub index: u32,
    /// The score as it was given.
    pub score: f32,
}

/// What was found, in memory that the next search reuses.
#[derive(Default)]
pub struct TopK {
    normalizers: Vec<f64>,
    best: Vec<Scored>,
    count: usize,
    /// Scores that were asked for by row and column, in that order.
    others: Vec<(usize, u32, f32)>,
    from_gpu: cuda::FromGpu,
}

impl TopK {
    /// Finds the `count` best columns of each row (all of them if there are fewer), of equals the first.
    pub fn find(&mut self, scores: &Tensor, count: usize, rounding: Rounding) {
        self.find_and(scores, count, &[], rounding);
    }

    /// As [`TopK::find`]; also keeps the scores of some columns of some rows, for [`TopK::other`]. In a step on a GPU they are
    /// there after [`TopK::collect`].
    pub fn find_and(&mut self, scores: &Tensor, count: usize, others: &[(usize, u32)], rounding: Rounding) {
        let [rows, width] = scores.shape();
        if scores.device() == Device::Cuda && count > cuda::MOST {
            let scores = Tensor::from_f32(rows, width, &scores.to_vec());
            return self.find_and(&scores, count, others, rounding);
        }
        match scores.device() {
            Device::Cpu => {
                self.clear(rows, count.min(width));
                self.want(others);
                cpu::find(scores.array(), rounding, &mut self.normalizers, &mut self.best);
                let values = scores.array().f32();
                for (row, column, score) in &mut self.others {
                    *score = values[*row * width + *column as usize];
                }
            }
            Device::Cuda => self.find_on_gpu(scores.array(), None, count, others),
        }
    }

    /// As [`TopK::find_and`] on a GPU, for scores that may have [marks] already.
    fn find_on_gpu(&mut self, scores: &Array, marks: Option<Array>, count: usize, others: &[(usize, u32)]) {
        self.clear(scores.rows(), count.min(scores.width()));
        self.want(others);
        cuda::find(scores, marks, self);
        if current_step().is_none() {
            gpu().expect("the scores are on it").wait();
            self.collect();
        }
    }

    /// Takes what was found in a step on a GPU, which is done. Nothing to do on the host.
    pub fn collect(&mut self) {
        cuda::collect(self);
    }

    /// As [`TopK::find_and`] for the scores `x Wᵀ + b`, which are never written where they can be looked through as they are
    /// computed. False, and nothing is found, if there is no such way for this type of product or as many columns.
    pub fn find_in_product<'a>(
        &mut self,
        x: &Tensor,
        projection: impl Into<Projection<'a>>,
        compute: Compute,
        count: usize,
        others: &[(usize, u32)],
    ) -> bool {
        let projection = projection.into();
        projection.check("find_in_product", x);
        let [width, _] = projection.weight.shape();
        if x.device() == Device::Cuda && count > cuda::MOST {
            self.find_and(&project_wide(x, projection, compute), count, others, compute.precision.rounding());
            return true;
        }
        if x.device() == Device::Cuda {
            let (scores, marks) = project_marked(x, projection, compute);
            self.find_on_gpu(&scores, marks, count, others);
            return true;
        }
        if compute.precision != Precision::Int8 || count > MOST_IN_PRODUCT {
            return false;
        }
        self.clear(x.rows(), count.min(width));
        self.want(others);
        cpu::find_in_product(x, projection, self);
        true
    }

    fn want(&mut self, others: &[(usize, u32)]) {
        self.others.extend(others.iter().map(|&(row, column)| (row, column, 0.0)));
        self.others.sort_unstable_by_key(|&(row, column, _)| (row, column));
    }

    /// The score of a column that was asked for.
    pub fn other(&self, row: usize, column: u32) -> Option<f32> {
        let place = self.others.binary_search_by_key(&(row, column), |&(row, column, _)| (row, column));
        place.ok().map(|place| self.others[place].2)
    }

    fn clear(&mut self, rows: usize, count: usize) {
        self.count = count;
        self.normalizers.clear();
        self.normalizers.resize(rows, 0.0);
        self.best.clear();
        self.best.resize(rows * count, NOTHING);
        self.others.clear();
    }

    /// `log Σ_k e^{x_k}` of a row: the logarithm of a probability is its score less this. Not a finite number if the
    /// row has NaN or ∞, or nothing but −∞.
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

/// More best columns than this are found in scores that are there.
const MOST_IN_PRODUCT: usize = 64;

const NOTHING: Scored = Scored { index: 0, score: f32::NEG_INFINITY };

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
