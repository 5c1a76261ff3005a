//! R-Drop: two passes over a batch agree without dropout and are pulled together with dropout, in every model
//! that supports it.

use heedful::data::batch::{Batch, BatchLayout};
use heedful::layers::Pass;
use heedful::models::Model;
use heedful::recipe::Overrides;
use heedful::tasks;
use heedful::tensor::ops::CrossEntropy;
use heedful::tensor::{DType, tape};
use heedful::train::{Schedule, StepTrainer, TrainerOptions};

const VOCABULARY: usize = 40;
const ALPHA: f32 = 5.0;
const PAIRS: BatchLayout = BatchLayout::Pairs;

/// A tiny model with some recipe settings, without label smoothing.
fn model(values: &str) -> Box<dyn Model> {
    let mut overrides = Overrides::new();
    for value in "preset=tiny label_smoothing=0".split_whitespace().chain(values.split_whitespace()) {
        overrides.set(value).expect("a good setting");
    }
    let recipe = tasks::resolve(overrides).expect("a good recipe");
    let config = recipe.model_config([VOCABULARY; 2], 3).expect("a good configuration");
    config.build(5).expect("a good configuration")
}

fn batch(layout: BatchLayout) -> Batch {
    let text =
        |first: u32, length: u32| (0..length).map(|i| 4 + (first * 7 + i * 5) % 36).collect::<Vec<_>>();
    let examples: Vec<_> = (0..6)
        .map(|i| match layout {
            BatchLayout::Labels => (text(i, 3 + i), vec![i % 3]),
            BatchLayout::Lines => (vec![], text(i, 3 + i)),
            _ => (text(i, 2 + i), text(i + 9, 7 - i)),
        })
        .collect();
    Batch::of(layout, &examples, [1, 2]).expect("a good batch")
}

fn pass(r_drop: Option<f32>) -> Pass {
    Pass::training(DType::F32, 3, 1).with_r_drop(r_drop)
}

/// The weighted divergence in a loss without label smoothing.
fn divergence(found: &CrossEntropy) -> f64 {
    f64::from(found.loss.item()) - found.negative_log_likelihood() / found.tokens as f64
}

#[test]
fn two_passes_without_dropout_have_the_loss_and_gradient_of_one() {
    let model = model("dropout=0");
    let gradient = |batch: &Batch, r_drop| {
        let found = model.loss(batch, &mut pass(r_drop));
        tape::backward(&found.loss);
        let gradients = model.params().gradients();
        model.params().clear_gradients();
        (found.loss.item(), gradients)
    };
    let once = batch(PAIRS);
    let (loss, plain) = gradient(&once, None);
    let (same, twice) = gradient(&once.doubled(), None);
    let (agreed, paired) = gradient(&once.doubled(), Some(ALPHA));
    assert_eq!(same, agreed, "nothing is added to the loss");
    assert!((loss - agreed).abs() < 1e-6, "{loss} and {agreed}");
    assert!(near(&paired, &twice) && near(&paired, &plain));
    assert!(plain.iter().any(|&slope| slope != 0.0));
}

/// Whether two vectors are equal up to rounding of sums.
fn near(a: &[f32], b: &[f32]) -> bool {
    let length = |values: &mut dyn Iterator<Item = f32>| values.map(|x| f64::from(x).powi(2)).sum::<f64>();
    length(&mut a.iter().zip(b).map(|(a, b)| a - b)) < 1e-10 * length(&mut b.iter().copied())
}

#[test]
fn the_gradient_of_a_transformer_matches_finite_differences() {
    let model = model("dropout=0.2 attention_dropout=0.1 feed_forward_dropout=0.1 label_smoothing=0.1");
    let doubled = batch(PAIRS).doubled();
    // Dropout masks are the same in every call: they are a function of seed and step.
    let loss = || model.loss(&doubled, &mut pass(Some(ALPHA))).loss;
    tape::backward(&loss());
    for param in model.params().iter() {
        // The loss changes most along the gradient, so rounding matters least there.
        let (here, gradient) = (param.to_vec(), param.gradient());
        let length = gradient.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
        let step = 2e-2 / length.max(1.0);
        let at = |step: f64| {
            let moved = here.iter().zip(&gradient).map(|(x, slope)| x + (step / length) as f32 * slope);
            param.set(&moved.collect::<Vec<_>>());
            tape::no_grad(|| f64::from(loss().item()))
        };
        let slope = (at(step) - at(-step)) / (2.0 * step);
        param.set(&here);
        assert!((slope - length).abs() < 0.02 * length, "{}: {slope} and {length}", param.name());
    }
}

