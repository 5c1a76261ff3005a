//! Cancellation and budgets, and duplicate sources that are decoded once.

use std::sync::atomic::Ordering;

use heedful::decode::{Cancel, DecodeError, Ensemble, Limits, Scheduler, SearchInput, search, search_by};

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
fn a_repeated_source_gets_its_result_without_decoding() {
    let model = TableModel::new(7, 5);
    let mut scheduler = Scheduler::new(&model, &options(3, 8)).expect("good options");
    let mut answer = || {
        let id = scheduler.push(vec![3, 4]);
        while scheduler.so_far(id).is_some() || model.steps.load(Ordering::Relaxed) == 0 {
            scheduler.step().expect("it fits");
        }
        let (of, found) = scheduler.poll().expect("a result");
        assert!(of == id && scheduler.is_idle());
        found
    };
    let first = answer();
    let steps = model.steps.load(Ordering::Relaxed);
    assert_eq!(answer(), first);
    assert_eq!(model.steps.load(Ordering::Relaxed), steps);
}

#[test]
fn equal_sources_are_cancelled_one_by_one() {
    let model = TableModel::new(7, 5);
    let mut scheduler = Scheduler::new(&model, &options(3, 8)).expect("good options");
    let [first, second, third] = [(); 3].map(|()| scheduler.push(vec![3, 4]));
    scheduler.step().expect("it fits");
    assert!(scheduler.so_far(third).is_some());
    scheduler.cancel(first);
    scheduler.cancel(third);
    while !scheduler.is_idle() && scheduler.so_far(second).is_some() {
        scheduler.step().expect("it fits");
    }
    let found = scheduler.poll().expect("a result");
    assert_eq!(
        found,
        (second, Ok(search(&model, &[vec![3, 4]], &options(3, 8)).expect("a source").remove(0)))
    );
    assert!(scheduler.is_idle());
    // When all requests are cancelled, nothing is decoded.
    let both = [(); 2].map(|()| scheduler.push(vec![4, 3]));
    both.into_iter().for_each(|id| scheduler.cancel(id));
    assert!(scheduler.is_idle());
    // A cancelled request has no result, even if the result is already known.
    let known = scheduler.push(vec![3, 4]);
    scheduler.cancel(known);
    assert!(scheduler.is_idle() && scheduler.poll().is_none());
}

#[test]
fn the_error_of_equal_sources_names_each_of_them() {
    let mut model = TableModel::new(6, 1);
    model.fixed = |past, token| (past.len() == 1 && token == 4).then_some(f32::NAN);
    let mut scheduler = Scheduler::new(&model, &options(8, 6)).expect("good options");
    let ids = [(); 2].map(|()| scheduler.push(vec![3, 4]));
    while scheduler.so_far(ids[0]).is_some() || scheduler.generated() == 0 {
        scheduler.step().expect("it fits");
    }
    let found = [(); 2].map(|()| scheduler.poll().expect("a result"));
    for (id, (of, found)) in ids.into_iter().zip(found) {
        let message = found.expect_err("NaN").to_string();
        assert!(of == id && message.contains(&format!("sentence {}", id.0)), "{message}");
    }
}

#[test]
fn a_budget_suffices_or_not_independent_of_the_order() {
    let model = TableModel::new(7, 5);
    let ensemble = Ensemble::new(vec![&model]).expect("a model");
    let mut inputs: Vec<SearchInput> = sources(9).into_iter().map(SearchInput::from).collect();
    let run = |inputs: &[SearchInput], batch_tokens, limits: &Limits| {
        let options = heedful::decode::SearchOptions { batch_tokens, ..options(2, 9) };
        search_by(&ensemble, inputs, &options, limits)
    };
    let needed = (0..).find(|&tokens| run(&inputs, Some(5000), &Limits::max_tokens(tokens)).is_ok());
    let needed = needed.expect("some number is enough");
    assert!(needed >= 9, "{needed}");
    for batch_tokens in [1, 30, 5000] {
        inputs.rotate_left(2);
        assert!(run(&inputs, Some(batch_tokens), &Limits::max_tokens(needed)).is_ok());
        let error =
            run(&inputs, Some(batch_tokens), &Limits::max_tokens(needed - 1)).expect_err("one too few");
        assert_eq!(error, DecodeError::OverBudget { budget: needed - 1 });
    }
    let cancel = Cancel::default();
    cancel.clone().cancel();
    let cancelled = run(&inputs, Some(5000), &Limits { cancel, tokens: None });
    assert_eq!(cancelled, Err(DecodeError::Cancelled));
}
