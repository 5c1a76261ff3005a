//! Counter-based random numbers: a value is a function of (seed, step, operation, index), not of earlier
//! draws. Nothing is saved for backward, any thread can draw any part, and a resumed run draws the same.
//! `definition` is the function itself.

pub(crate) mod definition;

/// One stream of random numbers, for instance the dropout mask of one operation at one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    key: [u32; 2],
}

impl Stream {
    /// The stream number `operation` of training step `step` under `seed`.
    #[inline]
    pub fn new(seed: u64, step: u64, operation: u64) -> Stream {
        Stream { key: definition::key(seed, step, operation) }
    }

    /// The key, for kernels that draw themselves.
    #[inline(always)]
    pub(crate) fn key(self) -> [u32; 2] {
        self.key
    }

    /// 32 random bits for `index`: integer arithmetic that vectorises and is the same on every machine.
    #[inline(always)]
    pub fn bits(self, index: u32) -> u32 {
        definition::bits(self.key, index)
    }

    /// A uniform draw from `[0, 1)`.
    #[inline(always)]
    pub fn uniform(self, index: u32) -> f32 {
        (self.bits(index) >> 8) as f32 * (1.0 / 16_777_216.0)
    }

    /// A draw from the standard normal distribution.
    #[inline]
    pub fn normal(self, index: u32) -> f32 {
        let radius = (-2.0 * f64::from(1.0 - self.uniform(index.wrapping_mul(2))).max(1e-12).ln()).sqrt();
        let angle = std::f64::consts::TAU * f64::from(self.uniform(index.wrapping_mul(2) + 1));
        (radius * angle.cos()) as f32
    }
}

/// Dropout: each element is kept with probability `1 − rate` and then scaled by `1 / (1 − rate)`.
#[derive(Clone, Copy, Debug)]
pub struct Dropout {
    stream: Stream,
    /// An element is dropped when its 16 random bits are below this.
    threshold: u32,
    scale: f32,
}

impl Dropout {
    /// No dropout: inference, or a rate of 0.
    pub const NONE: Dropout = Dropout { stream: Stream { key: [0; 2] }, threshold: 0, scale: 1.0 };

    /// Dropout at `rate` with the draws of `stream`.
    ///
    /// # Panics
    /// If the rate is not in `[0, 1)`.
    #[inline]
    pub fn new(rate: f32, stream: Stream) -> Dropout {
        assert!((0.0..1.0).contains(&rate), "dropout: a rate of {rate} is not in [0, 1)");
        let (threshold, scale) = definition::threshold_and_scale(rate);
        Dropout { stream, threshold, scale }
    }

    /// Whether nothing is dropped.
    #[inline(always)]
    pub fn is_none(self) -> bool {
        self.threshold == 0
    }

    /// The key of the draws, for kernels that draw many at once.
    #[inline(always)]
    pub(crate) fn key(self) -> [u32; 2] {
        self.stream.key
    }

    /// An element is dropped when its 16 random bits are below this.
    #[inline(always)]
    pub(crate) fn threshold(self) -> u32 {
        self.threshold
    }

    /// The scale of kept elements: `1 / (1 − rate)`.
    #[inline(always)]
    pub fn scale(self) -> f32 {
        self.scale
    }

    /// The factor of element `index`: 0 or `1 / (1 − rate)`.
    ///
    /// Two neighbours share one draw of 32 bits, 16 for each.
    #[inline(always)]
    pub fn factor(self, index: usize) -> f32 {
        let bits = self.stream.bits((index >> 1) as u32);
        let draw = (bits >> ((index as u32 & 1) * 16)) & 0xffff;
        if draw < self.threshold { 0.0 } else { self.scale }
    }

    /// Writes the factors of elements `start …`. From an even start on every draw is made once and gives two
    /// of them, half the work of [`Self::factor`]; the compiler vectorises a loop of unknown length best.
    #[inline(always)]
    pub(crate) fn fill(self, factors: &mut [f32], start: usize) {
        if start % 2 == 1 {
            for (i, factor) in factors.iter_mut().enumerate() {
                *factor = self.factor(start + i);
            }
            return;
        }
        let count = factors.len();
        let (pairs, rest) = factors.as_chunks_mut::<2>();
        let first = (start / 2) as u32;
        for (i, [low, high]) in pairs.iter_mut().enumerate() {
            let bits = self.stream.bits(first.wrapping_add(i as u32));
            *low = if bits & 0xffff < self.threshold { 0.0 } else { self.scale };
            *high = if bits >> 16 < self.threshold { 0.0 } else { self.scale };
        }
        if let [last] = rest {
            *last = self.factor(start + count - 1);
        }
    }

    /// Multiplies a row, whose first element has index `start`, by its factors.
    #[inline(always)]
    pub(crate) fn apply(self, row: &mut [f32], start: usize) {
        if self.is_none() {
            return;
        }
        let mut factors = [0.0; DRAWS];
        for (piece, row) in row.chunks_mut(DRAWS).enumerate() {
            let factors = &mut factors[..row.len()];
            self.fill(factors, start + piece * DRAWS);
            for (x, factor) in row.iter_mut().zip(factors) {
                *x *= *factor;
            }
        }
    }
}

/// Factors to draw at a time: they stay in the L1 cache.
pub(crate) const DRAWS: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropout_keeps_its_rate_and_its_mean() {
        for (operation, rate) in [(0, 0.1_f32), (1, 0.3), (2, 0.5)] {
            let dropout = Dropout::new(rate, Stream::new(7, 3, operation));
            let n = 200_000;
            let dropped = (0..n).filter(|&i| dropout.factor(i) == 0.0).count() as f32 / n as f32;
            let mean = (0..n).map(|i| f64::from(dropout.factor(i))).sum::<f64>() / n as f64;
            assert!((dropped - rate).abs() < 0.005, "{dropped} for {rate}");
            assert!((mean - 1.0).abs() < 0.01, "{mean}");
        }
        assert!((0..100).all(|i| Dropout::NONE.factor(i) == 1.0));
    }

    #[test]
    fn factors_are_those_of_each_element() {
        let dropout = Dropout::new(0.3, Stream::new(1, 2, 3));
        for (start, count) in [(0, 32), (1, 31), (6, 7), (77, 300), (100, 1000)] {
            let expected: Vec<f32> = (0..count).map(|i| dropout.factor(start + i)).collect();
            let mut factors = vec![1.0; count];
            dropout.fill(&mut factors, start);
            assert_eq!(factors, expected);
            let mut row = vec![1.0; count];
            dropout.apply(&mut row, start);
            assert_eq!(row, expected);
        }
    }

    #[test]
    fn neighbouring_streams_and_indices_are_uncorrelated() {
        let n = 100_000;
        let (a, b) = (Stream::new(1, 1, 0), Stream::new(1, 1, 1));
        let product = |f: &dyn Fn(u32) -> f32| (0..n).map(|i| f64::from(f(i))).sum::<f64>() / f64::from(n);
        assert!(product(&|i| (a.uniform(i) - 0.5) * (b.uniform(i) - 0.5)).abs() < 1e-3);
        assert!(product(&|i| (a.uniform(i) - 0.5) * (a.uniform(i + 1) - 0.5)).abs() < 1e-3);
        assert!(product(&|i| a.normal(i)).abs() < 0.01);
        assert!((product(&|i| a.normal(i).powi(2)) - 1.0).abs() < 0.02);
    }
}
