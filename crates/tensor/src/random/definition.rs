//! The definition of every random draw, in integer arithmetic only, so that any device can reproduce it bit
//! for bit.
//!
//! All arithmetic is unsigned and wraps. The key of a stream is derived from 64-bit integers, once for an
//! operation:
//!
//! ```text
//! mix(x):  z = x + 9E3779B97F4A7C15
//!          z = (z ^ z >> 30) · BF58476D1CE4E5B9
//!          z = (z ^ z >> 27) · 94D049BB133111EB
//!          z ^ z >> 31
//! [high:low] = mix(mix(mix(seed) ^ step) ^ operation)
//! ```
//!
//! A draw is computed from 32-bit integers: two rounds of multiply and xor-shift, each with its own half of
//! the key.
//!
//! ```text
//! x = index · 9E3779B1 ^ low      x ^= x >> 16      x *= 7FEB352D      x ^= x >> 15
//! x += high      x *= 846CA68B    x ^= x >> 16      x *= 9E3779B1      x ^= x >> 15
//! ```
//!
//! Dropout gives element `i` the 16 bits `x >> 16·(i mod 2) & FFFF` of draw `⌊i / 2⌋` (truncated to 32 bits)
//! and drops it if they are below `threshold = round(65536 · rate)`. Kept elements are multiplied by
//! `1 / (1 − threshold / 65536)`, which is computed in f64 and rounded to f32.

/// Spreads indices; also the last multiplication.
pub(crate) const SPREAD: u32 = 0x9E37_79B1;
/// Multiplier of the first round.
pub(crate) const FIRST: u32 = 0x7FEB_352D;
/// Multiplier of the second round.
pub(crate) const SECOND: u32 = 0x846C_A68B;

/// The `[low, high]` halves of a stream's key.
pub(super) fn key(seed: u64, step: u64, operation: u64) -> [u32; 2] {
    let key = mix(mix(mix(seed) ^ step) ^ operation);
    [key as u32, (key >> 32) as u32]
}

/// The draw number `index` of the stream with this key.
#[inline(always)]
pub(super) fn bits([low, high]: [u32; 2], index: u32) -> u32 {
    let mut x = index.wrapping_mul(SPREAD) ^ low;
    x ^= x >> 16;
    x = x.wrapping_mul(FIRST);
    x ^= x >> 15;
    x = x.wrapping_add(high);
    x = x.wrapping_mul(SECOND);
    x ^= x >> 16;
    x = x.wrapping_mul(SPREAD);
    x ^ (x >> 15)
}

/// The threshold of 65536 below which an element is dropped, and the scale of kept elements.
pub(super) fn threshold_and_scale(rate: f32) -> (u32, f32) {
    let threshold = (f64::from(rate) * 65536.0).round() as u32;
    let kept = 1.0 - f64::from(threshold) / 65536.0;
    (threshold, (1.0 / kept) as f32)
}

fn mix(x: u64) -> u64 {
    let mut z = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Dropout, Stream};

    /// From a second implementation of the definition above: seed, step, operation; low, high; draws 0, 1, 2
    /// and the last.
    const VECTORS: [([u64; 3], [u32; 2], [u32; 4]); 4] = [
        ([0, 0, 0], [0x38FC_BE91, 0x2382_75BC], [0x3171_14A7, 0x9C5D_61AC, 0x1262_C2F2, 0x6E91_5BB5]),
        ([1, 2, 3], [0xFDE3_62B3, 0xD073_4750], [0x68F2_768C, 0xA25E_2710, 0x56E3_7450, 0x0253_EC63]),
        ([42, 1000, 17], [0x8479_1F91, 0x2171_2418], [0x9777_170F, 0x054F_4016, 0x2C1F_7841, 0x5686_3A4D]),
        ([u64::MAX, 1, 0], [0x9104_C1D5, 0x7548_D87B], [0xAAFC_304A, 0x418A_EF5F, 0xF42D_A5A9, 0xB75E_84AF]),
    ];

    #[test]
    fn draws_are_those_of_the_test_vectors() {
        for ([seed, step, operation], expected_key, draws) in VECTORS {
            assert_eq!(key(seed, step, operation), expected_key);
            for (index, expected) in [0, 1, 2, u32::MAX].into_iter().zip(draws) {
                assert_eq!(bits(expected_key, index), expected);
                assert_eq!(Stream::new(seed, step, operation).bits(index), expected);
            }
        }
    }

    #[test]
    fn dropout_is_that_of_the_test_vectors() {
        assert_eq!(threshold_and_scale(0.1), (6554, f32::from_bits(0x3F8E_3923)));
        assert_eq!(threshold_and_scale(0.5), (32768, 2.0));
        let dropout = Dropout::new(0.5, Stream::new(1, 2, 3));
        let kept: Vec<usize> = (0..24).filter(|&i| dropout.factor(i) == 2.0).collect();
        assert_eq!(kept, [3, 6, 9, 10, 15, 16, 17, 18, 20, 21, 23]);
        let dropout = Dropout::new(0.1, Stream::new(1, 2, 3));
        let dropped: Vec<usize> = (0..24).filter(|&i| dropout.factor(i) == 0.0).collect();
        assert_eq!(dropped, [19]);
    }
}
