//! Generates inputs by mutating valid ones.

/// Boundary values of integer types, and values at which sizes overflow.
const BOUNDARY_VALUES: [u64; 22] = [
    0,
    1,
    2,
    7,
    8,
    16,
    64,
    127,
    128,
    255,
    256,
    1023,
    65_535,
    65_536,
    100_000_000,
    0x7FFF_FFFF,
    0xFFFF_FFFF,
    0x1_0000_0000,
    1 << 53,
    1 << 62,
    i64::MAX as u64,
    u64::MAX,
];

/// Replacements for numbers in text.
const TEXT_NUMBERS: [&str; 9] =
    ["-1", "-0", "0.5", "1e9", "1e308", "1e999", "null", "18446744073709551616", "9223372036854775808"];

/// Maximum length of an input, unless a valid one is longer.
const MAX_LENGTH: usize = 1 << 16;

/// A counter-based random number generator: the same seed, name and number give the same sequence.
pub struct InputRng(u64);

impl InputRng {
    /// The generator of one input.
    pub fn new(seed: u64, name: &str, number: u64) -> InputRng {
        let name = name.bytes().fold(seed, |hash, byte| mixed(hash ^ u64::from(byte)));
        InputRng(mixed(name ^ mixed(number)))
    }

    /// A random u64.
    pub fn any(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mixed(self.0)
    }

    /// A random number below `end`; 0 if `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        if end == 0 { 0 } else { (self.any() % end as u64) as usize }
    }

    fn choose<'a, T>(&mut self, list: &'a [T]) -> Option<&'a T> {
        list.get(self.below(list.len()))
    }
}

