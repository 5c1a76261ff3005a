//! Forced prefixes and phrases, against an exhaustive search.

use heedful::decode::{
    Constraints, DecodeError, Ensemble, Hypothesis, Limits, Sampling, SearchInput, SearchOptions, search,
    search_by,
};

use crate::table::TableModel;
use crate::{EOS, exhaustive, options, same, sources};

fn constrained(
    model: &TableModel,
    source: &[u32],
    constraints: &Constraints,
    options: &SearchOptions,
) -> Result<Vec<Hypothesis>, DecodeError> {
    let input = SearchInput { source: source.to_vec(), constraints: constraints.clone() };
    let mut found = search_by(&one(model), &[input], options, &Limits::default())?;
    Ok(found.swap_remove(0))
}

fn one(model: &TableModel) -> Ensemble<'_> {
    Ensemble::new(vec![model]).expect("a model")
}

fn prefix(tokens: &[u32]) -> Constraints {
    Constraints { prefix: tokens.to_vec(), ..Constraints::default() }
}

fn phrases(phrases: &[&[u32]]) -> Constraints {
    Constraints { phrases: phrases.iter().map(|phrase| phrase.to_vec()).collect(), ..Constraints::default() }
}

#[test]
fn a_wide_beam_finds_the_best_target_that_meets_the_constraints() {
    let kinds = [
        prefix(&[3, 0]),
        phrases(&[&[3]]),
        phrases(&[&[3, 0]]),
        phrases(&[&[3, 3, 0]]),
        phrases(&[&[3], &[0, 4]]),
        Constraints { prefix: vec![4], ..phrases(&[&[3, 0]]) },
        Constraints { prefix: vec![4, 3], ..phrases(&[&[3, 0]]) },
    ];
    for seed in 0..4 {
        let model = TableModel::new(5, seed);
        for constraints in &kinds {
            for alpha in [0.0, 0.6] {
                let options = SearchOptions { length_penalty: alpha, n_best: 5, ..options(900, 4) };
                let source = &sources(3)[2];
                let mut expected = exhaustive(&model, source, 4, alpha);
                expected.retain(|found| {
                    found.tokens.starts_with(&constraints.prefix)
                        && constraints.missing(&found.tokens).is_empty()
                });
                expected.truncate(5);
                let found = constrained(&model, source, constraints, &options).expect("good constraints");
                same(&found, &expected);
            }
        }
    }
}

#[test]
fn every_output_of_a_narrow_beam_meets_the_constraints() {
    for seed in 0..30 {
        let mut model = TableModel::new(9, seed);
        // The forced tokens are the least probable ones.
        model.fixed = |past, token| match token {
            5..=7 => Some(-9.0),
            EOS => Some(past.len() as f32 * 0.8 - 2.0),
            _ => None,
        };
        let constraints = Constraints { prefix: vec![3, 6], ..phrases(&[&[5, 6], &[7], &[6, 5, 5]]) };
        for (beam, limit) in [(1, 30), (2, 30), (4, 30), (4, 8), (7, 9)] {
            let options = SearchOptions { n_best: beam.min(2), ..options(beam, limit) };
            for source in sources(4) {
                let found = constrained(&model, &source, &constraints, &options).expect("good constraints");
                assert!(!found.is_empty());
                for found in found {
                    assert!(found.tokens.starts_with(&[3, 6]), "{found:?}");
                    assert_eq!(constraints.missing(&found.tokens), [0; 0], "{beam} {limit} {found:?}");
                    assert!(found.tokens.len() <= limit);
                }
            }
        }
    }
}

#[test]
fn a_constrained_output_has_the_score_of_the_same_target() {
    let model = TableModel::new(9, 3);
    let options = options(4, 12);
    let constraints = Constraints { prefix: vec![8, 3], ..phrases(&[&[5, 6]]) };
    for source in sources(5) {
        let found = constrained(&model, &source, &constraints, &options).expect("good constraints");
        let scored = heedful::decode::score(&model, &[(source, found[0].tokens.clone())], &options);
        assert_eq!(found[0].log_probability, scored.expect("a good pair")[0].log_probability);
    }
}

