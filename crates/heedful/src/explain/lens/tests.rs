//! The lens of tiny models with random parameters.

use super::super::inspect::fixture::every_task;
use super::*;

#[test]
fn the_last_layer_predicts_what_the_model_predicts() {
    for text in every_task() {
        let lens = Lens::new(&text, 3).expect("a lens");
        let own = text.scores(&mut text.pass()).expect("scores");
        let last = lens.layers.last().expect("a layer");
        assert_eq!(lens.layers.len(), text.last_stack().blocks + 1);
        assert_eq!(last.predictions.len(), own.len());
        for (prediction, score) in last.predictions.iter().zip(&own) {
            assert!((prediction.probability.ln() - score).abs() < 1e-5, "{prediction:?} and {score}");
        }
    }
}

#[test]
fn layers_differ_and_top_tokens_are_sorted() {
    for text in every_task() {
        let lens = Lens::new(&text, 4).expect("a lens");
        let [first, last] = [&lens.layers[0], &lens.layers[lens.layers.len() - 1]];
        assert_ne!(first.predictions, last.predictions, "{}", first.name);
        for prediction in lens.layers.iter().flat_map(|layer| &layer.predictions) {
            let top = &prediction.top;
            assert!(top.is_sorted_by(|a, b| a.probability >= b.probability), "{top:?}");
            let place = top.iter().position(|token| token.probability == prediction.probability);
            assert!(place.is_none_or(|place| place + 1 == prediction.rank), "{prediction:?}");
        }
        let columns = lens.table().columns.len();
        assert!(lens.table().rows.iter().all(|row| row.len() == columns));
        assert!(lens.svg().ends_with("</svg>"));
    }
}

#[test]
fn no_predictions_are_an_error() {
    let error = Lens::new(&every_task()[0], 0).expect_err("nothing to show").to_string();
    assert!(error.contains("at least 1"), "{error}");
}