/// The output function of SplitMix64 (Steele et al. 2014).
fn mixed(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

/// Input `number` of a target: first the seed inputs themselves, then mutations of them.
pub fn input(seed: u64, name: &str, number: u64, seeds: &[Vec<u8>], words: &[&str]) -> Vec<u8> {
    if let Some(whole) = usize::try_from(number).ok().and_then(|number| seeds.get(number)) {
        return whole.clone();
    }
    let mut rng = InputRng::new(seed, name, number);
    let mut bytes = rng.choose(seeds).cloned().unwrap_or_default();
    let longest = bytes.len().max(MAX_LENGTH);
    // Mostly one mutation or two, so that the rest of the input is still read; sometimes many.
    let max_mutations = 1 << rng.below(6);
    let mutations = 1 + rng.below(max_mutations);
    for _ in 0..mutations {
        mutate(&mut bytes, seeds, words, &mut rng);
        bytes.truncate(longest);
    }
    bytes
}

fn mutate(bytes: &mut Vec<u8>, seeds: &[Vec<u8>], words: &[&str], rng: &mut InputRng) {
    let at = rng.below(bytes.len());
    match rng.below(16) {
        0 | 1 if !bytes.is_empty() => bytes[at] ^= 1 << rng.below(8),
        2 if !bytes.is_empty() => bytes[at] = rng.any() as u8,
        3 if !bytes.is_empty() => bytes[at] = bytes[at].wrapping_add(rng.below(9) as u8).wrapping_sub(4),
        4 => overwrite_number(bytes, at, rng),
        5 | 6 => replace_digits(bytes, at, rng),
        7 => bytes.truncate(at),
        8 => drop(bytes.drain(random_range(bytes.len(), rng))),
        9 => {
            let copied = bytes[random_range(bytes.len(), rng)].to_vec();
            bytes.splice(at..at, copied);
        }
        10 => {
            let copied = bytes[random_range(bytes.len(), rng)].to_vec();
            let end = bytes.len().min(at + copied.len());
            bytes.splice(at..end, copied);
        }
        11 => {
            let other = rng.choose(seeds).map(Vec::as_slice).unwrap_or_default();
            let from = rng.below(other.len());
            bytes.truncate(at);
            bytes.extend_from_slice(&other[from..]);
        }
        12 => {
            let new: Vec<u8> = (0..1 + rng.below(8)).map(|_| rng.any() as u8).collect();
            bytes.splice(at..at, new);
        }
        13 | 14 => {
            let word = word(seeds, words, rng);
            let end = if rng.below(2) == 0 { at } else { bytes.len().min(at + word.len()) };
            bytes.splice(at..end, word.iter().copied());
        }
        _ => repeat(bytes, at, word(seeds, words, rng), rng),
    }
}

/// A word of the format: from its list, or from a seed input.
fn word(seeds: &[Vec<u8>], words: &[&str], rng: &mut InputRng) -> Vec<u8> {
    if !words.is_empty() && rng.below(2) == 0 {
        return rng.choose(words).map(|word| word.as_bytes().to_vec()).unwrap_or_default();
    }
    let text = rng.choose(seeds).map(Vec::as_slice).unwrap_or_default();
    let at = rng.below(text.len());
    let is_end = |byte: &u8| byte.is_ascii() && !byte.is_ascii_alphanumeric() && *byte != b'_';
    let start = text[..at].iter().rposition(is_end).map_or(0, |end| end + 1);
    let end = text[at..].iter().position(is_end).map_or(text.len(), |end| at + end);
    text[start..end].to_vec()
}

/// A random range of the bytes, mostly a short one.
fn random_range(length: usize, rng: &mut InputRng) -> std::ops::Range<usize> {
    let start = rng.below(length);
    let longest = if rng.below(4) == 0 { length } else { length.min(32) };
    start..length.min(start + rng.below(longest) + usize::from(length > 0))
}

fn overwrite_number(bytes: &mut [u8], at: usize, rng: &mut InputRng) {
    let number = rng.choose(&BOUNDARY_VALUES).copied().unwrap_or_default();
    let (little, big) = (number.to_le_bytes(), number.to_be_bytes());
    let width = [1, 2, 4, 8][rng.below(4)];
    let number = if rng.below(4) == 0 { &big[8 - width..] } else { &little[..width] };
    for (byte, new) in bytes[at..].iter_mut().zip(number) {
        *byte = *new;
    }
}

/// Replaces the next decimal number.
fn replace_digits(bytes: &mut Vec<u8>, at: usize, rng: &mut InputRng) {
    let Some(start) = bytes[at..].iter().position(u8::is_ascii_digit).map(|offset| at + offset) else {
        return;
    };
    let end = bytes[start..].iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(bytes.len() - start);
    let new = match rng.below(3) {
        0 => rng.choose(&TEXT_NUMBERS).copied().unwrap_or_default().to_owned(),
        1 => rng.below(1000).to_string(),
        _ => rng.choose(&BOUNDARY_VALUES).copied().unwrap_or_default().to_string(),
    };
    bytes.splice(start..start + end, new.into_bytes());
}

/// Repeats a byte or a word: deep nesting, long lines.
fn repeat(bytes: &mut Vec<u8>, at: usize, word: Vec<u8>, rng: &mut InputRng) {
    let word = match rng.below(2) {
        0 => bytes.get(at..at + 1).unwrap_or_default().to_vec(),
        _ => word,
    };
    let max_exponent = if rng.below(8) == 0 { 14 } else { 6 };
    let times = 1 << rng.below(max_exponent);
    let times = times.min(MAX_LENGTH / word.len().max(1));
    bytes.splice(at..at, word.repeat(times));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_a_function_of_seed_target_and_number() {
        let seeds = [b"one 1 {}".to_vec(), b"two [2, 3]".to_vec()];
        let make = |seed, name, number| input(seed, name, number, &seeds, &["null"]);
        assert_eq!([make(1, "a", 0), make(1, "a", 1)], seeds);
        let all = |seed, name| (2..500).map(|number| make(seed, name, number)).collect::<Vec<_>>();
        assert_eq!(all(1, "a"), all(1, "a"));
        assert_ne!(all(1, "a"), all(2, "a"));
        assert_ne!(all(1, "a"), all(1, "b"));
        let mut distinct = all(1, "a");
        distinct.sort();
        distinct.dedup();
        assert!(distinct.len() > 400, "{}", distinct.len());
    }

    #[test]
    fn empty_seed_inputs_are_allowed() {
        for number in 0..2000 {
            assert!(input(3, "empty", number, &[], &[]).len() <= MAX_LENGTH);
            assert!(input(3, "empty", number, &[Vec::new()], &["", "x"]).len() <= MAX_LENGTH);
        }
    }
}
