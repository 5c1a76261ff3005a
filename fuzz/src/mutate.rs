//! Inputs that are almost good: a good one with a few changes.

/// Numbers at the edges of types, and those that sizes overflow at.
const NUMBERS: [u64; 22] = [
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

/// What takes the place of numbers in text.
const SPELLED: [&str; 9] =
    ["-1", "-0", "0.5", "1e9", "1e308", "1e999", "null", "18446744073709551616", "9223372036854775808"];

/// No input is longer, unless a good one is.
const LONGEST: usize = 1 << 16;

/// Draws from a counter: the same name, seed and number give the same draws.
pub struct Draws(u64);

impl Draws {
    /// The draws of one input.
    pub fn new(seed: u64, name: &str, number: u64) -> Draws {
        let name = name.bytes().fold(seed, |hash, byte| mixed(hash ^ u64::from(byte)));
        Draws(mixed(name ^ mixed(number)))
    }

    /// Any number.
    pub fn any(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mixed(self.0)
    }

    /// A number below `end`; 0 if there is none.
    pub fn below(&mut self, end: usize) -> usize {
        if end == 0 { 0 } else { (self.any() % end as u64) as usize }
    }

    fn one_of<'a, T>(&mut self, list: &'a [T]) -> Option<&'a T> {
        list.get(self.below(list.len()))
    }
}

/// The last step of SplitMix64 (Steele et al. 2014).
fn mixed(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

/// Input `number` of a target: first the good ones as they are, then changed ones.
pub fn input(seed: u64, name: &str, number: u64, good: &[Vec<u8>], words: &[&str]) -> Vec<u8> {
    if let Some(whole) = usize::try_from(number).ok().and_then(|number| good.get(number)) {
        return whole.clone();
    }
    let mut draws = Draws::new(seed, name, number);
    let mut bytes = draws.one_of(good).cloned().unwrap_or_default();
    let longest = bytes.len().max(LONGEST);
    // Mostly one change or two, which leave the rest to be read; sometimes many.
    let most = 1 << draws.below(6);
    let changes = 1 + draws.below(most);
    for _ in 0..changes {
        change(&mut bytes, good, words, &mut draws);
        bytes.truncate(longest);
    }
    bytes
}

fn change(bytes: &mut Vec<u8>, good: &[Vec<u8>], words: &[&str], draws: &mut Draws) {
    let at = draws.below(bytes.len());
    match draws.below(16) {
        0 | 1 if !bytes.is_empty() => bytes[at] ^= 1 << draws.below(8),
        2 if !bytes.is_empty() => bytes[at] = draws.any() as u8,
        3 if !bytes.is_empty() => bytes[at] = bytes[at].wrapping_add(draws.below(9) as u8).wrapping_sub(4),
        4 => overwrite_number(bytes, at, draws),
        5 | 6 => replace_digits(bytes, at, draws),
        7 => bytes.truncate(at),
        8 => drop(bytes.drain(stretch(bytes.len(), draws))),
        9 => {
            let copied = bytes[stretch(bytes.len(), draws)].to_vec();
            bytes.splice(at..at, copied);
        }
        10 => {
            let copied = bytes[stretch(bytes.len(), draws)].to_vec();
            let end = bytes.len().min(at + copied.len());
            bytes.splice(at..end, copied);
        }
        11 => {
            let other = draws.one_of(good).map(Vec::as_slice).unwrap_or_default();
            let from = draws.below(other.len());
            bytes.truncate(at);
            bytes.extend_from_slice(&other[from..]);
        }
        12 => {
            let new: Vec<u8> = (0..1 + draws.below(8)).map(|_| draws.any() as u8).collect();
            bytes.splice(at..at, new);
        }
        13 | 14 => {
            let word = word(good, words, draws);
            let end = if draws.below(2) == 0 { at } else { bytes.len().min(at + word.len()) };
            bytes.splice(at..end, word.iter().copied());
        }
        _ => repeat(bytes, at, word(good, words, draws), draws),
    }
}

/// A word of the format: one of its list, or one that a good input has.
fn word(good: &[Vec<u8>], words: &[&str], draws: &mut Draws) -> Vec<u8> {
    if !words.is_empty() && draws.below(2) == 0 {
        return draws.one_of(words).map(|word| word.as_bytes().to_vec()).unwrap_or_default();
    }
    let text = draws.one_of(good).map(Vec::as_slice).unwrap_or_default();
    let at = draws.below(text.len());
    let is_end = |byte: &u8| byte.is_ascii() && !byte.is_ascii_alphanumeric() && *byte != b'_';
    let start = text[..at].iter().rposition(is_end).map_or(0, |end| end + 1);
    let end = text[at..].iter().position(is_end).map_or(text.len(), |end| at + end);
    text[start..end].to_vec()
}

/// A stretch of the bytes, mostly a short one.
fn stretch(length: usize, draws: &mut Draws) -> std::ops::Range<usize> {
    let start = draws.below(length);
    let longest = if draws.below(4) == 0 { length } else { length.min(32) };
    start..length.min(start + draws.below(longest) + usize::from(length > 0))
}

fn overwrite_number(bytes: &mut [u8], at: usize, draws: &mut Draws) {
    let number = draws.one_of(&NUMBERS).copied().unwrap_or_default();
    let (little, big) = (number.to_le_bytes(), number.to_be_bytes());
    let width = [1, 2, 4, 8][draws.below(4)];
    let number = if draws.below(4) == 0 { &big[8 - width..] } else { &little[..width] };
    for (byte, new) in bytes[at..].iter_mut().zip(number) {
        *byte = *new;
    }
}

/// Another number in place of the next one that is spelled in digits.
fn replace_digits(bytes: &mut Vec<u8>, at: usize, draws: &mut Draws) {
    let Some(start) = bytes[at..].iter().position(u8::is_ascii_digit).map(|offset| at + offset) else {
        return;
    };
    let end = bytes[start..].iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(bytes.len() - start);
    let new = match draws.below(3) {
        0 => draws.one_of(&SPELLED).copied().unwrap_or_default().to_owned(),
        1 => draws.below(1000).to_string(),
        _ => draws.one_of(&NUMBERS).copied().unwrap_or_default().to_string(),
    };
    bytes.splice(start..start + end, new.into_bytes());
}

/// Much of the same: deep nesting, long lines.
fn repeat(bytes: &mut Vec<u8>, at: usize, word: Vec<u8>, draws: &mut Draws) {
    let word = match draws.below(2) {
        0 => bytes.get(at..at + 1).unwrap_or_default().to_vec(),
        _ => word,
    };
    let most = if draws.below(8) == 0 { 14 } else { 6 };
    let times = 1 << draws.below(most);
    let times = times.min(LONGEST / word.len().max(1));
    bytes.splice(at..at, word.repeat(times));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_a_function_of_seed_target_and_number() {
        let good = [b"one 1 {}".to_vec(), b"two [2, 3]".to_vec()];
        let make = |seed, name, number| input(seed, name, number, &good, &["null"]);
        assert_eq!([make(1, "a", 0), make(1, "a", 1)], good);
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
    fn nothing_to_change_is_no_problem() {
        for number in 0..2000 {
            assert!(input(3, "empty", number, &[], &[]).len() <= LONGEST);
            assert!(input(3, "empty", number, &[Vec::new()], &["", "x"]).len() <= LONGEST);
        }
    }
}
