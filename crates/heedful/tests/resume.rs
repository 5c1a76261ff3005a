//! A resumed run equals an uninterrupted one, accumulated batches equal one large batch, and bad steps are
//! rejected.

use heedful::data::batch::{Batch, BatchError};
use heedful::models::Model;
use heedful::models::transformer::{DropoutRates, Transformer, TransformerConfig};
use heedful::store::weights::Weights;
use heedful::tasks::validation::held_out;
use heedful::tensor::DType;
use heedful::tensor::ops::AdamOptions;
use heedful::tensor::random::Stream;
use heedful::train::checkpoint::{Checkpoint, Checkpoints, Keep, Progress};
use heedful::train::{
    Divergence, Optimizer, Schedule, StateError, StepTrainer, TrainError, TrainerOptions, TrainerState,
};

const VOCABULARY: usize = 40;

fn model(seed: u64) -> Transformer {
    let dropout = DropoutRates { residual: 0.2, attention: 0.1, feed_forward: 0.1 };
    let config = TransformerConfig { dropout, label_smoothing: 0.1, ..TransformerConfig::tiny(VOCABULARY) };
    Transformer::new(config, seed).expect("a good configuration")
}

fn options(compute: DType) -> TrainerOptions {
    TrainerOptions {
        adam: AdamOptions { clip_norm: 1.0, weight_decay: 0.01, ..Optimizer::PAPER },
        average_decay: Some(0.9),
        max_grad_norm_ratio: Some(100.0),
        ..TrainerOptions::new(compute, 7, Schedule::InverseSqrt { peak: 5e-3, warmup: 5 })
    }
}

fn sentences(number: u64, count: u32) -> Vec<(Vec<u32>, Vec<u32>)> {
    let stream = Stream::new(11, number, 0);
    let sentence = |i: u32| {
        let length = 1 + stream.bits(i * 32) % 9;
        (0..length).map(|j| 4 + stream.bits(i * 32 + 1 + j) % (VOCABULARY as u32 - 4)).collect::<Vec<u32>>()
    };
    (0..count).map(|i| (sentence(2 * i), sentence(2 * i + 1))).collect()
}

fn batches(number: u64, parts: usize) -> Vec<Batch> {
    let pairs = sentences(number, 16);
    pairs.chunks(16 / parts).map(|part| Batch::new(part, 1, 2).expect("a good batch")).collect()
}

/// Steps `from + 1` to `to`, two batches each.
fn train(trainer: &mut StepTrainer<Transformer>, from: u64, to: u64) {
    for step in from + 1..=to {
        trainer.step_over(&batches(step, 2)).expect("a good step");
    }
}

#[test]
fn a_run_resumed_from_a_checkpoint_has_the_bits_of_an_uninterrupted_run() {
    for (compute, r_drop) in [(DType::F32, None), (DType::Bf16, None), (DType::Bf16, Some(5.0))] {
        let options = |compute| TrainerOptions { r_drop, ..options(compute) };
        let mut whole = StepTrainer::new(model(1), options(compute));
        train(&mut whole, 0, 20);

        let folder = tempfile::tempdir().expect("a folder");
        {
            let mut first = StepTrainer::new(model(1), options(compute));
            train(&mut first, 0, 10);
            let checkpoints = Checkpoints::open(folder.path()).expect("an unlocked folder");
            let checkpoint = Checkpoint { trainer: first.state(), progress: Progress::default() };
            checkpoints.save(&checkpoint, Keep { last: 1, best: 0, full: 2 }).expect("room on the disk");
            // Steps after the checkpoint are lost with the process.
            train(&mut first, 10, 13);
        }
        let checkpoints = Checkpoints::open(folder.path()).expect("an unlocked folder");
        let (found, warnings) = checkpoints.latest().expect("a good checkpoint");
        assert!(warnings.is_empty());
        // A different seed: every value must come from the checkpoint.
        let mut second = StepTrainer::new(model(2), options(compute));
        second.restore(&found.expect("it was saved").trainer).expect("the same model");
        train(&mut second, 10, 20);
        let (whole, second) = (whole.state(), second.state());
        assert_eq!(whole, second, "{compute}, R-Drop {r_drop:?}");
        assert_eq!(bits(&whole), bits(&second), "{compute}, R-Drop {r_drop:?}");
    }
}

/// The bits of every value of a state: 0 and −0 differ.
fn bits(state: &TrainerState) -> Vec<u32> {
    let sets = [&state.parameters, &state.mean, &state.square].into_iter().chain(&state.average);
    sets.flat_map(|set| set.iter().flat_map(|(.., values)| values)).map(|value| value.to_bits()).collect()
}

