//! Tracks how much of each phrase a hypothesis contains, by a Knuth-Morris-Pratt automaton, so that no
//! occurrence is missed.

/// The phrases of a source.
#[derive(Default)]
pub(in super::super) struct Phrases {
    phrases: Vec<Phrase>,
}

struct Phrase {
    tokens: Vec<u32>,
    /// The failure function: for each number of matched tokens, how many still match if the next token does
    /// not.
    fallbacks: Vec<usize>,
}

/// For each phrase, how many of its first tokens the end of a hypothesis matches. A phrase stays fully
/// matched once the hypothesis contains it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Progress(Vec<usize>);

impl Phrases {
    pub(in super::super) fn new(phrases: &[Vec<u32>]) -> Phrases {
        Phrases { phrases: phrases.iter().map(|tokens| Phrase::new(tokens)).collect() }
    }

    pub(in super::super) fn is_empty(&self) -> bool {
        self.phrases.is_empty()
    }

    /// The progress of the empty hypothesis.
    pub(in super::super) fn start(&self) -> Progress {
        Progress(vec![0; self.phrases.len()])
    }

    /// The progress after one more token.
    pub(in super::super) fn after(&self, progress: &Progress, token: u32) -> Progress {
        let after = |(phrase, &matched): (&Phrase, &usize)| phrase.after(matched, token);
        Progress(self.phrases.iter().zip(&progress.0).map(after).collect())
    }

    /// How many tokens suffice to meet all phrases: the rest of the unmet phrase with the most matched
    /// tokens, plus all tokens of the other unmet ones. The next token of that phrase always reduces the
    /// number.
    pub(in super::super) fn missing(&self, progress: &Progress) -> usize {
        let unmet =
            self.phrases.iter().zip(&progress.0).filter(|(phrase, matched)| !phrase.is_met(**matched));
        let (all, begun) = unmet
            .fold((0, 0), |(all, begun), (phrase, &matched)| (all + phrase.tokens.len(), matched.max(begun)));
        all - begun
    }

    /// [`Phrases::missing`] after one more token.
    pub(in super::super) fn missing_after(&self, progress: &Progress, token: u32) -> usize {
        if self.is_empty() { 0 } else { self.missing(&self.after(progress, token)) }
    }

    /// The next token of each unmet phrase.
    pub(in super::super) fn next_tokens<'a>(
        &'a self,
        progress: &'a Progress,
    ) -> impl Iterator<Item = u32> + 'a {
        self.phrases
            .iter()
            .zip(&progress.0)
            .filter_map(|(phrase, &matched)| phrase.tokens.get(matched).copied())
    }
}

impl Phrase {
    fn new(tokens: &[u32]) -> Phrase {
        let mut phrase = Phrase { tokens: tokens.to_vec(), fallbacks: vec![0] };
        let mut matched = 0;
        for &token in tokens.iter().skip(1) {
            // The fallbacks of all shorter matches are known.
            phrase.fallbacks.push(matched);
            matched = phrase.matched(matched, token);
        }
        phrase
    }

    fn is_met(&self, matched: usize) -> bool {
        matched == self.tokens.len()
    }

    fn after(&self, matched: usize, token: u32) -> usize {
        if self.is_met(matched) { matched } else { self.matched(matched, token) }
    }

    fn matched(&self, mut matched: usize, token: u32) -> usize {
        while matched > 0 && self.tokens[matched] != token {
            matched = self.fallbacks[matched];
        }
        matched + usize::from(self.tokens[matched] == token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_occurrence_is_found_and_no_other() {
        let phrases = [vec![1], vec![1, 1, 2], vec![1, 2, 1, 2, 2], vec![2, 1]];
        let automaton = Phrases::new(&phrases);
        // All texts of seven tokens over 1, 2, 3.
        for text in 0..3_u32.pow(7) {
            let tokens: Vec<u32> = (0..7).map(|i| 1 + text / 3_u32.pow(i) % 3).collect();
            let end = tokens.iter().fold(automaton.start(), |end, &token| automaton.after(&end, token));
            for (phrase, &matched) in phrases.iter().zip(&end.0) {
                let contains = tokens.windows(phrase.len()).any(|part| part == phrase);
                let longest = (0..phrase.len()).rev().find(|&n| tokens.ends_with(&phrase[..n]));
                let expected = if contains { phrase.len() } else { longest.unwrap_or(0) };
                assert_eq!(matched, expected, "{phrase:?} in {tokens:?}");
            }
        }
    }

    #[test]
    fn the_missing_tokens_can_always_be_reduced() {
        let phrases = Phrases::new(&[vec![1, 2, 3], vec![2, 3, 4], vec![4]]);
        let mut progress = phrases.start();
        assert_eq!(phrases.missing(&progress), 7);
        for _ in 0..7 {
            let missing = phrases.missing(&progress);
            if missing == 0 {
                return;
            }
            let next: Vec<u32> = phrases.next_tokens(&progress).collect();
            let after = next.iter().map(|&token| phrases.after(&progress, token));
            progress = after.min_by_key(|after| phrases.missing(after)).expect("a phrase is not met");
            assert!(phrases.missing(&progress) < missing);
        }
        assert_eq!(phrases.missing(&progress), 0);
    }
}
