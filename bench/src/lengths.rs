//! Sentence lengths distributed as in real text.

use heedful_tensor::random::Stream;

/// `[source, target]` tokens of `count` pairs: log-normal with mean 25, a target a little longer or shorter
/// than its source. The same in every run.
pub fn realistic_lengths(count: u32) -> Vec<[usize; 2]> {
    let target = Stream::new(3, 0, 1);
    let pair = |i| {
        let length = log_normal(i, 25.0);
        let translated = length * (0.12 * target.normal(i)).exp();
        [length, translated].map(whole)
    };
    (0..count).map(pair).collect()
}

/// Tokens of `count` texts: log-normal with this mean. The same in every run.
pub fn text_lengths(count: u32, mean: f32) -> Vec<usize> {
    (0..count).map(|i| whole(log_normal(i, mean))).collect()
}

fn log_normal(i: u32, mean: f32) -> f32 {
    const SIGMA: f32 = 0.6;
    let mu = mean.ln() - SIGMA * SIGMA / 2.0;
    (mu + SIGMA * Stream::new(3, 0, 0).normal(i)).exp()
}

fn whole(length: f32) -> usize {
    length.round().clamp(1.0, 200.0) as usize
}
