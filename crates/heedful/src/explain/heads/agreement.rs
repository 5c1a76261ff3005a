//! Agreement with a reference alignment.
//!
//! ```text
//! precision = |A ∩ P| / |A|      recall = |A ∩ S| / |S|      AER = 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|)
//! ```
//!
//! A are the predicted links, S the sure and P the possible reference links (S ⊆ P), over the whole corpus (Och and Ney
//! 2003).

use serde::Serialize;

use super::links::ReferenceAlignment;

/// How well predicted links agree with a reference alignment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Agreement {
    /// The share of predicted links that are possible.
    pub precision: f64,
    /// The share of sure links that were predicted.
    pub recall: f64,
    /// The alignment error rate: 0 is perfect, 1 means that no link is correct.
    pub aer: f64,
}

/// Counts on the way to [`Agreement`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Matches {
    found: u64,
    sure: u64,
    found_sure: u64,
    found_possible: u64,
}

impl Matches {
    /// Adds a pair of sentences.
    pub(super) fn add(&mut self, found: &[(usize, usize)], links: &ReferenceAlignment) {
        let among = |list: &[(usize, usize)]| {
            found.iter().filter(|link| list.binary_search(link).is_ok()).count() as u64
        };
        self.found += found.len() as u64;
        self.sure += links.sure.len() as u64;
        self.found_sure += among(&links.sure);
        self.found_possible += among(&links.possible);
    }

    pub(super) fn agreement(&self) -> Agreement {
        // 0 / 0 counts as 1: nothing was wrong.
        let share = |part: u64, whole: u64| if whole == 0 { 1.0 } else { part as f64 / whole as f64 };
        Agreement {
            precision: share(self.found_possible, self.found),
            recall: share(self.found_sure, self.sure),
            aer: 1.0 - share(self.found_sure + self.found_possible, self.found + self.sure),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_rate_is_that_computed_by_hand() {
        let mut matches = Matches::default();
        matches.add(&[(0, 0), (1, 1), (2, 2)], &"0-0 1?1 2-3".parse().expect("links"));
        // A = 3, S = 2, A∩S = 1, A∩P = 2.
        let found = matches.agreement();
        assert_eq!(found, Agreement { precision: 2.0 / 3.0, recall: 0.5, aer: 1.0 - 3.0 / 5.0 });
        // A second sentence: A = 1, S = 1, both the same.
        matches.add(&[(5, 0)], &"5-0".parse().expect("links"));
        assert_eq!(
            matches.agreement(),
            Agreement { precision: 0.75, recall: 2.0 / 3.0, aer: 1.0 - 5.0 / 7.0 }
        );
    }

    #[test]
    fn perfect_is_zero_and_nothing_right_is_one() {
        let links: ReferenceAlignment = "0-0 1-1".parse().expect("links");
        let rate = |found: &[(usize, usize)]| {
            let mut matches = Matches::default();
            matches.add(found, &links);
            matches.agreement().aer
        };
        assert_eq!(rate(&[(0, 0), (1, 1)]), 0.0);
        assert_eq!(rate(&[(0, 1), (1, 0)]), 1.0);
        assert_eq!(rate(&[]), 1.0);
    }
}
