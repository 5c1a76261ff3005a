//! The encoded sources of a decoding, each kept until its last hypothesis is finished.
//!
//! Sentences are encoded in groups. The memory of a group (keys and values, encoder states) has one row for
//! each token; each sentence has a range of these rows. A group is freed when its last sentence is finished.

use std::collections::VecDeque;
use std::ops::Range;

use heedful_tensor::Ragged;

use crate::models::Row;

/// Sentences by number, with one `Memory` for each group that was encoded together.
pub(crate) struct Sources<Memory> {
    /// The sentences from number `first` on; `None` for finished ones.
    sentences: VecDeque<Option<Entry>>,
    first: usize,
    steps: usize,
    groups: Vec<Option<Group<Memory>>>,
}

/// Where a sentence lies in its group's memory.
struct Entry {
    group: usize,
    /// Index within the group.
    number: usize,
    rows: Range<usize>,
    /// The latest step in which it had rows; `None` if it has not started (it is kept then).
    latest: Option<usize>,
}

/// Sentences that were encoded together.
struct Group<Memory> {
    memory: Memory,
    unfinished: usize,
}

impl<Memory> Sources<Memory> {
    /// No sentences.
    pub(crate) fn new() -> Sources<Memory> {
        Sources { sentences: VecDeque::new(), first: 0, steps: 0, groups: Vec::new() }
    }

    /// Adds sentences that were encoded together.
    pub(crate) fn add(&mut self, memory: Memory, sequences: &Ragged) {
        let group = self.groups.iter().position(Option::is_none).unwrap_or(self.groups.len());
        if group == self.groups.len() {
            self.groups.push(None);
        }
        self.groups[group] = Some(Group { memory, unfinished: sequences.sequences() });
        for (number, rows) in sequences.ranges().enumerate() {
            self.sentences.push_back(Some(Entry { group, number, rows, latest: None }));
        }
    }

    /// Begins a step with these rows: frees the sentences that are finished. Returns the memories of groups
    /// without unfinished sentences.
    pub(crate) fn release_finished(&mut self, rows: &[Row]) -> Vec<Memory> {
        self.steps += 1;
        for row in rows {
            if let Some(entry) = &mut self.sentences[row.sentence - self.first] {
                entry.latest = Some(self.steps);
            }
        }
        let (groups, mut freed) = (&mut self.groups, Vec::new());
        for sentence in &mut self.sentences {
            let is_finished = |entry: &&mut Entry| entry.latest.is_some_and(|latest| latest < self.steps);
            let Some(entry) = sentence.as_mut().filter(is_finished) else { continue };
            if let Some(group) = &mut groups[entry.group] {
                group.unfinished -= 1;
                if group.unfinished == 0 {
                    freed.extend(groups[entry.group].take().map(|group| group.memory));
                }
            }
            *sentence = None;
        }
        while let Some(None) = self.sentences.front() {
            self.sentences.pop_front();
            self.first += 1;
        }
        freed
    }

    /// Whether a sentence was added and is not finished.
    pub(crate) fn contains(&self, sentence: usize) -> bool {
        self.entry(sentence).is_some()
    }

    /// The memory of a sentence's group, and the sentence's rows in it.
    ///
    /// # Panics
    /// If the sentence was not added, or is finished.
    pub(crate) fn of(&self, sentence: usize) -> (&Memory, Range<usize>) {
        let entry = self.entry(sentence).expect("a sentence that was added and is not finished");
        let group = self.groups[entry.group].as_ref().expect("an unfinished sentence keeps its group");
        (&group.memory, entry.rows.clone())
    }

    /// The sentence's index within its group, for memories with one row for each sentence.
    ///
    /// # Panics
    /// If the sentence was not added, or is finished.
    pub(crate) fn index_in_group(&self, sentence: usize) -> usize {
        self.entry(sentence).expect("a sentence that was added and is not finished").number
    }

    fn entry(&self, sentence: usize) -> Option<&Entry> {
        self.sentences.get(sentence.checked_sub(self.first)?)?.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_freed_with_its_last_sentence_and_its_index_is_reused() {
        let mut sources = Sources::new();
        let row = |sentence| Row { sentence, parent: None, token: 1 };
        sources.add("first", &Ragged::from_lengths([2, 3]));
        assert_eq!(sources.of(1), (&"first", 2..5));
        assert_eq!(sources.index_in_group(1), 1);
        assert!(sources.release_finished(&[row(0), row(1)]).is_empty());
        assert!(sources.release_finished(&[row(1)]).is_empty());
        assert_eq!(sources.of(1), (&"first", 2..5));
        sources.add("second", &Ragged::from_lengths([4]));
        // Sentence 2 has not started: it is kept.
        assert_eq!(sources.release_finished(&[]), ["first"]);
        assert_eq!((sources.of(2), sources.index_in_group(2)), ((&"second", 0..4), 0));
        sources.add("third", &Ragged::from_lengths([1]));
        assert_eq!((sources.of(3), sources.groups.len()), ((&"third", 0..1), 2));
    }
}
