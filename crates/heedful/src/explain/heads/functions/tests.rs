//! Heads of known functions: those of a model whose weights are set by hand, and random ones.

use super::*;
use crate::explain::inspect::fixture::{every_task, induction_model};

/// Layer 0 attends to the previous position and copies its token; layer 1 compares its own token with the
/// copied ones, and so attends to the token after an earlier occurrence.
#[test]
fn an_induction_head_built_by_hand_has_the_score_of_one() {
    let text = induction_model(&[4, 5, 6, 7]);
    let found = HeadFunctions::new(&text, 6, 1).expect("scores");
    let [first, second] = found.heads.as_slice() else { panic!("{found:?}") };
    assert!(first.previous.is_some_and(|score| score > 0.95), "{first:?}");
    assert!(first.induction.is_some_and(|score| score < 0.05), "{first:?}");
    assert!(second.induction.is_some_and(|score| score > 0.95), "{second:?}");
    assert!(second.duplicate.is_some_and(|score| score < 0.05), "{second:?}");
    assert_eq!((first.alignment, second.alignment), (None, None));
}

#[test]
fn every_head_of_every_task_is_measured() {
    for text in every_task() {
        let found = HeadFunctions::new(&text, 8, 3).expect("scores");
        let (table, csv) = (found.table(), found.to_csv());
        assert!(table.rows.iter().all(|row| row.len() == table.columns.len()));
        assert!(csv.lines().all(|line| line.split(',').count() == 5), "{csv}");
        for head in &found.heads {
            let is_self = head.name.role != AttentionRole::Cross;
            assert_eq!((head.previous.is_some(), head.induction.is_some()), (is_self, is_self), "{head:?}");
            let scores = [head.previous, head.duplicate, head.induction];
            assert!(scores.iter().flatten().all(|score| (0.0..=1.0).contains(score)), "{head:?}");
        }
    }
    let error = HeadFunctions::new(&every_task()[0], 1, 3).expect_err("too few").to_string();
    assert!(error.contains("at least 2"), "{error}");
}
