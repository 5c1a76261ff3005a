//! Attention weights that are returned to the host.

use super::super::{Problem, ReturnWeights};
use crate::cuda::{Buffer, upload};
use crate::{Array, DType, Device};

/// The weights of every sequence and head, and their scores if requested, before they are copied to the host.
pub(super) struct ReturnedWeights {
    pub(super) weights: Array,
    pub(super) scores: Option<Array>,
    pub(super) offsets: Buffer,
    ends: Vec<u64>,
}

/// One matrix for each sequence and head.
pub(super) type Matrices = Vec<Vec<f32>>;

impl ReturnedWeights {
    pub(super) fn new(problem: &Problem, requested: ReturnWeights) -> ReturnedWeights {
        let Problem { query_sequences, key_sequences, heads, .. } = problem;
        let sizes = query_sequences.lengths().zip(key_sequences.lengths()).map(|(m, n)| (m * n) as u64);
        let mut ends = vec![0];
        for size in sizes.flat_map(|size| std::iter::repeat_n(size, *heads)) {
            ends.push(ends[ends.len() - 1] + size);
        }
        let total = ends[ends.len() - 1] as usize;
        let scratch = || Array::scratch_on(Device::Cuda, DType::F32, 1, total);
        let scores = (requested == ReturnWeights::WithScores).then(scratch);
        ReturnedWeights { weights: scratch(), scores, offsets: upload(&ends), ends }
    }

    pub(super) fn to_vecs(&self) -> (Matrices, Option<Matrices>) {
        let split = |values: &Array| -> Matrices {
            let values = values.to_vec();
            self.ends.windows(2).map(|pair| values[pair[0] as usize..pair[1] as usize].to_vec()).collect()
        };
        (split(&self.weights), self.scores.as_ref().map(split))
    }
}
