//! Search: its results are correct and do not depend on the batch.

mod constraints;
mod ensemble;
mod limits;
mod scores;
mod table;
mod threads;
mod transformer;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use heedful::data::batch::BatchError;
use heedful::decode::{
    DecodeError, Hypothesis, MaxLength, Sampling, Scheduler, SearchOptions, score, search,
};
use table::TableModel;

const BOS: u32 = 1;
const EOS: u32 = 2;

fn sources(count: u32) -> Vec<Vec<u32>> {
    (0..count).map(|i| (0..1 + i * 5 % 4).map(|j| 3 + (i * 7 + j * 3) % 11).collect()).collect()
}

fn options(beam: usize, limit: usize) -> SearchOptions {
    SearchOptions { beam, max_length: MaxLength::Absolute(limit), ..SearchOptions::default() }
}

/// Every target of at most `limit` tokens, best first.
fn exhaustive(model: &TableModel, source: &[u32], limit: usize, alpha: f64) -> Vec<Hypothesis> {
    let mut found = Vec::new();
    let mut open = vec![(vec![BOS], 0.0)];
    while let Some((past, log_p)) = open.pop() {
        for (token, log_token) in (0..).zip(model.log_probabilities(source, &past)) {
            let log_probability = log_p + log_token;
            let length = past.len() - 1;
            if token == EOS {
                let score = log_probability / ((5.0 + length as f64 + 1.0) / 6.0).powf(alpha);
                found.push(Hypothesis { tokens: past[1..].to_vec(), score, log_probability });
            } else if length < limit {
                open.push(([past.as_slice(), &[token]].concat(), log_probability));
            }
        }
    }
    found.sort_by(|a, b| b.score.total_cmp(&a.score));
    found
}

fn same(found: &[Hypothesis], expected: &[Hypothesis]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found.tokens, expected.tokens);
        assert!((found.score - expected.score).abs() < 1e-5, "{found:?} {expected:?}");
    }
}

#[test]
fn a_wide_beam_finds_what_exhaustive_search_finds() {
    for seed in 0..6 {
        let model = TableModel::new(5, seed);
        for alpha in [0.0, 0.6, 1.0, -0.5] {
            let options = SearchOptions { length_penalty: alpha, n_best: 7, ..options(400, 4) };
            let found = search(&model, &sources(3), &options).expect("good sources");
            for (source, found) in sources(3).iter().zip(&found) {
                same(found, &exhaustive(&model, source, 4, alpha)[..7]);
            }
        }
    }
}

#[test]
fn a_beam_of_one_is_greedy() {
    for seed in 0..20 {
        let model = TableModel::new(6, seed);
        let found = search(&model, &sources(5), &options(1, 8)).expect("good sources");
        for (source, found) in sources(5).iter().zip(&found) {
            let mut past = vec![BOS];
            while past.len() <= 8 {
                let scores = model.scores(source, &past);
                let best =
                    (1..scores.len()).fold(0, |best, i| if scores[i] > scores[best] { i } else { best });
                if best as u32 == EOS {
                    break;
                }
                past.push(best as u32);
            }
            assert_eq!((found.len(), &found[0].tokens[..]), (1, &past[1..]));
        }
    }
}

#[test]
fn a_given_target_has_the_score_that_the_search_reported() {
    let model = TableModel::new(9, 3);
    let options = SearchOptions { n_best: 3, ..options(4, 10) };
    let sources = sources(6);
    let found = search(&model, &sources, &options).expect("good sources");
    for (source, found) in sources.iter().zip(&found) {
        let pairs: Vec<_> = found.iter().map(|found| (source.clone(), found.tokens.clone())).collect();
        for (found, scored) in found.iter().zip(score(&model, &pairs, &options).expect("good pairs")) {
            assert_eq!(found.log_probability, scored.log_probability);
            assert_eq!(scored.tokens.len(), found.tokens.len() + 1);
        }
    }
}

#[test]
fn outputs_respect_minimum_and_maximum_length() {
    let mut model = TableModel::new(6, 1);
    // `<eos>` is improbable.
    model.fixed = |_, token| (token == EOS).then_some(-20.0);
    let source = vec![vec![3, 4, 5]];
    let relative = SearchOptions {
        max_length: MaxLength::Relative { factor: 2.0, plus: 1 },
        compute: Some(heedful::tensor::Precision::F32),
        ..SearchOptions::default()
    };
    let best = &search(&model, &source, &relative).expect("a good source")[0][0];
    assert_eq!(best.tokens.len(), 7);
    assert!(best.log_probability < -20.0, "the end of the output counts");
    let none = SearchOptions { max_length: MaxLength::Relative { factor: 0.0, plus: 0 }, ..options(2, 1) };
    assert!(search(&model, &source, &none).expect("a good source")[0][0].tokens.is_empty());
    assert!(search(&model, &source, &options(2, 0)).is_err(), "a maximum length of 0");

    // `<eos>` is probable.
    model.fixed = |_, token| (token == EOS).then_some(20.0);
    let long = SearchOptions { min_length: 4, ..options(3, 9) };
    assert_eq!(search(&model, &source, &long).expect("a good source")[0][0].tokens.len(), 4);
    let sampled = SearchOptions { sampling: Some(Sampling::default()), ..long };
    assert_eq!(search(&model, &source, &sampled).expect("a good source")[0][0].tokens.len(), 4);
}

