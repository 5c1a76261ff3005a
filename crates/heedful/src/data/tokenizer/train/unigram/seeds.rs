//! Seeds: the pieces that training starts with.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::{Piece, Word};

/// Maximum number of characters of a piece.
const MAX_PIECE_LENGTH: usize = 16;
/// The number of seeds per piece of the final vocabulary, and the maximum: more seeds change the result
/// little and cost time.
const SEEDS_PER_PIECE: usize = 20;
const MAX_SEEDS: usize = 1_000_000;

/// A substring of `length` characters, represented by one occurrence, which ends before `end` in `word`.
struct Candidate {
    word: u32,
    end: u32,
    length: u32,
    count: f64,
}

/// All characters, and the substrings with the largest count × length.
pub(super) fn find(words: &[Word], target_size: usize, min_frequency: u64) -> Vec<Piece> {
    let mut candidates = substrings(words, min_frequency.max(2) as f64);
    let characters = candidates.iter().filter(|candidate| candidate.length == 1).count();
    let max = (target_size * SEEDS_PER_PIECE).min(MAX_SEEDS).max(characters);
    let covered = |candidate: &Candidate| candidate.count * f64::from(candidate.length);
    let text = |candidate: &Candidate| {
        let (end, length) = (candidate.end as usize, candidate.length as usize);
        &words[candidate.word as usize].0[end - length..end]
    };
    candidates.sort_by(|a, b| {
        let characters_first = Reverse(a.length == 1).cmp(&Reverse(b.length == 1));
        characters_first.then(covered(b).total_cmp(&covered(a))).then_with(|| text(a).cmp(text(b)))
    });
    candidates.truncate(max);
    let total: f64 = candidates.iter().map(covered).sum();
    let piece = |candidate: &Candidate| Piece {
        characters: text(candidate).to_vec(),
        score: (covered(candidate) / total).ln(),
    };
    candidates.iter().map(piece).collect()
}

/// Every character, and every longer substring that occurs at least `min_count` times. A substring is counted
/// only where the one without its last character is frequent, so rare ones take no memory.
fn substrings(words: &[Word], min_count: f64) -> Vec<Candidate> {
    let mut found: Vec<Candidate> = Vec::new();
    // Where each frequent substring of the previous length begins, and its index.
    let mut open: Vec<(u32, u32, u32)> = Vec::new();
    for (word, (characters, _)) in words.iter().enumerate() {
        open.extend((0..characters.len()).map(|start| (word as u32, start as u32, 0)));
    }
    for length in 1..=MAX_PIECE_LENGTH as u32 {
        let mut here: HashMap<(u32, char), u32> = HashMap::new();
        let first = found.len();
        let mut longer = Vec::with_capacity(open.len());
        for (word, start, shorter) in open {
            let (characters, count) = &words[word as usize];
            let end = start + length;
            let Some(&last) = characters.get(end as usize - 1) else { continue };
            let number = *here.entry((shorter, last)).or_insert_with(|| {
                found.push(Candidate { word, end, length, count: 0.0 });
                (found.len() - 1) as u32
            });
            found[number as usize].count += count;
            longer.push((word, start, number));
        }
        open = keep_frequent(&mut found, first, longer, if length == 1 { 0.0 } else { min_count });
        if open.is_empty() {
            break;
        }
    }
    found
}

/// Removes the rare substrings from index `first` on, and renumbers the rest.
fn keep_frequent(
    found: &mut Vec<Candidate>,
    first: usize,
    mut open: Vec<(u32, u32, u32)>,
    min_count: f64,
) -> Vec<(u32, u32, u32)> {
    let mut kept = first as u32;
    let new_numbers: Vec<Option<u32>> = found[first..]
        .iter()
        .map(|candidate| {
            let number = (candidate.count >= min_count).then_some(kept);
            kept += u32::from(number.is_some());
            number
        })
        .collect();
    let mut numbers = new_numbers.iter();
    let mut index = 0;
    found.retain(|_| {
        index += 1;
        index <= first || numbers.next().is_some_and(Option::is_some)
    });
    open.retain_mut(|(_, _, number)| match new_numbers[*number as usize - first] {
        Some(new) => {
            *number = new;
            true
        }
        None => false,
    });
    open
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_come_first_then_what_covers_most() {
        let words: Vec<Word> = vec![("abab".chars().collect(), 3.0), ("abc".chars().collect(), 1.0)];
        let seeds = find(&words, 100, 2);
        let texts: Vec<String> = seeds.iter().map(|piece| piece.characters.iter().collect()).collect();
        assert_eq!(texts, ["a", "b", "c", "ab", "abab", "aba", "bab", "ba"]);
    }
}
