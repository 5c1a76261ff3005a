//! The computation, step by step.

use super::exercise::{Exercise, Input, Projection, Score};
use super::matrix::{Matrix, dot};

/// Every table of an exercise.
#[derive(Clone, Debug)]
pub struct Solution {
    /// What was solved.
    pub(super) exercise: Exercise,
    /// Queries of all heads.
    pub q: Matrix,
    /// Keys of all heads.
    pub k: Matrix,
    /// Values of all heads.
    pub v: Matrix,
    /// What each head computes.
    pub heads: Vec<HeadSolution>,
    /// The results of all heads side by side.
    pub result: Matrix,
    /// `result W_o + b_o`, if W_o is given.
    pub output: Option<Matrix>,
}

/// The tables of one head, queries × keys but for the result.
#[derive(Clone, Debug)]
pub struct HeadSolution {
    /// How well each key answers each query.
    pub scores: Matrix,
    /// The scores divided by √d_k, where the score does that.
    pub scaled: Matrix,
    /// The same with −∞ where a query may not see a key.
    pub masked: Matrix,
    /// The softmax of each row.
    pub weights: Matrix,
    /// The values, averaged by the weights: queries × width of the values.
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
            matrix.columns(head * width..(head + 1) * width)
        };
        let of_head = |head| self.head([block(&q, head), block(&k, head), block(&v, head)]);
        let heads: Vec<HeadSolution> = (0..self.heads).map(of_head).collect();
        let result = Matrix::beside(&heads.iter().map(|head| &head.result).collect::<Vec<_>>());
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
        let masked = Matrix::of(sizes[0], sizes[1], |query, key| {
            let is_seen = self.mask.iter().all(|rule| rule.allows([query, key], sizes));
            if is_seen { scaled.row(query)[key] } else { f64::NEG_INFINITY }
        });
        let weights = masked.softmax();
        let result = weights.times(&v);
        HeadSolution { scores, scaled, masked, weights, result }
    }
}

impl Projection {
    fn of(&self, x: &Matrix) -> Matrix {
        x.times(&self.weight).plus_row(self.bias.as_deref())
    }
}

impl Score {
    /// queries × keys.
    fn of(&self, q: &Matrix, k: &Matrix) -> Matrix {
        match self {
            Score::Dot | Score::ScaledDot => q.times_transposed(k),
            Score::General { matrix } => q.times(matrix).times_transposed(k),
            Score::Additive { query, key, bias, vector } => {
                let (q, k) = (q.times(query).plus_row(bias.as_deref()), k.times(key));
                Matrix::of(q.height(), k.height(), |i, j| {
                    let inner: Vec<f64> =
                        q.row(i).iter().zip(k.row(j)).map(|(q, k)| (q + k).tanh()).collect();
                    dot(&inner, vector)
                })
            }
        }
    }
}
