//! Agreement with a reference alignment.
//!
//! ```text
//! precision = |A ∩ P| / |A|      recall = |A ∩ S| / |S|      AER = 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|)
//! ```
//!
//! A are the predicted links, S the sure and P the possible reference links (S ⊆ P), over the whole corpus
//! (Och and Ney 2003).

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

/// Running counts for [`Agreement`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Matches {
    predicted: u64,
    sure: u64,
    predicted_sure: u64,
    predicted_possible: u64,
}

impl Matches {
    /// Adds the predicted links of a sentence pair.
    pub(super) fn add(&mut self, predicted: &[(usize, usize)], links: &ReferenceAlignment) {
        let count_in = |list: &[(usize, usize)]| {
            predicted.iter().filter(|link| list.binary_search(link).is_ok()).count() as u64
        };
        self.predicted += predicted.len() as u64;
        self.sure += links.sure.len() as u64;
        self.predicted_sure += count_in(&links.sure);
        self.predicted_possible += count_in(&links.possible);
    }

    pub(super) fn agreement(&self) -> Agreement {
        // 0 / 0 counts as 1: there was nothing to get wrong.
        let share = |part: u64, whole: u64| if whole == 0 { 1.0 } else { part as f64 / whole as f64 };
        Agreement {
            precision: share(self.predicted_possible, self.predicted),
            recall: share(self.predicted_sure, self.sure),
            aer: 1.0 - share(self.predicted_sure + self.predicted_possible, self.predicted + self.sure),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_rate_matches_one_computed_by_hand() {
        let mut matches = Matches::default();
        matches.add(&[(0, 0), (1, 1), (2, 2)], &"0-0 1?1 2-3".parse().expect("links"));
        // A = 3, S = 2, A∩S = 1, A∩P = 2.
        let agreement = matches.agreement();
        assert_eq!(agreement, Agreement { precision: 2.0 / 3.0, recall: 0.5, aer: 1.0 - 3.0 / 5.0 });
        // A second sentence: A = S = 1, and they are equal.
        matches.add(&[(5, 0)], &"5-0".parse().expect("links"));
        assert_eq!(
            matches.agreement(),
            Agreement { precision: 0.75, recall: 2.0 / 3.0, aer: 1.0 - 5.0 / 7.0 }
        );
    }

    #[test]
    fn the_error_rate_is_0_if_all_links_are_right_and_1_if_none_is() {
        let links: ReferenceAlignment = "0-0 1-1".parse().expect("links");
        let rate = |predicted: &[(usize, usize)]| {
            let mut matches = Matches::default();
            matches.add(predicted, &links);
            matches.agreement().aer
        };
        assert_eq!(rate(&[(0, 0), (1, 1)]), 0.0);
        assert_eq!(rate(&[(0, 1), (1, 0)]), 1.0);
        assert_eq!(rate(&[]), 1.0);
    }
}
