//! Naive f64 implementations of the formulas.

use heedful_tensor::random::Dropout;

/// A matrix of f64.
#[derive(Clone, Debug)]
pub(crate) struct M {
    pub(crate) rows: usize,
    pub(crate) width: usize,
    pub(crate) values: Vec<f64>,
}

impl M {
    pub(crate) fn build(rows: usize, width: usize, element: impl Fn(usize, usize) -> f64) -> M {
        let values = (0..rows * width).map(|i| element(i / width, i % width)).collect();
        M { rows, width, values }
    }

    pub(crate) fn shape(&self) -> [usize; 2] {
        [self.rows, self.width]
    }

    pub(crate) fn at(&self, row: usize, column: usize) -> f64 {
        self.values[row * self.width + column]
    }

    pub(crate) fn to_f32(&self) -> Vec<f32> {
        self.values.iter().map(|&x| x as f32).collect()
    }

    pub(crate) fn map(&self, f: impl Fn(f64) -> f64) -> M {
        M { values: self.values.iter().map(|&x| f(x)).collect(), ..*self }
    }

    /// `self + factor · other`.
    pub(crate) fn plus(&self, other: &M, factor: f64) -> M {
        M::build(self.rows, self.width, |r, c| self.at(r, c) + factor * other.at(r, c))
    }

    /// `self + row` for every row.
    pub(crate) fn plus_row(&self, row: &M) -> M {
        M::build(self.rows, self.width, |r, c| self.at(r, c) + row.at(0, c))
    }

    pub(crate) fn transposed(&self) -> M {
        M::build(self.width, self.rows, |r, c| self.at(c, r))
    }

    pub(crate) fn times(&self, other: &M) -> M {
        M::build(self.rows, other.width, |r, c| (0..self.width).map(|k| self.at(r, k) * other.at(k, c)).sum())
    }

    pub(crate) fn columns(&self, range: std::ops::Range<usize>) -> M {
        M::build(self.rows, range.len(), |r, c| self.at(r, range.start + c))
    }

    pub(crate) fn sum(&self) -> f64 {
        self.values.iter().sum()
    }

    pub(crate) fn dropped(&self, dropout: Dropout) -> M {
        M::build(self.rows, self.width, |r, c| self.at(r, c) * f64::from(dropout.factor(r * self.width + c)))
    }

    pub(crate) fn softmax(&self) -> M {
        let exps = self.map(f64::exp);
        M::build(self.rows, self.width, |r, c| {
            exps.at(r, c) / (0..self.width).map(|k| exps.at(r, k)).sum::<f64>()
        })
    }

    pub(crate) fn layer_norm(&self, gamma: &M, beta: &M, epsilon: f64) -> M {
        let count = self.width as f64;
        let row = |r: usize| &self.values[r * self.width..(r + 1) * self.width];
        let statistics: Vec<(f64, f64)> = (0..self.rows)
            .map(|r| {
                let mean = row(r).iter().sum::<f64>() / count;
                (mean, row(r).iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count)
            })
            .collect();
        M::build(self.rows, self.width, |r, c| {
            let (mean, variance) = statistics[r];
            gamma.at(0, c) * (self.at(r, c) - mean) / (variance + epsilon).sqrt() + beta.at(0, c)
        })
    }
}

/// GELU's approximation by a tanh.
pub(crate) fn gelu_tanh(x: f64) -> f64 {
    0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).tanh())
}

/// `x / (1 + e^{−x})`.
pub(crate) fn silu(x: f64) -> f64 {
    x / (1.0 + (-x).exp())
}

/// `x Φ(x)` by the series of the error function, which converges everywhere.
pub(crate) fn gelu(x: f64) -> f64 {
    let z = x / std::f64::consts::SQRT_2;
    let (mut term, mut erf) = (z, z);
    for n in 1..200 {
        term *= -z * z / f64::from(n);
        erf += term / f64::from(2 * n + 1);
    }
    0.5 * x * (1.0 + erf * 2.0 / std::f64::consts::PI.sqrt())
}