#[test]
fn four_quarters_of_a_batch_give_the_gradient_of_the_whole() {
    let without_dropout = || {
        let config = TransformerConfig { label_smoothing: 0.1, ..TransformerConfig::tiny(VOCABULARY) };
        Transformer::new(config, 1).expect("a good configuration")
    };
    let options = TrainerOptions::new(DType::F32, 1, Schedule::Constant { rate: 1e-3 });
    let (mut one, mut four) =
        (StepTrainer::new(without_dropout(), options), StepTrainer::new(without_dropout(), options));
    let whole = one.step(&batches(1, 1)[0]).expect("a good step");
    let parts = four.step_over(&batches(1, 4)).expect("a good step");
    assert_eq!((whole.tokens, whole.correct), (parts.tokens, parts.correct));
    assert!((whole.loss - parts.loss).abs() < 1e-5);
    assert!((whole.update.gradient_norm - parts.update.gradient_norm).abs() < 1e-5);
    // After one step the running mean is (1 − β1) times the gradient.
    for (name, _, expected) in one.state().mean.iter() {
        let state = four.state();
        let found = state.mean.get(name).expect("the same parameters");
        let scale = expected.iter().fold(1e-4_f32, |scale, value| scale.max(value.abs()));
        for (a, b) in expected.iter().zip(found) {
            assert!((a - b).abs() < 1e-4 * scale, "{name}: {a} and {b}");
        }
    }
}

#[test]
fn the_batches_of_a_step_have_different_dropout_masks() {
    let twice = vec![batches(1, 1)[0].clone(), batches(1, 1)[0].clone()];
    let mut one = StepTrainer::new(model(1), options(DType::F32));
    let mut two = StepTrainer::new(model(1), options(DType::F32));
    let whole = one.step(&twice[0]).expect("a good step");
    let parts = two.step_over(&twice).expect("a good step");
    assert_ne!(whole.update.gradient_norm, parts.update.gradient_norm);
}

#[test]
fn a_loss_that_is_not_finite_changes_nothing() {
    let mut trainer = StepTrainer::new(model(1), options(DType::F32));
    train(&mut trainer, 0, 3);
    let good = trainer.state();
    let embedding = trainer.model().params().get("embedding.weight").expect("a parameter");
    let values = embedding.to_vec();
    let mut broken = values.clone();
    broken[5 * 64] = f32::INFINITY;
    embedding.set(&broken);
    let error = trainer.step_over(&batches(4, 2)).expect_err("it diverges");
    let TrainError::Diverged { step: 4, why: Divergence::Loss(_) } = error else { panic!("{error}") };
    assert!(error.to_string().starts_with("training diverged at step 4: the loss is "), "{error}");
    embedding.set(&values);
    assert_eq!(trainer.state(), good);
    // The gradients of the previous batch of the same step are discarded too.
    train(&mut trainer, 3, 4);
    let mut straight = StepTrainer::new(model(1), options(DType::F32));
    train(&mut straight, 0, 4);
    assert_eq!(trainer.state(), straight.state());
}

#[test]
fn an_exploding_gradient_is_not_applied() {
    let narrow = TrainerOptions { max_grad_norm_ratio: Some(1.0), ..options(DType::F32) };
    let mut trainer = StepTrainer::new(model(1), narrow);
    // With factor 1, about every second norm exceeds the median as soon as there is one.
    let refused = (1..=200).find_map(|step| {
        let before = trainer.state();
        let error = trainer.step_over(&batches(step, 2)).err()?;
        assert_eq!(trainer.state(), before);
        Some(error)
    });
    let error = refused.expect("one of many is over the median");
    assert!(matches!(error, TrainError::Diverged { why: Divergence::Explosion { .. }, .. }), "{error}");
}

#[test]
fn with_average_swaps_in_the_averaged_weights_and_restores_them() {
    let mut trainer = StepTrainer::new(model(1), options(DType::F32));
    train(&mut trainer, 0, 5);
    let before = trainer.state();
    let shown = trainer.with_average(|model| Weights::of(model.params()));
    assert_eq!(Some(&shown), before.average.as_ref());
    assert_ne!(shown, before.parameters);
    assert_eq!(trainer.state(), before);
}

#[test]
fn a_state_of_another_model_is_rejected() {
    let other = Transformer::new(TransformerConfig::tiny(30), 1).expect("a good configuration");
    let state = StepTrainer::new(other, options(DType::F32)).state();
    let mut trainer = StepTrainer::new(model(1), options(DType::F32));
    let before = trainer.state();
    let message = trainer.restore(&state).expect_err("another vocabulary").to_string();
    assert!(message.contains("`embedding.weight` is 30 × 64, but the model's is 40 × 64"), "{message}");
    assert_eq!(trainer.state(), before);
    let without = TrainerOptions { average_decay: None, ..options(DType::F32) };
    assert!(matches!(
        StepTrainer::new(model(1), without).restore(&before),
        Err(StateError::UnexpectedAverage)
    ));
}

#[test]
fn validation_sums_over_batches_and_does_not_train() {
    let model = model(1);
    let before = Weights::of(model.params());
    let whole = held_out(&model, &batches(1, 1), DType::F32).expect("a good batch");
    let parts = held_out(&model, &batches(1, 4), DType::F32).expect("good batches");
    assert_eq!((whole.tokens, whole.correct), (parts.tokens, parts.correct));
    assert!((whole.loss() - parts.loss()).abs() < 1e-9);
    assert!((whole.perplexity() - whole.loss().exp()).abs() < 1e-9);
    assert!((0.0..=1.0).contains(&whole.accuracy()));
    assert_eq!(Weights::of(model.params()), before);
    assert_eq!(held_out(&model, &[], DType::F32), Err(BatchError::Empty.into()));
}