#[test]
fn each_kind_of_dropout_makes_the_passes_differ_in_every_model() {
    for (values, layout) in [
        ("dropout=0.2", PAIRS),
        ("attention_dropout=0.2", PAIRS),
        ("feed_forward_dropout=0.2", PAIRS),
        ("family=recurrent dropout=0.2", PAIRS),
        ("family=recurrent attention=hard dropout=0.2", PAIRS),
        ("family=convolutional dropout=0.2", PAIRS),
        ("task=classify dropout=0.2", BatchLayout::Labels),
        ("task=lm dropout=0.2", BatchLayout::Lines),
    ] {
        let others =
            if values.contains("family=") { "" } else { "attention_dropout=0 feed_forward_dropout=0" };
        let model = model(&format!("dropout=0 {others} {values}"));
        let once = batch(layout);
        let paired = model.loss(&once.doubled(), &mut pass(Some(ALPHA)));
        assert_eq!(paired.tokens, 2 * once.target_tokens(), "{values}");
        let found = divergence(&paired);
        assert!(found > 1e-4, "{values}: {found}");
        let half = model.loss(&once.doubled(), &mut pass(Some(ALPHA / 2.0)));
        assert!((found - 2.0 * divergence(&half)).abs() < 1e-4 * found.max(0.1), "{values}: {found}");
        assert!(divergence(&model.loss(&once.doubled(), &mut pass(None))).abs() < 1e-5, "{values}");
    }
}

#[test]
fn a_trainer_doubles_its_batches_and_reports_means() {
    let trainer = |values: &str, r_drop| {
        let options = TrainerOptions::new(DType::F32, 3, Schedule::Constant { rate: 1e-3 });
        StepTrainer::new(model(values), TrainerOptions { r_drop, ..options })
    };
    // Two batches of different sizes: each is weighted by its tokens, as without R-Drop.
    let (one, other) = (batch(PAIRS), Batch::new(&[(vec![7, 8], vec![9])], 1, 2).expect("a good batch"));
    let batches = [one, other];
    let plain = trainer("dropout=0", None).step_over(&batches).expect("good batches");
    let twice = trainer("dropout=0", Some(ALPHA)).step_over(&batches).expect("good batches");
    assert_eq!((twice.tokens, twice.correct), (2 * plain.tokens, 2 * plain.correct));
    assert!((plain.loss - twice.loss).abs() < 1e-5, "{plain:?} {twice:?}");
    let (norm, same) = (plain.update.gradient_norm, twice.update.gradient_norm);
    assert!((norm - same).abs() < 1e-4 * norm, "{norm} and {same}");

    let dropping = trainer("dropout=0.2", Some(ALPHA)).step_over(&batches).expect("good batches");
    let cross_entropy = dropping.negative_log_likelihood / dropping.tokens as f64;
    assert!(f64::from(dropping.loss) > cross_entropy + 1e-3, "the divergence is in the loss: {dropping:?}");
}

#[test]
fn training_with_r_drop_reduces_the_divergence() {
    let train = |r_drop| {
        let options = TrainerOptions::new(DType::F32, 3, Schedule::Constant { rate: 3e-3 });
        let mut trainer = StepTrainer::new(model("dropout=0.2"), TrainerOptions { r_drop, ..options });
        for _ in 0..40 {
            trainer.step(&batch(PAIRS)).expect("a good batch");
        }
        let found = trainer.model().loss(&batch(PAIRS).doubled(), &mut pass(Some(2.0)));
        divergence(&found)
    };
    let (without, with) = (train(None), train(Some(ALPHA)));
    assert!(with < 0.75 * without, "{with} with R-Drop and {without} without");
}
