//! Tercom's search for phrases to shift.
//!
//! Among the phrases of the hypothesis that also occur in the reference, the one whose shift reduces the
//! distance most is shifted. This repeats until no shift helps.

use super::edit_distance::{Edit, Table};

const MAX_PHRASE_LENGTH: usize = 10;
const MAX_SHIFT_DISTANCE: usize = 50;
/// The maximum number of shifts tried per sentence. When it is reached, the best shift of the unfinished
/// round is not applied.
const MAX_TRIALS: usize = 1000;

/// The number of edits from a hypothesis to a reference, shifts included.
pub(super) fn edits(hypothesis: &[u32], reference: &[u32]) -> usize {
    if reference.is_empty() {
        return hypothesis.len();
    }
    let mut words = hypothesis.to_vec();
    let mut table = Table::new(reference, words.len());
    let (mut shifts, mut trials) = (0, 0);
    loop {
        let distance = table.distance(&words, 0);
        let best = best_shift(&words, reference, &mut table, distance, &mut trials);
        match best {
            Some(best) if best.gain > 0 && trials < MAX_TRIALS => {
                words = best.phrase.shifted_to(best.target, &words);
                shifts += 1;
            }
            _ => return shifts + distance as usize,
        }
    }
}

/// A phrase of the hypothesis that also occurs in the reference.
#[derive(Clone, Copy)]
struct Phrase {
    start: usize,
    length: usize,
    in_reference: usize,
}

struct Shift {
    phrase: Phrase,
    target: usize,
    gain: i64,
}

impl Shift {
    /// The key for comparing shifts: larger gain, then longer phrase, then earlier start, then earlier
    /// target.
    fn preference(&self) -> (i64, usize, isize, isize) {
        let early = |index: usize| -(index as isize);
        (self.gain, self.phrase.length, early(self.phrase.start), early(self.target))
    }
}

fn best_shift(
    words: &[u32],
    reference: &[u32],
    table: &mut Table<'_>,
    distance: u32,
    trials: &mut usize,
) -> Option<Shift> {
    let alignment = Alignment::of(table.edits_backwards(words).into_iter().rev());
    let mut best: Option<Shift> = None;
    // The length of the prefix that `words` shares with the last hypothesis in the table.
    let mut same = words.len();
    for phrase in common_phrases(words, reference) {
        if alignment.is_pointless(phrase) {
            continue;
        }
        for target in alignment.targets(phrase) {
            let shifted = phrase.shifted_to(target, words);
            let unchanged = target.min(phrase.start);
            let gain = i64::from(distance) - i64::from(table.distance(&shifted, unchanged.min(same)));
            same = unchanged;
            *trials += 1;
            let candidate = Shift { phrase, target, gain };
            if best.as_ref().is_none_or(|best| candidate.preference() > best.preference()) {
                best = Some(candidate);
            }
        }
        if *trials >= MAX_TRIALS {
            break;
        }
    }
    best
}

/// All phrases that occur in both, with all their prefixes, shorter ones first.
fn common_phrases(words: &[u32], reference: &[u32]) -> impl Iterator<Item = Phrase> {
    let pairs = (0..words.len()).flat_map(move |start| {
        let first = start.saturating_sub(MAX_SHIFT_DISTANCE);
        let end = reference.len().min(start + MAX_SHIFT_DISTANCE + 1);
        (first..end).map(move |in_reference| (start, in_reference))
    });
    pairs.flat_map(move |(start, in_reference)| {
        let pairs = words[start..].iter().zip(&reference[in_reference..]).take(MAX_PHRASE_LENGTH);
        let longest = pairs.take_while(|(ours, theirs)| ours == theirs).count();
        (1..=longest).map(move |length| Phrase { start, length, in_reference })
    })
}

impl Phrase {
    /// The words after the shift. A target inside or directly after the phrase shifts it that many words to
    /// the right.
    fn shifted_to(self, target: usize, words: &[u32]) -> Vec<u32> {
        let (start, end) = (self.start, self.start + self.length);
        let mut shifted = words.to_vec();
        if target < start {
            shifted[target..end].rotate_right(self.length);
        } else {
            let new_end = if target > end { target } else { (target + self.length).min(words.len()) };
            shifted[start..new_end].rotate_left(self.length);
        }
        shifted
    }
}

/// The word alignment between hypothesis and reference.
struct Alignment {
    /// For each word of the reference, the number of hypothesis words aligned up to its end.
    ends: Vec<usize>,
    reference_errors: Vec<bool>,
    hypothesis_errors: Vec<bool>,
}

impl Alignment {
    /// The alignment that the edits imply.
    fn of(edits: impl Iterator<Item = Edit>) -> Alignment {
        let mut alignment =
            Alignment { ends: Vec::new(), reference_errors: Vec::new(), hypothesis_errors: Vec::new() };
        for edit in edits {
            let is_error = edit != Edit::Keep;
            if edit != Edit::Insert {
                alignment.hypothesis_errors.push(is_error);
            }
            if edit != Edit::Delete {
                alignment.ends.push(alignment.hypothesis_errors.len());
                alignment.reference_errors.push(is_error);
            }
        }
        alignment
    }

    /// Whether a shift is useless: the phrase is already correct, or its target is, or the phrase would be
    /// shifted into itself.
    fn is_pointless(&self, phrase: Phrase) -> bool {
        let Phrase { start, length, in_reference } = phrase;
        let is_correct = |errors: &[bool], first: usize| !errors[first..first + length].contains(&true);
        is_correct(&self.hypothesis_errors, start)
            || is_correct(&self.reference_errors, in_reference)
            || (start + 1..=start + length).contains(&self.ends[in_reference])
    }

    /// The possible targets: before the word aligned to the phrase's first word in the reference, or after
    /// each word aligned to its words.
    fn targets(&self, phrase: Phrase) -> Vec<usize> {
        let first = phrase.in_reference;
        let before = if first == 0 { 0 } else { self.ends[first - 1] };
        let mut targets = vec![before];
        targets.extend_from_slice(&self.ends[first..first + phrase.length]);
        targets.dedup();
        targets
    }
}
