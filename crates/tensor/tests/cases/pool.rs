use heedful_tensor::Ragged;
use heedful_tensor::ops::{max_pool, mean_pool};

use crate::support::reference::M;
use crate::support::{Case, Values};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (lengths, width) in [(vec![1], 7), (vec![1, 50, 3], 33), (vec![2, 1, 1], 100), (vec![7, 300], 64)] {
        let sequences = Ragged::from_lengths(lengths.iter().copied());
        let rows = sequences.tokens();
        let named = |name: &str| format!("{name} over {lengths:?} of width {width}");

        let (for_op, for_reference) = (sequences.clone(), sequences.clone());
        let case = Case::new(
            named("mean_pool"),
            move |run| mean_pool(&run.x[0], &for_op),
            move |m| {
                M::build(for_reference.sequences(), m[0].width, |s, c| {
                    let rows = for_reference.range(s);
                    rows.clone().map(|row| m[0].at(row, c)).sum::<f64>() / rows.len() as f64
                })
            },
        );
        cases.push(case.input(rows, width, Values::Within(1.0)));

        // Always f32: rounding to bf16 creates ties, and then a different row gets the gradient.
        let (for_op, for_reference) = (sequences.clone(), sequences);
        let case = Case::new(
            named("max_pool"),
            move |run| max_pool(&run.x[0], &for_op),
            move |m| {
                M::build(for_reference.sequences(), m[0].width, |s, c| {
                    for_reference.range(s).map(|row| m[0].at(row, c)).fold(f64::NEG_INFINITY, f64::max)
                })
            },
        );
        cases.push(case.wide_input(rows, width, Values::Within(1.0)));
    }
    cases
}
