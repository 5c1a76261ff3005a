//! Groups of a card take turns: it computes a step of one while the host lets the plans of another choose.
//!
//! ```text
//! card    step of A | step of B | step of A | step of B | …
//! host                choose A  | choose B  | choose A  | …
//! ```
//!
//! With [queues](Queue) of their own the card also computes steps of several groups at a time: one whose rows leave part of the card
//! idle takes no time of the others. Whichever step is done first is followed by the next one of its group.
//!
//! A second group costs steps, and one of few rows takes about as long as one of many. So few rows stay in one group, and of
//! sentences that come together the first, which are the longest where somebody has sorted them, share a group: the others end
//! early, and what is left at the end is steps of one. The last sentences of a group, which may take many more steps, go over to
//! another group.

use std::sync::OnceLock;

use heedful_tensor::Queue;

use super::group::{Group, Outcome, Plan, Sentence};
use crate::models::Decoding;

/// Groups of a card whose steps go through one queue: more would not end sooner.
const GROUPS_OF_ONE_QUEUE: usize = 2;

/// With fewer rows than this for each group the host is done sooner than the card with one more step.
const ROWS_WORTH_A_GROUP: usize = 1024;

/// A group of no more rows is worth no step of its own: another group's takes hardly longer with them.
const ROWS_WORTH_JOINING: usize = 128;

/// How many groups there are of such decodings.
pub(super) fn groups_of(decoding: &dyn Decoding) -> usize {
    match queues() {
        0 => GROUPS_OF_ONE_QUEUE,
        _ if !decoding.can_be_beside_others() => GROUPS_OF_ONE_QUEUE,
        queues => queues,
    }
}

/// The queue of a group with such a decoding.
pub(super) fn queue_of(group: usize, decoding: &dyn Decoding) -> Queue {
    let has_own = decoding.can_be_beside_others() && group < queues();
    if has_own { Queue::beside(group) } else { Queue::MAIN }
}

/// Queues beside the main one that searches use: `HEEDFUL_CUDA_QUEUES`, or none.
fn queues() -> usize {
    static QUEUES: OnceLock<usize> = OnceLock::new();
    *QUEUES.get_or_init(|| {
        let wanted = std::env::var("HEEDFUL_CUDA_QUEUES").ok();
        let number = |wanted: String| {
            wanted
                .parse()
                .unwrap_or_else(|_| panic!("HEEDFUL_CUDA_QUEUES is a number of queues, not {wanted}"))
        };
        wanted.map_or(0, number).min(Queue::OTHERS)
    })
}

