//! Sentence lengths as real text has them.

use heedful_tensor::random::Stream;

/// `[source, target]` tokens of `count` pairs: log-normal with mean 25, a target a little longer or shorter than its source.
/// The same in every run.
pub fn realistic_lengths(count: u32) -> Vec<[usize; 2]> {
    const SIGMA: f32 = 0.6;
    let mu = 25.0_f32.ln() - SIGMA * SIGMA / 2.0;
    let (source, target) = (Stream::new(3, 0, 0), Stream::new(3, 0, 1));
    let pair = |i| {
        let length = (mu + SIGMA * source.normal(i)).exp();
        let translated = length * (0.12 * target.normal(i)).exp();
        [length, translated].map(|length| length.round().clamp(1.0, 200.0) as usize)
    };
    (0..count).map(pair).collect()
}