#[test]
fn forcing_a_prefix_of_the_free_output_changes_neither_output_nor_score() {
    let model = TableModel::new(7, 11);
    // With a beam of one, or a beam that prunes nothing, the search finds the same continuation.
    for (beam, limit) in [(1, 8), (900, 2)] {
        let options = options(beam, limit);
        for source in sources(6) {
            let free = search(&model, std::slice::from_ref(&source), &options).expect("a good source");
            for length in 0..=free[0][0].tokens.len() {
                let own = prefix(&free[0][0].tokens[..length]);
                assert_eq!(constrained(&model, &source, &own, &options).as_ref(), Ok(&free[0]));
            }
        }
    }
}

#[test]
fn samples_begin_with_their_prefix() {
    let model = TableModel::new(9, 5);
    let options =
        SearchOptions { sampling: Some(Sampling::default()), n_best: 6, min_length: 4, ..options(1, 10) };
    let found = constrained(&model, &[3], &prefix(&[8, 8, 8]), &options).expect("a good prefix");
    assert!(found.iter().all(|found| found.tokens.starts_with(&[8, 8, 8]) && found.tokens.len() >= 4));
    assert!(found.iter().any(|other| other.tokens != found[0].tokens));
    let refused = constrained(&model, &[3], &phrases(&[&[4]]), &options).expect_err("samples");
    assert!(refused.to_string().ends_with("phrases need beam search: do not sample"), "{refused}");
}

#[test]
fn impossible_constraints_are_met_as_far_as_possible_and_reported() {
    let mut model = TableModel::new(9, 5);
    model.fixed = |_, token| (token == 7).then_some(f32::NEG_INFINITY);
    // A token that the model never generates.
    let impossible = phrases(&[&[7], &[5]]);
    let found = constrained(&model, &[3, 4], &impossible, &options(3, 6)).expect("good constraints");
    assert_eq!(impossible.missing(&found[0].tokens), [0]);
    // Phrases longer than the maximum length.
    let long = phrases(&[&[3, 4], &[5, 6]]);
    let found = constrained(&model, &[3, 4], &long, &options(3, 3)).expect("good constraints");
    assert_eq!((found[0].tokens.len(), long.missing(&found[0].tokens).len()), (3, 1));
    // A prefix may be longer than the maximum length.
    let prefix = prefix(&[3, 4, 5, 6]);
    let found = constrained(&model, &[3, 4], &prefix, &options(3, 2)).expect("good constraints");
    assert_eq!(found[0].tokens, [3, 4, 5, 6]);

    for bad in [phrases(&[&[3], &[]]), phrases(&[&[3, EOS]]), Constraints { prefix: vec![4, EOS], ..long }] {
        let error = constrained(&model, &[3], &bad, &options(3, 6)).expect_err("bad constraints");
        assert!(error.to_string().starts_with("the constraints of sentence 0: a p"), "{error}");
    }
}

#[test]
fn constraints_of_other_sentences_change_no_bit() {
    let model = TableModel::new(9, 5);
    let kinds = [Constraints::default(), prefix(&[6, 6]), phrases(&[&[5, 3], &[8]])];
    let inputs: Vec<SearchInput> = (0..)
        .zip(sources(12))
        .map(|(i, source)| SearchInput { source, constraints: kinds[i % kinds.len()].clone() })
        .collect();
    for batch_tokens in [1, 20, 10_000] {
        let options = SearchOptions { n_best: 2, batch_tokens: Some(batch_tokens), ..options(3, 9) };
        let together =
            search_by(&one(&model), &inputs, &options, &Limits::default()).expect("good constraints");
        for (input, found) in inputs.iter().zip(&together) {
            let alone = constrained(&model, &input.source, &input.constraints, &options);
            assert_eq!(alone.as_ref(), Ok(found));
        }
    }
}
