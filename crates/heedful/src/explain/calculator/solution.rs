//! Computes all tables of an exercise.

use super::exercise::{Exercise, Input, Projection, Score};
use super::matrix::{Matrix, dot};

/// Every table of an exercise.
#[derive(Clone, Debug)]
pub struct Solution {
    /// The exercise.
    pub(super) exercise: Exercise,
    /// Queries of all heads.
    pub q: Matrix,
    /// Keys of all heads.
    pub k: Matrix,
    /// Values of all heads.
    pub v: Matrix,
    /// The tables of each head.
    pub heads: Vec<HeadSolution>,
    /// The results of all heads side by side.
    pub result: Matrix,
    /// `result W_o + b_o`, if W_o is given.
    pub output: Option<Matrix>,
}

/// The tables of one head; all but the result are queries × keys.
#[derive(Clone, Debug)]
pub struct HeadSolution {
    /// The score of each key for each query.
    pub scores: Matrix,
    /// The scores divided by √d_k, for scaled-dot; otherwise equal to `scores`.
    pub scaled: Matrix,
    /// The scaled scores, with −∞ where the mask hides a key from a query.
    pub masked: Matrix,
    /// The softmax of each row.
    pub weights: Matrix,
    /// The weighted sum of the values: queries × width of the values.
    pub result: Matrix,
}

impl Exercise {
    /// Computes every table.
    pub fn solve(self) -> Solution {
        let [q, k, v] = match &self.input {
            Input::Given { q, k, v } => [q.clone(), k.clone(), v.clone()],
            Input::Projected { x, memory, w } => {
                let memory = memory.as_ref().unwrap_or(x);
                [w[0].of(x), w[1].of(memory), w[2].of(memory)]
            }
        };
        let block = |matrix: &Matrix, head: usize| {
            let width = matrix.width() / self.heads;
            matrix.column_range(head * width..(head + 1) * width)
        };
        let of_head = |head| self.head([block(&q, head), block(&k, head), block(&v, head)]);
        let heads: Vec<HeadSolution> = (0..self.heads).map(of_head).collect();
        let result = Matrix::concat_columns(&heads.iter().map(|head| &head.result).collect::<Vec<_>>());
        let output = self.output.as_ref().map(|output| output.of(&result));
        Solution { exercise: self, q, k, v, heads, result, output }
    }

    fn head(&self, [q, k, v]: [Matrix; 3]) -> HeadSolution {
        let scores = self.score.of(&q, &k);
        let scaled = match self.score {
            Score::ScaledDot => scores.scaled((k.width() as f64).sqrt().recip()),
            _ => scores.clone(),
        };
        let sizes = [scaled.height(), scaled.width()];
        let masked = Matrix::from_fn(sizes[0], sizes[1], |query, key| {
            let is_allowed = self.mask.iter().all(|rule| rule.allows([query, key], sizes));
            if is_allowed { scaled.row(query)[key] } else { f64::NEG_INFINITY }
        });
        let weights = masked.softmax();
        let result = weights.matmul(&v);
        HeadSolution { scores, scaled, masked, weights, result }
    }
}

impl Projection {
    fn of(&self, x: &Matrix) -> Matrix {
        x.matmul(&self.weight).add_row(self.bias.as_deref())
    }
}

impl Score {
    /// The scores, queries × keys.
    fn of(&self, q: &Matrix, k: &Matrix) -> Matrix {
        match self {
            Score::Dot | Score::ScaledDot => q.matmul_transposed(k),
            Score::General { matrix } => q.matmul(matrix).matmul_transposed(k),
            Score::Additive { query, key, bias, vector } => {
                let (q, k) = (q.matmul(query).add_row(bias.as_deref()), k.matmul(key));
                Matrix::from_fn(q.height(), k.height(), |i, j| {
                    let inner: Vec<f64> =
                        q.row(i).iter().zip(k.row(j)).map(|(q, k)| (q + k).tanh()).collect();
                    dot(&inner, vector)
                })
            }
        }
    }
}
