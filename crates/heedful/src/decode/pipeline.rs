//! Pipelining of two groups on a GPU: it computes a step of one while the host advances the strategies of the
//! other.
//!
//! ```text
//! GPU     step of A | step of B | step of A | step of B | …
//! host                advance A | advance B | advance A | …
//! ```
//!
//! A second group means more steps, and a step of few rows takes about as long as one of many. So few rows
//! stay in one group. Of sentences that arrive together, the first ones (the longest, if sorted) share a
//! group: the other group ends early, and only one group steps at the end. The last sentences of a group,
//! which may take many more steps, migrate to the other group.

use super::group::{Group, Outcome, Sentence};
use super::strategy::Strategy;

/// Groups on a GPU.
pub(super) const GROUPS: usize = 2;

/// Minimum number of rows to use two groups: with fewer, the host's work takes less time than a second step
/// on the GPU.
const MIN_ROWS_TO_DIVIDE: usize = 2048;

/// Up to this many rows a group is not worth its own step: the other group's step takes hardly longer with
/// them.
const MAX_ROWS_TO_JOIN: usize = 128;

/// Divides sentences between two groups of about the same weight.
pub(super) fn divide<P: Strategy + ?Sized>(
    groups: &[Group<'_, P>],
    mut sentences: Vec<Sentence<P>>,
) -> [Vec<Sentence<P>>; GROUPS] {
    let rows = groups.iter().map(Group::max_rows).sum::<usize>()
        + sentences.iter().map(|sentence| sentence.rows).sum::<usize>();
    if rows < MIN_ROWS_TO_DIVIDE {
        let is_second = groups.len() == GROUPS && groups[0].is_empty() && !groups[1].is_empty();
        return if is_second { [Vec::new(), sentences] } else { [sentences, Vec::new()] };
    }
    let [mut first, second] = [0, 1].map(|group: usize| groups.get(group).map_or(0, Group::weight));
    let half = (first + second + sentences.iter().map(|sentence| sentence.weight).sum::<usize>()) / 2;
    let in_first = sentences.iter().take_while(|sentence| {
        let has_capacity = first < half;
        first += sentence.weight;
        has_capacity
    });
    let in_second = sentences.split_off(in_first.count());
    [sentences, in_second]
}

/// Finishes the step of each group and begins its next one with its share of new sentences; returns the
/// outcomes of finished sentences. If only one group has sentences, its step is finished too: there is
/// nothing to overlap it with.
pub(super) fn step_groups<P: Strategy + ?Sized>(
    groups: &mut [Group<'_, P>],
    shares: [Vec<Sentence<P>>; GROUPS],
) -> Vec<Outcome<P>> {
    let mut outcomes = Vec::new();
    if shares.iter().all(Vec::is_empty) {
        outcomes.extend(join(groups));
    }
    for (group, share) in groups.iter_mut().zip(shares) {
        outcomes.extend(group.finish());
        group.begin(share);
    }
    let mut busy = groups.iter_mut().filter(|group| !group.is_empty());
    if let (Some(only), None) = (busy.next(), busy.next()) {
        outcomes.extend(only.finish());
    }
    outcomes
}

/// If one of two groups has few rows left, its sentences migrate to the other; returns the outcomes of
/// finished sentences.
fn join<P: Strategy + ?Sized>(groups: &mut [Group<'_, P>]) -> Vec<Outcome<P>> {
    let [first, second] = groups else { return Vec::new() };
    let (smaller, larger) =
        if first.max_rows() < second.max_rows() { (first, second) } else { (second, first) };
    if smaller.is_empty() || smaller.max_rows() > MAX_ROWS_TO_JOIN || !larger.can_absorb() {
        return Vec::new();
    }
    let mut outcomes = smaller.finish();
    outcomes.extend(larger.finish());
    if !smaller.is_empty() && !larger.is_empty() {
        larger.absorb(smaller);
    }
    outcomes
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use heedful_tensor::{Device, Precision};

    use super::super::beam::Beam;
    use super::super::constraints::Constraints;
    use super::super::input::SentenceId;
    use super::super::options::SearchOptions;
    use super::super::{Hypothesis, search};
    use super::*;
    use crate::data::SpecialTokens;
    use crate::models::Generate;
    use crate::models::transformer::{Transformer, TransformerConfig};
    use crate::recipe::DecoderLayer;

    const VOCABULARY: usize = 40;

    fn sources(count: usize) -> Vec<Vec<u32>> {
        let word = |i: usize| (4 + (i * i * 11 + i * 5) % (VOCABULARY - 4)) as u32;
        (0..count).map(|i| (i * 7..i * 7 + 1 + i % 13).map(word).collect()).collect()
    }

    fn options() -> SearchOptions {
        SearchOptions { beam: 3, n_best: 2, compute: Some(Precision::F32), ..SearchOptions::default() }
    }

    fn group(model: &Transformer) -> Group<'_, Beam> {
        Group::new(model.start(Precision::F32), Device::Cpu, Precision::F32.rounding())
    }

    fn sentence(id: usize, source: Vec<u32>) -> Sentence<Beam> {
        let (options, special) = (Arc::new(options()), SpecialTokens::default());
        let limit = options.limit(source.len(), None);
        let strategy = Box::new(Beam::new(options, special, &Constraints::default(), limit));
        let (id, length) = (SentenceId(id), source.len());
        Sentence { id, source, tokens: None, length, weight: 3 * length, rows: 3, strategy }
    }

    #[test]
    fn pipelined_groups_give_the_results_of_one_group() {
        let model = Transformer::new(TransformerConfig::tiny(VOCABULARY), 3).expect("a good configuration");
        let all = sources(40);
        let expected = search(&model, &all, &options()).expect("good sources");
        let mut groups = [group(&model), group(&model)];
        let mut found: Vec<Option<Vec<Hypothesis>>> = vec![None; all.len()];
        let mut waiting = all.into_iter().enumerate().map(|(id, source)| sentence(id, source));
        let mut steps = 0;
        loop {
            // Sentences arrive while others are in flight, in one group, the other or both; in the end one
            // group is left alone.
            let shares = [[3, 0], [0, 2], [1, 1], [2, 5]][steps % 4];
            let shares = shares.map(|count| waiting.by_ref().take(count).collect());
            for (SentenceId(id), outcome) in step_groups(&mut groups, shares) {
                assert!(found[id].is_none(), "{id} has finished twice");
                found[id] = Some(outcome.expect("finite scores"));
            }
            steps += 1;
            if steps == 5 {
                groups.iter_mut().for_each(|group| group.cancel(SentenceId(7)));
            }
            if waiting.len() == 0 && groups.iter().all(Group::is_empty) {
                break;
            }
        }
        for (id, (found, expected)) in found.iter().zip(&expected).enumerate() {
            match id {
                7 => assert!(found.is_none(), "it was cancelled"),
                _ => assert_eq!(found.as_ref(), Some(expected), "{id}"),
            }
        }
        assert!(groups.iter().all(|group| group.weight() == 0 && group.max_rows() == 0));
    }

    /// Kinds of models; the last does not support migration.
    fn kinds() -> [TransformerConfig; 3] {
        let mut kinds = [0; 3].map(|_| TransformerConfig::tiny(VOCABULARY));
        kinds[1].window = Some(2);
        kinds[2].decoder_layer = DecoderLayer::Ssru;
        kinds
    }

    #[test]
    fn migrated_sentences_give_the_same_results() {
        for (kind, compute) in
            [(0, Precision::F32), (0, Precision::Bf16), (1, Precision::F32), (2, Precision::F32)]
        {
            let model = Transformer::new(kinds()[kind].clone(), 3).expect("a good configuration");
            let all = sources(60);
            let options = SearchOptions { compute: Some(compute), ..options() };
            let expected = search(&model, &all, &options).expect("good sources");
            let new = || Group::new(model.start(compute), Device::Cpu, compute.rounding());
            let mut groups = [new(), new()];
            let can_join = groups[0].can_absorb();
            assert_eq!(can_join, kind < 2);
            let mut found = vec![None; all.len()];
            let mut sentences = all.into_iter().enumerate().map(|(id, source)| sentence(id, source));
            let mut joined = 0;
            // Groups with and without earlier sentences, in both directions.
            for shares in [[4, 9], [9, 4], [7, 7], [1, 19]] {
                let mut shares = shares.map(|count| sentences.by_ref().take(count).collect());
                for step in 0.. {
                    for (SentenceId(id), outcome) in step_groups(&mut groups, std::mem::take(&mut shares)) {
                        assert!(found[id].replace(outcome.expect("finite scores")).is_none(), "{id}");
                    }
                    let busy = groups.iter().filter(|group| !group.is_empty()).count();
                    joined += usize::from(step == 1 && busy == 1);
                    if step == 9 || busy == 0 {
                        break;
                    }
                }
            }
            assert_eq!(joined, if can_join { 4 } else { 0 });
            while groups.iter().any(|group| !group.is_empty()) {
                for (SentenceId(id), outcome) in step_groups(&mut groups, Default::default()) {
                    assert!(found[id].replace(outcome.expect("finite scores")).is_none(), "{id}");
                }
            }
            for (id, (found, expected)) in found.iter().zip(&expected).enumerate() {
                assert_eq!(found.as_ref(), Some(expected), "{id}");
            }
            assert!(groups.iter().all(|group| group.weight() == 0 && group.max_rows() == 0));
        }
    }

    #[test]
    fn few_rows_stay_in_one_group_and_the_longest_sentences_share_one() {
        let model = Transformer::new(TransformerConfig::tiny(VOCABULARY), 3).expect("a good configuration");
        let mut groups = [group(&model), group(&model)];
        let of_length = |length: usize, count: usize| (0..count).map(move |_| sentence(0, vec![5; length]));
        let shares = |groups: &[Group<'_, Beam>], sentences: Vec<Sentence<Beam>>| {
            divide(groups, sentences).map(|share| share.len())
        };
        assert_eq!(shares(&groups, of_length(9, 600).collect()), [600, 0]);
        assert_eq!(shares(&groups, of_length(9, 100).chain(of_length(1, 900)).collect()), [100, 900]);
        assert_eq!(shares(&groups, of_length(4, 1000).collect()), [500, 500]);
        // New sentences join the busy group.
        groups[1].begin(of_length(4, 9).collect());
        assert_eq!(shares(&groups, of_length(4, 5).collect()), [0, 5]);
        groups[1] = group(&model);
        // The weight of open sentences counts.
        groups[0].begin(of_length(4, 700).collect());
        assert_eq!(shares(&groups, of_length(4, 400).collect()), [0, 400]);
        assert_eq!(shares(&groups, of_length(4, 900).collect()), [100, 800]);
    }
}