#[test]
fn no_repeat_ngram_prevents_repeated_n_grams() {
    let mut model = TableModel::new(6, 1);
    model.fixed = |past, token| match token {
        3 => Some(9.0),
        EOS => Some(past.len() as f32 - 14.0),
        _ => None,
    };
    let repeats = |tokens: &[u32], n: usize| {
        let grams: Vec<_> = tokens.windows(n).collect();
        (1..grams.len()).any(|i| grams[..i].contains(&grams[i]))
    };
    let free = search(&model, &sources(4), &options(3, 20)).expect("good sources");
    assert!(free.iter().all(|found| repeats(&found[0].tokens, 2)));
    for (n, sampling) in [(1, None), (2, None), (3, None), (2, Some(Sampling::default()))] {
        let options = SearchOptions { no_repeat_ngram: Some(n), sampling, ..options(3, 20) };
        let guarded = search(&model, &sources(4), &options).expect("good sources");
        assert!(guarded.iter().all(|found| !repeats(&found[0].tokens, n)), "{n}: {guarded:?}");
    }
}

#[test]
fn tokens_with_probability_zero_are_not_generated_and_nan_scores_are_errors() {
    let mut model = TableModel::new(6, 1);
    model.fixed = |_, token| (token > 3).then_some(f32::NEG_INFINITY);
    let found = search(&model, &sources(4), &options(8, 6)).expect("good sources");
    assert!(found.iter().flatten().all(|found| found.tokens.iter().all(|&token| token <= 3)));
    assert!(found.iter().flatten().all(|found| found.score.is_finite()));

    model.fixed = |past, token| (past.len() == 3 && token == 4).then_some(f32::NAN);
    let broken = search(&model, &sources(4), &options(8, 6));
    assert!(matches!(broken, Err(DecodeError::Broken(_))), "{broken:?}");
    model.fixed = |_, _| Some(f32::NEG_INFINITY);
    assert!(search(&model, &sources(4), &options(8, 6)).is_err());
}

#[test]
fn a_search_returns_results_before_all_sources_are_encoded() {
    let model = TableModel::new(7, 5);
    let all = sources(40);
    let options = SearchOptions { batch_tokens: Some(20), ..options(2, 6) };
    let expected = search(&model, &all, &options).expect("good sources");

    let mut scheduler = Scheduler::new(&model, &options).expect("good options");
    let (mut read, mut found) = (0, vec![Vec::new(); all.len()]);
    let mut read_before_the_first = None;
    while read < all.len() || !scheduler.is_idle() {
        while read < all.len() && scheduler.has_capacity() {
            scheduler.push(all[read].clone());
            read += 1;
        }
        scheduler.step().expect("it fits");
        while let Some((id, hypotheses)) = scheduler.poll() {
            read_before_the_first.get_or_insert(read);
            found[id.0] = hypotheses.expect("a good source");
        }
    }
    let read = read_before_the_first.expect("results");
    assert!(read < 15, "{read} of 40 sources were encoded before the first result");
    assert_eq!(found, expected);
}

#[test]
fn samples_depend_only_on_the_seed_and_the_source() {
    let model = TableModel::new(9, 5);
    let sampled = |seed, top_k| SearchOptions {
        sampling: Some(Sampling { seed, top_k, ..Sampling::default() }),
        n_best: 3,
        ..options(1, 10)
    };
    let run = |sources: &[Vec<u32>], options: &SearchOptions| {
        search(&model, sources, options).expect("good sources")
    };
    let all = sources(8);
    let together = run(&all, &sampled(1, None));
    let mut reversed = all.clone();
    reversed.reverse();
    let mut backwards = run(&reversed, &SearchOptions { batch_tokens: Some(1), ..sampled(1, None) });
    backwards.reverse();
    assert_eq!(together, backwards);
    assert_ne!(together, run(&all, &sampled(2, None)));
    assert_ne!(together[0][0].tokens, together[0][1].tokens);
    // Sampling from the top 1 is greedy search.
    let greedy = run(&all, &options(1, 10));
    let best = run(&all, &sampled(1, Some(1)));
    assert!(greedy.iter().zip(&best).all(|(greedy, best)| best.iter().all(|best| best == &greedy[0])));
}

#[test]
fn empty_sources_and_contradictions_are_errors() {
    let model = TableModel::new(5, 1);
    let empty = search(&model, &[vec![3], vec![]], &options(2, 5));
    assert_eq!(empty, Err(BatchError::EmptySource { sentence: 1 }.into()));
    assert_eq!(search(&model, &[], &options(2, 5)), Ok(Vec::new()));
    let narrow = SearchOptions { n_best: 3, ..options(2, 5) };
    assert!(matches!(search(&model, &[vec![3]], &narrow), Err(DecodeError::Options(_))));
}

#[test]
fn sources_that_trickle_in_are_encoded_together_and_none_waits_long() {
    let mut model = TableModel::new(6, 2);
    // No output ends before the maximum length.
    model.fixed = |_, token| (token == EOS).then_some(-30.0);
    let alike = Arc::new(options(1, 30));
    let mut shared = Scheduler::new(&model, &alike).expect("good options");
    for _ in 0..12 {
        shared.push_with(vec![3, 4], alike.clone());
    }
    shared.step().expect("it fits");
    assert_eq!(model.reads.load(Ordering::Relaxed), 1);
    // One arrives per step: they wait for two more, a quarter of the active ones.
    for i in 12..15 {
        assert_eq!(model.reads.load(Ordering::Relaxed), 1, "{i}");
        shared.push_with(vec![3, 4], alike.clone());
        shared.step().expect("it fits");
    }
    assert_eq!(model.reads.load(Ordering::Relaxed), 2);
    // A last one that no other joins.
    let last = shared.push_with(vec![3, 4], alike);
    let steps = (1..).find(|_| {
        shared.step().expect("it fits");
        shared.so_far(last).is_some()
    });
    assert_eq!(steps, Some(7));
    assert_eq!(model.reads.load(Ordering::Relaxed), 3);
}
