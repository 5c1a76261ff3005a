//! Attributions of tiny models with random parameters.

use super::gradients::{ScaledCopy, scores, token_gradients};
use super::*;
use crate::explain::inspect::fixture::{classifier, every_task, language_model};
use crate::layers::Norm;
use crate::recipe::Pooling;

fn options(method: AttributionMethod) -> AttributionOptions {
    AttributionOptions { method, ..AttributionOptions::default() }
}

#[test]
fn gradients_equal_finite_differences() {
    for text in every_task() {
        let mut tokens = TokenVectors::of(&text).expect("token vectors");
        let copy = [ScaledCopy { scale: 1.0, prediction: text.predictions().len() - 1 }];
        let gradients = token_gradients(&text, &tokens, &copy).expect("gradients").swap_remove(0);
        let before = scores(&text, &tokens, &copy).expect("scores")[0];
        assert!((before - gradients.log_probability).abs() < 1e-5);
        for stack in 0..tokens.stacks.len() {
            // Along a random direction, so that rounding does not hide the difference.
            let direction: Vec<f32> =
                (0..tokens.stacks[stack].len()).map(|i| if i * 7 % 5 < 2 { 1.0 } else { -0.5 }).collect();
            let step = 1e-3_f32;
            let mut at = |sign: f32| {
                let moved = |(x, d): (&f32, &f32)| x + sign * step * d;
                let kept = tokens.stacks[stack].clone();
                tokens.stacks[stack] = kept.iter().zip(&direction).map(moved).collect();
                let score = scores(&text, &tokens, &copy).expect("scores")[0];
                tokens.stacks[stack] = kept;
                score
            };
            let difference = (at(1.0) - at(-1.0)) / (2.0 * f64::from(step));
            let products = gradients.stacks[stack].iter().zip(&direction);
            let slope: f64 = products.map(|(&g, &d)| f64::from(g) * f64::from(d)).sum();
            assert!((difference - slope).abs() < 2e-2 * slope.abs().max(0.1), "{difference} and {slope}");
        }
    }
}

#[test]
fn integrated_gradients_are_complete_to_one_percent_in_64_steps() {
    for text in every_task() {
        let found = Attribution::new(&text, &AttributionOptions::default()).expect("attributions");
        for target in &found.targets {
            let completeness = target.completeness.expect("integrated gradients");
            // A difference near zero has no meaningful relative error.
            let error = (completeness.sum - completeness.difference).abs();
            assert!(error <= 0.01 * completeness.difference.abs().max(0.01), "{completeness:?}");
        }
        let own = text.scores(&mut text.pass()).expect("scores");
        for (target, own) in found.targets.iter().zip(own) {
            assert!((target.log_probability - own).abs() < 1e-5);
        }
    }
}

#[test]
fn occlusion_equals_a_run_without_the_token() {
    for text in every_task() {
        let found = Attribution::new(&text, &options(AttributionMethod::Occlusion)).expect("attributions");
        let mut tokens = TokenVectors::of(&text).expect("token vectors");
        let prediction = text.predictions().len() - 1;
        let copy = [ScaledCopy { scale: 1.0, prediction }];
        let whole = scores(&text, &tokens, &copy).expect("scores")[0];
        for stack in 0..tokens.stacks.len() {
            for token in 0..tokens.stacks[stack].len() / tokens.width {
                let kept = tokens.stacks[stack].clone();
                tokens.stacks[stack][token * tokens.width..][..tokens.width].fill(0.0);
                let expected = whole - scores(&text, &tokens, &copy).expect("scores")[0];
                tokens.stacks[stack] = kept;
                let score = found.targets[prediction].scores[stack][token];
                assert!((score - expected).abs() < 1e-5, "{score} and {expected}");
            }
        }
    }
}

#[test]
fn a_prediction_does_not_depend_on_later_tokens() {
    let text = language_model(Norm::Pre, &[4, 9, 30, 7]);
    for method in AttributionMethod::ALL {
        let found = Attribution::new(&text, &options(method)).expect("attributions");
        for (position, target) in found.targets.iter().enumerate() {
            let later = &target.scores[0][position + 1..];
            assert!(later.iter().all(|score| score.abs() < 1e-6), "{method}: {later:?}");
        }
    }
}

#[test]
fn the_shares_of_rollout_sum_to_one() {
    for text in every_task() {
        let found = Attribution::new(&text, &options(AttributionMethod::Rollout)).expect("attributions");
        for target in &found.targets {
            let sum: f64 = target.scores.iter().flatten().sum();
            assert!((sum - 1.0).abs() < 1e-5, "{sum}");
        }
    }
    let max = classifier(Pooling::Max, &[4, 5]);
    let error = Attribution::new(&max, &options(AttributionMethod::Rollout)).expect_err("no weights");
    assert!(error.to_string().contains("occlusion"), "{error}");
}

#[test]
fn norms_are_not_negative_and_tables_are_complete() {
    let text = &every_task()[0];
    let l2 = AttributionOptions { reduction: Reduction::L2, ..options(AttributionMethod::GradientXInput) };
    let found = Attribution::new(text, &l2).expect("attributions");
    assert!(
        found.targets.iter().flat_map(|target| target.scores.iter().flatten()).all(|&score| score >= 0.0)
    );
    let columns = found.table().columns.len();
    assert!(found.table().rows.iter().all(|row| row.len() == columns));
    let none = AttributionOptions { steps: 0, ..AttributionOptions::default() };
    let error = Attribution::new(text, &none).expect_err("no steps").to_string();
    assert!(error.contains("1 to 10000 steps"), "{error}");
}