/// Divides sentences among groups, so that all weigh about as much.
pub(super) fn divide<P: Plan>(groups: &mut [Group<'_, P>], mut sentences: Vec<Sentence<P>>) {
    let rows = groups.iter().map(Group::most_rows).sum::<usize>()
        + sentences.iter().map(|sentence| sentence.rows).sum::<usize>();
    let parts = (rows / ROWS_WORTH_A_GROUP).clamp(1, groups.len());
    if parts == 1 {
        let busy = groups.iter().position(|group| !group.is_empty());
        return groups[busy.unwrap_or(0)].add(sentences);
    }
    let weight = groups.iter().map(Group::weight).sum::<usize>()
        + sentences.iter().map(|sentence| sentence.weight).sum::<usize>();
    for group in &mut groups[..parts - 1] {
        let mut weighs = group.weight();
        let of_group = sentences.iter().take_while(|sentence| {
            let has_room = weighs < weight / parts;
            weighs += sentence.weight;
            has_room
        });
        let others = sentences.split_off(of_group.count());
        group.add(sentences);
        sentences = others;
    }
    groups[parts - 1].add(sentences);
}

/// Finishes the step of each group and begins its next one; returns the outcomes of sentences that are finished. If only one group has
/// sentences, its step is finished too: there is nothing to do meanwhile. Of groups with queues of their own one takes its turn, the
/// first that is done.
pub(super) fn take<P: Plan>(groups: &mut [Group<'_, P>]) -> Vec<Outcome<P>> {
    let mut outcomes = Vec::new();
    if !groups.iter().any(Group::has_arrivals) {
        outcomes.extend(join(groups));
    }
    let are_beside = are_beside_each_other(groups);
    for group in groups.iter_mut().filter(|group| !are_beside || !group.is_under_way()) {
        outcomes.extend(group.finish());
        group.begin();
    }
    let mut under_way: Vec<_> = groups.iter_mut().filter(|group| group.is_under_way()).collect();
    if let [only] = &mut under_way[..] {
        outcomes.extend(only.finish());
    } else if are_beside && !under_way.is_empty() {
        let next = first_done(&mut under_way);
        outcomes.extend(next.finish());
        next.begin();
    }
    outcomes
}

/// How many calls of [`take`] are a turn of all groups.
pub(super) fn calls_of_a_round<P: Plan>(groups: &[Group<'_, P>]) -> usize {
    let busy = groups.iter().filter(|group| !group.is_empty()).count();
    if are_beside_each_other(groups) { busy.max(1) } else { 1 }
}

fn are_beside_each_other<P: Plan>(groups: &[Group<'_, P>]) -> bool {
    groups.len() > 1 && groups.iter().all(|group| group.queue() != Queue::MAIN)
}

/// The group whose step is done first; of several the one that began first, so that all have their turns.
fn first_done<'g, 'm, P: Plan>(under_way: &'g mut [&mut Group<'m, P>]) -> &'g mut Group<'m, P> {
    under_way.sort_by_key(|group| group.began());
    loop {
        if let Some(place) = under_way.iter().position(|group| group.is_done()) {
            return under_way[place];
        }
        std::hint::spin_loop();
    }
}

/// If a group has few rows left, the one with the fewest beside it takes them over; returns the outcomes of sentences that are
/// finished.
fn join<P: Plan>(groups: &mut [Group<'_, P>]) -> Vec<Outcome<P>> {
    let mut busy: Vec<_> = groups.iter_mut().filter(|group| !group.is_empty()).collect();
    busy.reverse();
    busy.sort_by_key(|group| group.most_rows());
    let [few, many, ..] = &mut busy[..] else { return Vec::new() };
    if few.most_rows() > ROWS_WORTH_JOINING || !many.can_take_over() {
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
        SearchOptions { beam: 3, n_best: 2, compute: Precision::F32, ..SearchOptions::default() }
    }

    fn group(model: &Transformer) -> Group<'_, Beam> {
        group_in(model, Queue::MAIN)
    }

    fn group_in(model: &Transformer, queue: Queue) -> Group<'_, Beam> {
        Group::new(model.start(Precision::F32), (Device::Cpu, queue), Precision::F32.rounding())
    }

    fn sentence(ticket: usize, source: Vec<u32>) -> Sentence<Beam> {
        let (options, special) = (Arc::new(options()), SpecialTokens::default());
        let limit = options.limit(source.len(), None);
        let plan = Beam::new(options, special, &Constraints::default(), limit);
        Sentence { ticket, weight: 3 * source.len(), source, tokens: None, rows: 3, plan }
    }

    #[test]
    fn groups_that_take_turns_find_what_one_finds() {
        let model = Transformer::new(TransformerConfig::tiny(VOCABULARY), 3).expect("a good configuration");
        for queues in [vec![Queue::MAIN; 2], vec![Queue::beside(0), Queue::beside(1), Queue::beside(2)]] {
            take_turns(&model, &queues);
        }
    }

    fn take_turns(model: &Transformer, queues: &[Queue]) {
        let all = sources(40);
        let expected = search(model, &all, &options()).expect("good sources");
        let mut groups: Vec<_> = queues.iter().map(|&queue| group_in(model, queue)).collect();
        let mut found: Vec<Option<Vec<Hypothesis>>> = vec![None; all.len()];
        let mut waiting = all.into_iter().enumerate().map(|(ticket, source)| sentence(ticket, source));
        let mut steps = 0;
        loop {
            // Some come while others are on their way, to one group, another or all; then one group is left alone.
            let shares = [[3, 0, 1], [0, 2, 0], [1, 1, 4], [2, 5, 0]][steps % 4];
            for (group, count) in groups.iter_mut().zip(shares) {
                group.add(waiting.by_ref().take(count).collect());
            }
            for (ticket, outcome) in take(&mut groups) {
                assert!(found[ticket].is_none(), "{ticket} has finished twice");
                found[ticket] = Some(outcome.expect("finite scores"));
            }
            steps += 1;
            if steps == 5 {
                groups.iter_mut().for_each(|group| group.cancel(7));
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
        let (one, two) = ([Queue::MAIN; 2], [Queue::beside(0), Queue::beside(1)]);
        for (kind, compute, queues) in [
            (0, Precision::F32, one),
            (0, Precision::F32, two),
            (0, Precision::Bf16, one),
            (1, Precision::F32, one),
            (2, Precision::F32, two),
        ] {
            let model = Transformer::new(kinds()[kind].clone(), 3).expect("a good configuration");
            let all = sources(60);
            let options = SearchOptions { compute, ..options() };
            let expected = search(&model, &all, &options).expect("good sources");
            let new = |queue| Group::new(model.start(compute), (Device::Cpu, queue), compute.rounding());
            let mut groups = queues.map(new);
            let can_join = groups[0].can_take_over();
            assert_eq!(can_join, kind < 2);
            let mut found = vec![None; all.len()];
            let mut sentences = all.into_iter().enumerate().map(|(ticket, source)| sentence(ticket, source));
            let mut joined = 0;
            // Groups that have had sentences before and some that have not, in both directions.
            for shares in [[4, 9], [9, 4], [7, 7], [1, 19]] {
                for (group, count) in groups.iter_mut().zip(shares) {
                    group.add(sentences.by_ref().take(count).collect());
                }
                for step in 0.. {
                    for (ticket, outcome) in take(&mut groups) {
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
                for (ticket, outcome) in take(&mut groups) {
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
        let of_length = |length: usize, count: usize| -> Vec<Sentence<Beam>> {
            (0..count).map(|_| sentence(0, vec![5; length])).collect()
        };
        // How many of some sentences go to each of the groups, which have these before.
        let divided = |before: Vec<Vec<Sentence<Beam>>>, sentences: Vec<Sentence<Beam>>| -> Vec<usize> {
            let with = |sentences: Vec<Sentence<Beam>>| {
                let mut group = group(&model);
                group.add(sentences);
                group
            };
            let mut groups: Vec<_> = before.into_iter().map(with).collect();
            let before: Vec<usize> = groups.iter().map(Group::most_rows).collect();
            divide(&mut groups, sentences);
            groups.iter().zip(before).map(|(group, before)| (group.most_rows() - before) / 3).collect()
        };
        let none = Vec::new;
        assert_eq!(divided(vec![none(), none()], of_length(9, 600)), [600, 0]);
        let mixed = of_length(9, 100).into_iter().chain(of_length(1, 900)).collect();
        assert_eq!(divided(vec![none(), none()], mixed), [100, 900]);
        assert_eq!(divided(vec![none(), none()], of_length(4, 1000)), [500, 500]);
        assert_eq!(divided(vec![none(), none(), none()], of_length(4, 1000)), [500, 500, 0]);
        assert_eq!(divided(vec![none(), none(), none()], of_length(4, 1200)), [400, 400, 400]);
        // They go where the others are.
        assert_eq!(divided(vec![none(), of_length(4, 9)], of_length(4, 5)), [0, 5]);
        // What is there counts.
        assert_eq!(divided(vec![of_length(4, 700), none()], of_length(4, 400)), [0, 400]);
        assert_eq!(divided(vec![of_length(4, 700), none()], of_length(4, 900)), [100, 800]);
    }
}
