//! NumPy's default random generator, so that a seed gives the same draws as in sacreBLEU: PCG64 (O'Neill
//! 2014, XSL-RR output over a 128-bit state), seeded by `SeedSequence`.

const MULTIPLIER: u128 = 0x2360_ED05_1FC6_5DA4_4385_DF64_9FCC_F645;

/// The equivalent of `numpy.random.default_rng(seed)`.
pub(super) struct Generator {
    state: u128,
    increment: u128,
    /// The upper half of the last 64-bit draw, if only its lower half has been returned.
    upper: Option<u32>,
}

impl Generator {
    pub(super) fn new(seed: u64) -> Generator {
        let [a, b, c, d] = seed_words(seed);
        let join = |high: u64, low: u64| u128::from(high) << 64 | u128::from(low);
        let mut generator = Generator { state: 0, increment: join(c, d) << 1 | 1, upper: None };
        generator.step();
        generator.state = generator.state.wrapping_add(join(a, b));
        generator.step();
        generator
    }

    /// A uniform draw below `end`, as in `Generator.choice` and `Generator.integers` (Lemire 2019).
    pub(super) fn below(&mut self, end: usize) -> usize {
        let end = u32::try_from(end).expect("fewer than 2^32 sentences");
        if end == 1 {
            return 0;
        }
        let mut product = u64::from(self.next_u32()) * u64::from(end);
        if (product as u32) < end {
            let threshold = end.wrapping_neg() % end;
            while (product as u32) < threshold {
                product = u64::from(self.next_u32()) * u64::from(end);
            }
        }
        (product >> 32) as usize
    }

    /// Random bits, as in `Generator.integers(2, dtype=bool)`.
    pub(super) fn bits(&mut self) -> Bits<'_> {
        Bits { generator: self, word: 0, left: 0 }
    }

    fn next_u32(&mut self) -> u32 {
        if let Some(upper) = self.upper.take() {
            return upper;
        }
        self.step();
        let mixed = (self.state >> 64) as u64 ^ self.state as u64;
        let draw = mixed.rotate_right((self.state >> 122) as u32);
        self.upper = Some((draw >> 32) as u32);
        draw as u32
    }

    fn step(&mut self) {
        self.state = self.state.wrapping_mul(MULTIPLIER).wrapping_add(self.increment);
    }
}

pub(super) struct Bits<'g> {
    generator: &'g mut Generator,
    word: u32,
    left: u32,
}

impl Bits<'_> {
    pub(super) fn next_bit(&mut self) -> bool {
        if self.left == 0 {
            self.word = self.generator.next_u32();
            self.left = 32;
        }
        let bit = self.word & 1 == 1;
        self.word >>= 1;
        self.left -= 1;
        bit
    }
}

/// `SeedSequence(seed).generate_state(4, uint64)`: hashes the seed's words into a pool of four words, mixes
/// each word into all others, and hashes the pool twice to get the result.
fn seed_words(seed: u64) -> [u64; 4] {
    let mut absorb = Hash { constant: 0x43b0_d7e5, multiplier: 0x931e_8875 };
    let mut pool = [seed as u32, (seed >> 32) as u32, 0, 0].map(|word| absorb.next(word));
    for source in 0..4 {
        for target in 0..4 {
            if source != target {
                let hashed = absorb.next(pool[source]);
                let mixed =
                    pool[target].wrapping_mul(0xca01_f9dd).wrapping_sub(hashed.wrapping_mul(0x4973_f715));
                pool[target] = mixed ^ mixed >> 16;
            }
        }
    }
    let mut emit = Hash { constant: 0x8b51_f9dd, multiplier: 0x58f3_8ded };
    let halves: [u32; 8] = std::array::from_fn(|i| emit.next(pool[i % 4]));
    std::array::from_fn(|i| u64::from(halves[2 * i + 1]) << 32 | u64::from(halves[2 * i]))
}

/// A hash whose constant changes with every word.
struct Hash {
    constant: u32,
    multiplier: u32,
}

impl Hash {
    fn next(&mut self, word: u32) -> u32 {
        let word = word ^ self.constant;
        self.constant = self.constant.wrapping_mul(self.multiplier);
        let word = word.wrapping_mul(self.constant);
        word ^ word >> 16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_match_numpy() {
        // numpy.random.default_rng(seed).choice(1000, size=6), .choice(3_000_000_000, size=4)
        let cases = [
            (12345, [699, 227, 788, 316, 204, 797], [2_097_645_094, 682_008_066, 2_365_940_964, 950_275_018]),
            (1, [473, 511, 755, 950, 34, 144], [1_535_464_873, 2_851_391_088, 104_557_657, 2_845_948_340]),
            (
                (1 << 40) + 7,
                [206, 829, 609, 255, 17, 153],
                [2_489_438_675, 1_828_512_392, 765_915_474, 51_031_264],
            ),
        ];
        for (seed, small, large) in cases {
            let mut generator = Generator::new(seed);
            assert_eq!(small.map(|_| generator.below(1000)), small);
            let mut generator = Generator::new(seed);
            assert_eq!(large.map(|_| generator.below(3_000_000_000)), large);
            assert_eq!(generator.below(1), 0);
        }
    }

    #[test]
    fn bits_match_numpy() {
        // numpy.random.default_rng(12345).integers(2, size=40, dtype=bool)
        let expected = "1011100110000011111111110100110110110001";
        let mut generator = Generator::new(12345);
        let mut bits = generator.bits();
        let drawn: String = expected.chars().map(|_| if bits.next_bit() { '1' } else { '0' }).collect();
        assert_eq!(drawn, expected);
    }
}
