//! Tercom's search for phrases to shift.
//!
//! Of all phrases of the hypothesis that the reference has elsewhere, the one whose shift reduces the distance most is
//! moved; this repeats until no shift helps.

use super::edit_distance::{Edit, Table};

const LONGEST_PHRASE: usize = 10;
const FARTHEST_MOVE: usize = 50;
/// Shifts tried for one sentence. When they are used up, the best shift of the unfinished round is not made.
const MOST_TRIALS: usize = 1000;

/// The number of edits from a hypothesis to a reference, shifts included.
pub(super) fn edits(hypothesis: &[u32], reference: &[u32]) -> usize {
    if reference.is_empty() {
        return hypothesis.len();
    }
    let mut words = hypothesis.to_vec();
    let mut table = Table::new(reference, words.len());
    let (mut moves, mut trials) = (0, 0);
    loop {
        let distance = table.distance(&words, 0);
        let best = best_move(&words, reference, &mut table, distance, &mut trials);
        match best {
            Some(best) if best.gain > 0 && trials < MOST_TRIALS => {
                words = best.phrase.moved_to(best.target, &words);
                moves += 1;
            }
            _ => return moves + distance as usize,
        }
    }
}

/// A phrase of the hypothesis that the reference has too.
#[derive(Clone, Copy)]
struct Phrase {
    start: usize,
    length: usize,
    in_reference: usize,
}

struct Move {
    phrase: Phrase,
    target: usize,
    gain: i64,
}

impl Move {
    /// The order of preference: the larger gain, the longer phrase, the earlier start, the earlier target.
    fn merit(&self) -> (i64, usize, isize, isize) {
        let early = |place: usize| -(place as isize);
        (self.gain, self.phrase.length, early(self.phrase.start), early(self.target))
    }
}

fn best_move(
    words: &[u32],
    reference: &[u32],
    table: &mut Table<'_>,
    distance: u32,
    trials: &mut usize,
) -> Option<Move> {
    let alignment = Alignment::of(table.edits_backwards(words).into_iter().rev());
    let mut best: Option<Move> = None;
    // How many words the hypothesis that the table was filled for last has in common with `words`.
    let mut same = words.len();
    for phrase in common_phrases(words, reference) {
        if alignment.is_settled(phrase) {
            continue;
        }
        for target in alignment.targets(phrase) {
            let moved = phrase.moved_to(target, words);
            let unchanged = target.min(phrase.start);
            let gain = i64::from(distance) - i64::from(table.distance(&moved, unchanged.min(same)));
            same = unchanged;
            *trials += 1;
            let candidate = Move { phrase, target, gain };
            if best.as_ref().is_none_or(|best| candidate.merit() > best.merit()) {
                best = Some(candidate);
            }
        }
        if *trials >= MOST_TRIALS {
            break;
        }
    }
    best
}

/// Every phrase that both have, and all its prefixes, shorter ones first.
fn common_phrases(words: &[u32], reference: &[u32]) -> impl Iterator<Item = Phrase> {
    let pairs = (0..words.len()).flat_map(move |start| {
        let first = start.saturating_sub(FARTHEST_MOVE);
        let end = reference.len().min(start + FARTHEST_MOVE + 1);
        (first..end).map(move |in_reference| (start, in_reference))
    });
    pairs.flat_map(move |(start, in_reference)| {
        let pairs = words[start..].iter().zip(&reference[in_reference..]).take(LONGEST_PHRASE);
        let longest = pairs.take_while(|(ours, theirs)| ours == theirs).count();
        (1..=longest).map(move |length| Phrase { start, length, in_reference })
    })
}

impl Phrase {
    /// The words after the shift. A target inside or right after the phrase means: that many words farther.
    fn moved_to(self, target: usize, words: &[u32]) -> Vec<u32> {
        let (start, end) = (self.start, self.start + self.length);
        let mut moved = words.to_vec();
        if target < start {
            moved[target..end].rotate_right(self.length);
        } else {
            let behind = if target > end { target } else { (target + self.length).min(words.len()) };
            moved[start..behind].rotate_left(self.length);
        }
        moved
    }
}

/// The word alignment between hypothesis and reference.
struct Alignment {
    /// For each word of the reference, how many words of the hypothesis are aligned up to its end.
    ends: Vec<usize>,
    reference_errors: Vec<bool>,
    hypothesis_errors: Vec<bool>,
}

impl Alignment {
    /// The alignment that follows from the edits.
    fn of(edits: impl Iterator<Item = Edit>) -> Alignment {
        let mut alignment =
            Alignment { ends: Vec::new(), reference_errors: Vec::new(), hypothesis_errors: Vec::new() };
        for edit in edits {
            let wrong = edit != Edit::Keep;
            if edit != Edit::Insert {
                alignment.hypothesis_errors.push(wrong);
            }
            if edit != Edit::Delete {
                alignment.ends.push(alignment.hypothesis_errors.len());
                alignment.reference_errors.push(wrong);
            }
        }
        alignment
    }

    /// Whether shifting has no benefit: the phrase is already correct, or its target is, or the phrase would move into
    /// itself.
    fn is_settled(&self, phrase: Phrase) -> bool {
        let Phrase { start, length, in_reference } = phrase;
        let right = |errors: &[bool], first: usize| !errors[first..first + length].contains(&true);
        right(&self.hypothesis_errors, start)
            || right(&self.reference_errors, in_reference)
            || (start + 1..=start + length).contains(&self.ends[in_reference])
    }

    /// The targets of a shift: before the word aligned to the phrase's first word in the reference, or after each word
    /// aligned to the others.
    fn targets(&self, phrase: Phrase) -> Vec<usize> {
        let first = phrase.in_reference;
        let before = if first == 0 { 0 } else { self.ends[first - 1] };
        let mut targets = vec![before];
        targets.extend_from_slice(&self.ends[first..first + phrase.length]);
        targets.dedup();
        targets
    }
}
