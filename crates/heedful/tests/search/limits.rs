//! What ends a call early, and what is not decoded twice.

use std::sync::atomic::Ordering;

use heedful::decode::{Cancel, DecodeError, Ensemble, Limits, SearchInput, UniqueSearch, search, search_by};

use crate::table::TableModel;
use crate::{options, sources};

#[test]
fn equal_sources_are_decoded_once() {
    let model = TableModel::new(7, 5);
    let distinct = sources(6);
    let expected = search(&model, &distinct, &options(3, 8)).expect("good sources");
    let decoded = model.sources.swap(0, Ordering::Relaxed);
    let repeated: Vec<Vec<u32>> = distinct.iter().cycle().take(30).cloned().collect();
    let found = search(&model, &repeated, &options(3, 8)).expect("good sources");
    assert_eq!(found, expected.iter().cycle().take(30).cloned().collect::<Vec<_>>());
    assert_eq!(model.sources.load(Ordering::Relaxed), decoded);
}

#[test]
fn what_comes_again_later_has_its_result_at_once() {
    let model = TableModel::new(7, 5);
    let ensemble = Ensemble::new(vec![&model]).expect("a model");
    let mut search = UniqueSearch::new(&ensemble, &options(3, 8)).expect("good options");
    let mut answer = |ticket| {
        search.push(ticket, SearchInput::from(vec![3, 4])).expect("a good source");
        let mut found = Vec::new();
        while !search.is_idle() {
            found.extend(search.step());
        }
        assert_eq!(found.len(), 1);
        found.swap_remove(0)
    };
    let first = answer(5);
    let steps = model.steps.load(Ordering::Relaxed);
    assert_eq!(answer(8), (8, first.1));
    assert_eq!((first.0, model.steps.load(Ordering::Relaxed)), (5, steps));
}

#[test]
fn the_error_of_equal_sources_names_each_of_them() {
    let mut model = TableModel::new(6, 1);
    model.fixed = |past, token| (past.len() == 1 && token == 4).then_some(f32::NAN);
    let ensemble = Ensemble::new(vec![&model]).expect("a model");
    let mut search = UniqueSearch::new(&ensemble, &options(8, 6)).expect("good options");
    for ticket in [7, 9] {
        search.push(ticket, SearchInput::from(vec![3, 4])).expect("a good source");
    }
    let mut messages = Vec::new();
    while !search.is_idle() {
        messages.extend(search.step().into_iter().map(|(_, found)| found.expect_err("NaN").to_string()));
    }
    assert_eq!(messages.len(), 2);
    assert!(messages[0].contains("sentence 7") && messages[1].contains("sentence 9"), "{messages:?}");
}

#[test]
fn a_budget_is_enough_or_not_whatever_the_order() {
    let model = TableModel::new(7, 5);
    let ensemble = Ensemble::new(vec![&model]).expect("a model");
    let mut inputs: Vec<SearchInput> = sources(9).into_iter().map(SearchInput::from).collect();
    let run = |inputs: &[SearchInput], batch_tokens, limits: &Limits| {
        let options = heedful::decode::SearchOptions { batch_tokens, ..options(2, 9) };
        search_by(&ensemble, inputs, &options, limits)
    };
    let needed = (0..).find(|&tokens| run(&inputs, Some(5000), &Limits::of_tokens(tokens)).is_ok());
    let needed = needed.expect("some number is enough");
    assert!(needed >= 9, "{needed}");
    for batch_tokens in [1, 30, 5000] {
        inputs.rotate_left(2);
        assert!(run(&inputs, Some(batch_tokens), &Limits::of_tokens(needed)).is_ok());
        let error =
            run(&inputs, Some(batch_tokens), &Limits::of_tokens(needed - 1)).expect_err("one too few");
        assert_eq!(error, DecodeError::OverBudget { budget: needed - 1 });
    }
    let cancel = Cancel::default();
    cancel.clone().cancel();
    let cancelled = run(&inputs, Some(5000), &Limits { cancel, tokens: None });
    assert_eq!(cancelled, Err(DecodeError::Cancelled));
}
