//! The neuron view of tiny models with random parameters.

use super::*;
use crate::explain::inspect::fixture::{every_task, translator};
use crate::layers::Norm;

#[test]
fn the_products_sum_to_the_score_of_the_attention() {
    for text in every_task() {
        let kinds: &[AttentionRole] = match text.inputs() {
            [_, _] => &[AttentionRole::EncoderSelf, AttentionRole::DecoderSelf, AttentionRole::Cross],
            [one] if one.stack == StackSide::Encoder => &[AttentionRole::EncoderSelf],
            _ => &[AttentionRole::DecoderSelf],
        };
        for &role in kinds {
            let head = HeadName { role, layer: 1, head: 1 };
            let view = NeuronView::new(&text, head, [Some(2), Some(1)], 5).expect("a view");
            let PairView { q, dot, score, weight, weights, .. } = &view.pair;
            let scaled = dot / (q.len() as f64).sqrt();
            let score = f64::from(score.expect("not masked"));
            assert!((scaled - score).abs() < 1e-4, "{head}: {scaled} and {score}");
            assert!((weights.iter().sum::<f32>() - 1.0).abs() < 1e-5);
            assert_eq!(*weight, weights[1]);
            assert!(view.path.steps.len() > 3 && view.path.steps[0].name.ends_with(".tokens"));
        }
    }
}

#[test]
fn the_path_of_a_predicting_token_ends_in_its_logits() {
    let text = translator(Norm::Pre, &[5, 6, 7], &[9, 10]);
    let view = |head: &str, query| {
        NeuronView::new(&text, head.parse().expect("a head"), [Some(query), Some(0)], 3).expect("a view")
    };
    assert_eq!(view("decoder.0.self.0", 2).path.logits.len(), 3);
    assert!(view("encoder.0.self.0", 2).path.logits.is_empty());
    for table in view("decoder.0.cross.0", 1).tables() {
        assert!(table.rows.iter().all(|row| row.len() == table.columns.len()), "{table:?}");
    }
}

#[test]
fn unknown_heads_and_positions_are_named() {
    let text = translator(Norm::Pre, &[5, 6, 7], &[9, 10]);
    let fails = |head: &str, pair: [usize; 2]| {
        NeuronView::new(&text, head.parse().expect("a head"), pair.map(Some), 3)
            .expect_err("an error")
            .to_string()
    };
    let error = fails("decoder.9.self.0", [0, 0]);
    assert!(error.contains("no head decoder.9.self.0") && error.contains("encoder.0.self.0 to"), "{error}");
    let error = fails("decoder.0.cross.0", [0, 3]);
    assert!(error.contains("position 3 is not in the encoder") && error.contains("0 to 2"), "{error}");
}
