//! Patches in tiny models with random parameters.

use super::*;
use crate::explain::inspect::fixture::{MASK, classifier, filler, language_model, translator};
use crate::layers::Norm;
use crate::recipe::Pooling;

/// A clean and a corrupted text for every task, and the prediction.
fn pairs() -> Vec<([Inspected<'static>; 2], Contrast)> {
    let at = |prediction| Contrast { prediction, answer: 1, wrong: 2 };
    let both = |source: &dyn Fn(u32) -> Inspected<'static>| [source(6), source(17)];
    vec![
        (both(&|id| translator(Norm::Post, &[5, id, 7, 8], &[9, 10])), at(2)),
        (both(&|id| translator(Norm::Pre, &[5, id, 7], &[9])), at(1)),
        (both(&|id| language_model(Norm::Pre, &[4, id, 30, 7])), at(4)),
        (both(&|id| classifier(Pooling::Attention, &[4, id, 30])), at(0)),
        (both(&|id| filler(&[4, id, MASK, 7])), at(0)),
    ]
}

#[test]
fn patching_all_positions_gives_the_clean_run() {
    for ([clean, corrupted], contrast) in pairs() {
        let runs = Runs::new(&clean, &corrupted, contrast).expect("runs");
        let everywhere = |layer: fn(usize) -> usize| {
            let states = clean.inputs().iter().map(|inputs| {
                let site = StateSite::Residual { stack: inputs.stack, blocks: layer(inputs.blocks) };
                let [state, _] = runs.both(site).expect("a state");
                (site, state.clone())
            });
            runs.effect(runs.margins(states.collect(), 1).expect("a margin")[0])
        };
        for effect in [everywhere(|_| 0), everywhere(|blocks| blocks / 2), everywhere(|blocks| blocks)] {
            assert!((effect - 1.0).abs() < 1e-4, "{effect}");
        }
    }
}

#[test]
fn the_last_layer_moves_only_at_the_predicting_position() {
    for ([clean, corrupted], contrast) in pairs().into_iter().take(3) {
        let found = Patching::new(&clean, &corrupted, contrast, PatchUnit::States).expect("effects");
        assert_eq!(found.grids.len(), clean.inputs().len());
        let effects = found.grids.last().and_then(|grid| grid.effects.last()).expect("a layer");
        for (position, effect) in effects.iter().enumerate() {
            let expected = if position == contrast.prediction { 1.0 } else { 0.0 };
            assert!((effect - expected).abs() < 1e-4, "position {position}: {effect}");
        }
    }
}

#[test]
fn only_the_changed_token_matters_at_the_embedding() {
    for ([clean, corrupted], contrast) in pairs() {
        let found = Patching::new(&clean, &corrupted, contrast, PatchUnit::States).expect("effects");
        let grid = &found.grids[0];
        let changed = grid.columns.iter().position(|column| column.contains('/')).expect("a changed token");
        for (position, effect) in grid.effects[0].iter().enumerate() {
            let expected = if position == changed { 1.0 } else { 0.0 };
            assert!((effect - expected).abs() < 1e-4, "position {position}: {effect}");
        }
    }
}

#[test]
fn every_head_has_an_effect_and_the_sum_of_tables_fits() {
    for ([clean, corrupted], contrast) in pairs() {
        let found = Patching::new(&clean, &corrupted, contrast, PatchUnit::Heads).expect("effects");
        let effects: Vec<f64> = found.grids.iter().flat_map(|grid| grid.effects.concat()).collect();
        assert!(effects.iter().any(|effect| effect.abs() > 1e-6), "{effects:?}");
        for (table, grid) in found.tables().iter().zip(&found.grids) {
            assert_eq!(table.rows.len(), grid.rows.len());
            assert!(table.rows.iter().all(|row| row.len() == table.columns.len()));
        }
    }
}

#[test]
fn texts_of_other_lengths_and_equal_texts_are_errors() {
    let contrast = Contrast { prediction: 0, answer: 1, wrong: 2 };
    let text = |ids: &[u32]| language_model(Norm::Pre, ids);
    let fails = |clean: &Inspected<'_>, corrupted: &Inspected<'_>| {
        Patching::new(clean, corrupted, contrast, PatchUnit::States).expect_err("an error").to_string()
    };
    let error = fails(&text(&[4, 5]), &text(&[4, 5, 6]));
    assert!(error.contains("3 tokens and the corrupted text 4"), "{error}");
    let error = fails(&text(&[4, 5]), &text(&[4, 5]));
    assert!(error.contains("--answer and --wrong"), "{error}");
}
