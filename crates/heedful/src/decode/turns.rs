//! Groups of a GPU take turns: it computes a step of one while the host lets the plans of the other choose.
//!
//! ```text
//! GPU    step of A | step of B | step of A | step of B | …
//! host                choose A  | choose B  | choose A  | …
//! ```
//!
//! A second group costs steps, and one of few rows takes about as long as one of many. So few rows stay in one group, and of
//! sentences that come together the first, which are the longest where somebody has sorted them, share a group: the other ends
//! early, and what is left at the end is steps of one. The last sentences of a group, which may take many more steps, go over to
//! the other group.

use super::group::{Group, Outcome, Sentence};
use super::plan::Plan;

/// Groups of a GPU.
pub(super) const GROUPS: usize = 2;

/// With fewer rows than this the host is done sooner than the GPU with a second step.
const ROWS_WORTH_DIVIDING: usize = 2048;

/// A group of no more rows is worth no step of its own: the other group's takes hardly longer with them.
const ROWS_WORTH_JOINING: usize = 128;

/// Divides sentences among two groups, so that both weigh about as much.
pub(super) fn divide<P: Plan + ?Sized>(
    groups: &[Group<'_, P>],
    mut sentences: Vec<Sentence<P>>,
) -> [Vec<Sentence<P>>; GROUPS] {
    let rows = groups.iter().map(Group::most_rows).sum::<usize>()
        + sentences.iter().map(|sentence| sentence.rows).sum::<usize>();
    if rows < ROWS_WORTH_DIVIDING {
        let is_second = groups.len() == GROUPS && groups[0].is_empty() && !groups[1].is_empty();
        return if is_second { [Vec::new(), sentences] } else { [sentences, Vec::new()] };
    }
    let [mut first, second] = [0, 1].map(|group: usize| groups.get(group).map_or(0, Group::weight));
    let half = (first + second + sentences.iter().map(|sentence| sentence.weight).sum::<usize>()) / 2;
    let of_first = sentences.iter().take_while(|sentence| {
        let has_room = first < half;
        first += sentence.weight;
        has_room
    });
    let others = sentences.split_off(of_first.count());
    [sentences, others]
}

/// Finishes the step of each group and begins its next one, with more sentences; returns the outcomes of those that are finished.
/// If only one group has sentences, its step is finished too: there is nothing to do meanwhile.
pub(super) fn take<P: Plan + ?Sized>(
    groups: &mut [Group<'_, P>],
    shares: [Vec<Sentence<P>>; GROUPS],
) -> Vec<Outcome<P>> {
    let mut outcomes = Vec::new();
    if shares.iter().all(Vec::is_empty) {
        outcomes.extend(join(groups));
    }
    for (group, more) in groups.iter_mut().zip(shares) {
        outcomes.extend(group.finish());
        group.begin(more);
    }
    let mut busy = groups.iter_mut().filter(|group| !group.is_empty());
    if let (Some(only), None) = (busy.next(), busy.next()) {
        outcomes.extend(only.finish());
    }
    outcomes
}

/// If one of two groups has few rows left, the other takes them over; returns the outcomes of sentences that are finished.
fn join<P: Plan + ?Sized>(groups: &mut [Group<'_, P>]) -> Vec<Outcome<P>> {
    let [first, second] = groups else { return Vec::new() };
    let (few, many) = if first.most_rows() < second.most_rows() { (first, second) } else { (second, first) };
    if few.is_empty() || few.most_rows() > ROWS_WORTH_JOINING || !many.can_take_over() {
        return Vec::new();
    }
    let mut outcomes = few.finish();
    outcomes.extend(many.finish());
    if !few.is_empty() && !many.is_empty() {
        many.take_over(few);
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

    fn sentence(ticket: usize, source: Vec<u32>) -> Sentence<Beam> {
        let (options, special) = (Arc::new(options()), SpecialTokens::default());
        let limit = options.limit(source.len(), None);
        let plan = Box::new(Beam::new(options, special, &Constraints::default(), limit));
        let (id, length) = (SentenceId(ticket), source.len());
        Sentence { id, source, tokens: None, length, weight: 3 * length, rows: 3, plan }
    }

    #[test]
    fn groups_that_take_turns_find_what_one_finds() {
        let model = Transformer::new(TransformerConfig::tiny(VOCABULARY), 3).expect("a good configuration");
        let all = sources(40);
        let expected = search(&model, &all, &options()).expect("good sources");
        let mut groups = [group(&model), group(&model)];
        let mut found: Vec<Option<Vec<Hypothesis>>> = vec![None; all.len()];
        let mut waiting = all.into_iter().enumerate().map(|(ticket, source)| sentence(ticket, source));
        let mut steps = 0;
        loop {
            // Some come while others are on their way, to one group, the other or both; then one group is left alone.
            let shares = [[3, 0], [0, 2], [1, 1], [2, 5]][steps % 4];
            let shares = shares.map(|count| waiting.by_ref().take(count).collect());
            for (SentenceId(ticket), outcome) in take(&mut groups, shares) {
                assert!(found[ticket].is_none(), "{ticket} has finished twice");
                found[ticket] = Some(outcome.expect("finite scores"));
            }
            steps += 1;
            if steps == 5 {
                groups.iter_mut().for_each(|group| group.cancel(SentenceId(7)));
            }
            if waiting.len() == 0 && groups.iter().all(Group::is_empty) {
                break;
            }
        }
        for (ticket, (found, expected)) in found.iter().zip(&expected).enumerate() {
            match ticket {
                7 => assert!(found.is_none(), "it was cancelled"),
                _ => assert_eq!(found.as_ref(), Some(expected), "{ticket}"),
            }
        }
        assert!(groups.iter().all(|group| group.weight() == 0 && group.most_rows() == 0));
    }

    /// Kinds of models, of which the last cannot hand sentences over.
    fn kinds() -> [TransformerConfig; 3] {
        let mut kinds = [0; 3].map(|_| TransformerConfig::tiny(VOCABULARY));
        kinds[1].window = Some(2);
        kinds[2].decoder_layer = DecoderLayer::Ssru;
        kinds
    }

    #[test]
    fn the_last_sentences_of_a_group_are_themselves_in_the_other() {
        for (kind, compute) in
            [(0, Precision::F32), (0, Precision::Bf16), (1, Precision::F32), (2, Precision::F32)]
        {
            let model = Transformer::new(kinds()[kind].clone(), 3).expect("a good configuration");
            let all = sources(60);
            let options = SearchOptions { compute: Some(compute), ..options() };
            let expected = search(&model, &all, &options).expect("good sources");
            let new = || Group::new(model.start(compute), Device::Cpu, compute.rounding());
            let mut groups = [new(), new()];
            let can_join = groups[0].can_take_over();
            assert_eq!(can_join, kind < 2);
            let mut found = vec![None; all.len()];
            let mut sentences = all.into_iter().enumerate().map(|(ticket, source)| sentence(ticket, source));
            let mut joined = 0;
            // Groups that have had sentences before and some that have not, in both directions.
            for shares in [[4, 9], [9, 4], [7, 7], [1, 19]] {
                let mut shares = shares.map(|count| sentences.by_ref().take(count).collect());
                for step in 0.. {
                    for (SentenceId(ticket), outcome) in take(&mut groups, std::mem::take(&mut shares)) {
                        assert!(found[ticket].replace(outcome.expect("finite scores")).is_none(), "{ticket}");
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
                for (SentenceId(ticket), outcome) in take(&mut groups, Default::default()) {
                    assert!(found[ticket].replace(outcome.expect("finite scores")).is_none(), "{ticket}");
                }
            }
            for (ticket, (found, expected)) in found.iter().zip(&expected).enumerate() {
                assert_eq!(found.as_ref(), Some(expected), "{ticket}");
            }
            assert!(groups.iter().all(|group| group.weight() == 0 && group.most_rows() == 0));
        }
    }

    #[test]
    fn few_rows_stay_together_and_of_many_the_longest_do() {
        let model = Transformer::new(TransformerConfig::tiny(VOCABULARY), 3).expect("a good configuration");
        let mut groups = [group(&model), group(&model)];
        let of_length = |length: usize, count: usize| (0..count).map(move |_| sentence(0, vec![5; length]));
        let shares = |groups: &[Group<'_, Beam>], sentences: Vec<Sentence<Beam>>| {
            divide(groups, sentences).map(|share| share.len())
        };
        assert_eq!(shares(&groups, of_length(9, 600).collect()), [600, 0]);
        assert_eq!(shares(&groups, of_length(9, 100).chain(of_length(1, 900)).collect()), [100, 900]);
        assert_eq!(shares(&groups, of_length(4, 1000).collect()), [500, 500]);
        // They go where the others are.
        groups[1].begin(of_length(4, 9).collect());
        assert_eq!(shares(&groups, of_length(4, 5).collect()), [0, 5]);
        groups[1] = group(&model);
        // What is there counts.
        groups[0].begin(of_length(4, 700).collect());
        assert_eq!(shares(&groups, of_length(4, 400).collect()), [0, 400]);
        assert_eq!(shares(&groups, of_length(4, 900).collect()), [100, 800]);
    }
}
