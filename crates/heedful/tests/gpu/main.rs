//! Whole models on a GPU, compared with the same models on the CPU.

mod families;

use heedful::data::batch::Batch;
use heedful::decode::{DecodeError, SearchOptions, search};
use heedful::layers::Pass;
use heedful::models::Model;
use heedful::models::transformer::{DropoutRates, Transformer, TransformerConfig};
use heedful::tensor::ops::{AdamOptions, WeightDecayScope};
use heedful::tensor::{DType, Device, cuda, tape};
use heedful::train::{Optimizer, Schedule, StepTrainer, TrainError, TrainerOptions};

fn config() -> TransformerConfig {
    TransformerConfig {
        d_model: 128,
        heads: 2,
        d_ff: 256,
        encoder_layers: 2,
        decoder_layers: 2,
        dropout: DropoutRates { residual: 0.1, attention: 0.1, feed_forward: 0.1 },
        ..TransformerConfig::tiny(500)
    }
}

fn model() -> Transformer {
    Transformer::new(config(), 7).expect("a good configuration")
}

fn batch(seed: u32) -> Batch {
    batch_of(24, seed)
}

fn batch_of(sentences: u32, seed: u32) -> Batch {
    let sentence = |i: u32, salt: u32| -> Vec<u32> {
        let length = 1 + (i * 37 + salt * 11 + seed * 5) % 40;
        (0..length).map(|t| 4 + (t * 131 + i * 17 + salt * 29 + seed * 7) % 490).collect()
    };
    let pairs: Vec<_> = (0..sentences).map(|i| (sentence(i, 1), sentence(i, 2))).collect();
    Batch::new(&pairs, 1, 2).expect("a good batch")
}

fn gradients(device: Device, compute: DType, r_drop: Option<f32>) -> (f32, Vec<f32>) {
    let model = model();
    model.params().move_to(device).expect("it fits");
    let batch = if r_drop.is_some() { batch(1).doubled() } else { batch(1) };
    let found = model.loss(&batch, &mut Pass::training(compute, 3, 1).with_r_drop(r_drop));
    let loss = found.loss.item();
    tape::backward(&found.loss);
    (loss, model.params().gradients())
}

fn distance(a: &[f32], b: &[f32]) -> f64 {
    let apart: f64 = a.iter().zip(b).map(|(&a, &b)| f64::from(a - b).powi(2)).sum();
    let length: f64 = b.iter().map(|&b| f64::from(b).powi(2)).sum();
    (apart / length).sqrt()
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gradients_match_the_cpu() {
    for r_drop in [None, Some(5.0)] {
        let gradients = |device, compute| gradients(device, compute, r_drop);
        let (loss, expected) = gradients(Device::Cpu, DType::F32);
        let (found_loss, found) = gradients(Device::Cuda, DType::F32);
        let off = distance(&found, &expected);
        eprintln!("R-Drop {r_drop:?}, f32: loss {found_loss}, CPU {loss}, gradients {off:e} apart");
        assert!((loss - found_loss).abs() < 1e-5 * loss && off < 1e-4, "{loss} {found_loss} {off:e}");
        let (_, cpu_bf16) = gradients(Device::Cpu, DType::Bf16);
        let (_, gpu_bf16) = gradients(Device::Cuda, DType::Bf16);
        let (cpus, gpus) = (distance(&cpu_bf16, &expected), distance(&gpu_bf16, &expected));
        eprintln!("bf16: {cpus:e} from f32 on the CPU, {gpus:e} on the GPU");
        assert!(gpus < 1.2 * cpus, "{gpus:e} {cpus:e}");
        let (_, again) = gradients(Device::Cuda, DType::Bf16);
        assert!(again == gpu_bf16, "two runs differ");
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn twenty_steps_match_the_cpu() {
    let losses = |device: Device| -> Vec<f32> {
        let model = model();
        model.params().move_to(device).expect("it fits");
        let options = TrainerOptions {
            average_decay: Some(0.9),
            ..TrainerOptions::new(DType::F32, 5, Schedule::noam(128, 10))
        };
        let mut trainer = StepTrainer::new(model, options);
        (0..20).map(|step| trainer.step(&batch(step)).expect("a good step").loss).collect()
    };
    let (expected, found) = (losses(Device::Cpu), losses(Device::Cuda));
    for (step, (a, b)) in expected.iter().zip(&found).enumerate() {
        assert!((a - b).abs() < 1e-4 * a.abs(), "step {step}: {a} and {b}");
    }
    eprintln!("losses {:?} and {:?}", &expected[18..], &found[18..]);
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gradient_accumulation_matches_the_cpu_and_is_deterministic() {
    // Six batches need three pending sums, five need two, in addition to the gradients.
    for count in [6, 5] {
        let trained = |device: Device, steps: u32| {
            let mut trainer = trainer(device, DType::F32, None);
            let step = |step: u32| -> f32 {
                let batches: Vec<Batch> = (0..count).map(|index| batch(step * count + index)).collect();
                trainer.step_over(&batches).expect("a good step").loss
            };
            let losses: Vec<f32> = (0..steps).map(step).collect();
            (losses, trainer.state())
        };
        let (expected, found) = (trained(Device::Cpu, 1), trained(Device::Cuda, 1));
        assert!((expected.0[0] - found.0[0]).abs() < 1e-5 * expected.0[0], "{count} batches");
        // After one step the running mean is a tenth of the gradient.
        for ((name, _, expected), (.., found)) in expected.1.mean.iter().zip(found.1.mean.iter()) {
            let apart = distance(found, expected);
            assert!(apart < 1e-4, "{count} batches, {name}: {apart:e}");
        }
        // From the second time on, a step is replayed from its CUDA graph.
        assert!(trained(Device::Cuda, 6) == trained(Device::Cuda, 6), "two runs differ");
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn a_step_with_large_inputs_matches_the_cpu() {
    // The inputs of the second step do not fit into the first one's staging buffer, which grows in the middle
    // of the step.
    let losses = |device: Device| {
        let mut trainer = trainer(device, DType::F32, None);
        [24, 4000, 4000].map(|sentences| trainer.step(&batch_of(sentences, 1)).expect("a good step").loss)
    };
    let (expected, found) = (losses(Device::Cpu), losses(Device::Cuda));
    for (a, b) in expected.iter().zip(&found) {
        assert!((a - b).abs() < 1e-4 * a.abs(), "{expected:?} and {found:?}");
    }
}

fn trainer(device: Device, compute: DType, max_grad_norm_ratio: Option<f32>) -> StepTrainer<Transformer> {
    let model = model();
    model.params().move_to(device).expect("it fits");
    let schedule = Schedule::noam(128, 10);
    let options = TrainerOptions {
        average_decay: Some(0.9),
        max_grad_norm_ratio,
        ..TrainerOptions::new(compute, 5, schedule)
    };
    StepTrainer::new(model, options)
}

fn train(trainer: &mut StepTrainer<Transformer>, batches: impl Iterator<Item = u32>) {
    for number in batches {
        trainer.step(&batch(number)).expect("a good step");
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn replayed_steps_have_the_bits_of_launched_steps() {
    // Three sizes in turn: first launched, then captured, then replayed. The second trainer reuses the first
    // one's CUDA graphs.
    let run = || {
        let mut trainer = trainer(Device::Cuda, DType::Bf16, None);
        train(&mut trainer, (0..12).map(|step| step % 3));
        trainer.state()
    };
    assert!(run() == run(), "two runs differ");
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn asynchronous_reports_equal_those_of_single_steps() {
    let mut one = trainer(Device::Cuda, DType::F32, Some(1000.0));
    let expected: Vec<_> = (0..40).map(|step| one.step(&batch(step % 5)).expect("a good step")).collect();
    let mut other = trainer(Device::Cuda, DType::F32, Some(1000.0));
    let mut found = Vec::new();
    for step in 0..40 {
        found.extend(other.submit(std::slice::from_ref(&batch(step % 5))).expect("a good step"));
        assert!(found.len() + 8 > step as usize, "{} reports after {} steps", found.len(), step + 1);
    }
    found.extend(other.drain().expect("good steps"));
    assert_eq!(found, expected);
    assert!(one.state() == other.state());
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn a_bad_update_is_rejected_on_the_gpu() {
    // An exploding gradient: both devices reject the same step for the same reason.
    let diverge = |device: Device| {
        let mut trainer = trainer(device, DType::F32, Some(1.02));
        for step in 0.. {
            if let Err(error) = trainer.step(&batch(step)) {
                return (trainer.state().step, error.to_string());
            }
        }
        unreachable!("the norm never rises")
    };
    let (expected, found) = (diverge(Device::Cpu), diverge(Device::Cuda));
    assert_eq!(expected.0, found.0, "{} and {}", expected.1, found.1);
    // NaN: steps that were already submitted after it change nothing either.
    let mut trainer = trainer(Device::Cuda, DType::Bf16, None);
    train(&mut trainer, 0..3);
    let before = trainer.state();
    let weight = trainer.model().params().iter().nth(3).expect("a weight");
    let mut values = weight.to_vec();
    values[7] = f32::NAN;
    weight.set(&values);
    let error = (3..9).find_map(|step| trainer.submit(std::slice::from_ref(&batch(step))).err());
    let error = error.or_else(|| trainer.drain().err()).expect("an error");
    assert!(error.to_string().contains("step 4"), "{error}");
    let after = trainer.state();
    assert_eq!(after.step, 3);
    assert!(after.mean == before.mean && after.norms == before.norms, "a rejected update changed the state");
    // Training continues from a good state.
    trainer.restore(&before).expect("the same model");
    trainer.step(&batch(3)).expect("a good step");
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn a_state_moves_between_devices() {
    let mut on_gpu = trainer(Device::Cuda, DType::F32, None);
    let mut on_cpu = trainer(Device::Cpu, DType::F32, None);
    train(&mut on_gpu, 0..5);
    on_cpu.restore(&on_gpu.state()).expect("the same model");
    assert!(on_gpu.state() == on_cpu.state());
    for step in 5..10 {
        let [a, b] = [&mut on_gpu, &mut on_cpu].map(|it| it.step(&batch(step)).expect("a good step").loss);
        assert!((a - b).abs() < 1e-4 * b, "step {step}: {a} and {b}");
    }
    on_gpu.restore(&on_cpu.state()).expect("the same model");
    assert!(on_gpu.state() == on_cpu.state());
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn weight_decay_applies_to_the_same_parameters_on_both_devices() {
    let after = |device: Device, decayed: WeightDecayScope| {
        let model = model();
        model.params().move_to(device).expect("it fits");
        let adam = AdamOptions { weight_decay: 2.0, decayed, ..Optimizer::PAPER };
        let options =
            TrainerOptions { adam, ..TrainerOptions::new(DType::F32, 5, Schedule::Constant { rate: 1e-2 }) };
        let mut trainer = StepTrainer::new(model, options);
        train(&mut trainer, 0..5);
        let norms = trainer.model().params().iter().filter(|param| param.name().ends_with("gamma"));
        norms.flat_map(|param| param.to_vec()).collect::<Vec<f32>>()
    };
    for decayed in [WeightDecayScope::Matrices, WeightDecayScope::All] {
        let apart = distance(&after(Device::Cuda, decayed), &after(Device::Cpu, decayed));
        assert!(apart < 1e-2, "{decayed:?}: {apart}");
    }
    // Five decays by 2 % each.
    let apart = distance(
        &after(Device::Cuda, WeightDecayScope::All),
        &after(Device::Cuda, WeightDecayScope::Matrices),
    );
    assert!(apart > 5e-2, "{apart}");
}

/// `count` sentence pairs of 30 tokens, including `<eos>`.
fn sentences(count: usize) -> Batch {
    let sentence = |i: u32| -> Vec<u32> { (0..29).map(|t| 4 + (t * 131 + i * 17) % 490).collect() };
    let pairs: Vec<_> = (0..count as u32).map(|i| (sentence(i), sentence(i + 1))).collect();
    Batch::new(&pairs, 1, 2).expect("a good batch")
}

/// The memory limit of the test below in bytes: far less than any GPU has, so that small batches exceed it.
const LIMIT: usize = 512 << 20;

/// Runs in a separate process: all tests of a process share the GPU's memory and its limit.
#[test]
#[ignore = "needs an NVIDIA GPU"]
fn a_batch_that_does_not_fit_is_an_error_that_names_one_that_does() {
    let variable = "HEEDFUL_CUDA_MEMORY";
    if std::env::var_os(variable).is_none() {
        let name = "a_batch_that_does_not_fit_is_an_error_that_names_one_that_does";
        let output = std::process::Command::new(std::env::current_exe().expect("this program"))
            .args([name, "--exact", "--ignored", "--nocapture"])
            .env(variable, LIMIT.to_string())
            .output()
            .expect("this program starts");
        let stderr = String::from_utf8_lossy(&output.stderr);
        eprintln!("{stderr}");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        assert!(stderr.contains("does not fit") && !stderr.contains("panicked"), "{stderr}");
        return;
    }
    for (compute, r_drop) in [(DType::Bf16, None), (DType::F32, None), (DType::Bf16, Some(5.0))] {
        let trainer = || {
            let model = model();
            model.params().move_to(Device::Cuda).expect("it fits");
            let schedule = Schedule::noam(128, 10);
            let options = TrainerOptions {
                average_decay: Some(0.9),
                r_drop,
                ..TrainerOptions::new(compute, 5, schedule)
            };
            let mut trainer = StepTrainer::new(model, options);
            // These are in flight when the next one turns out not to fit.
            for seed in [1, 2, 3] {
                trainer.submit(&[batch(seed)]).expect("a small batch");
            }
            trainer
        };
        let (mut tried, mut untried) = (trainer(), trainer());
        let refused = tried.submit(&[sentences(10_000)]).expect_err("more than fits");
        eprintln!("{compute}, R-Drop {r_drop:?}: {refused}");
        let TrainError::DoesNotFit { step, tokens, largest: Some(largest) } = refused else {
            panic!("another error: {refused}");
        };
        assert_eq!((step, tokens), (4, 10_000 * 30));
        tried.drain().expect("good steps");
        let state = tried.state();
        let again = tried.submit(&[sentences(10_000)]).expect_err("more than fits");
        assert!(matches!(again, TrainError::DoesNotFit { step: 4, .. }), "{again}");
        assert!(tried.state() == state, "a step that does not fit changes nothing");
        let fits = largest / 30;
        untried.drain().expect("good steps");
        let losses = [&mut tried, &mut untried]
            .map(|trainer| trainer.step(&sentences(fits)).expect("a batch of the reported size").loss);
        assert!((losses[0] - losses[1]).abs() < 1e-3 * losses[1], "{losses:?}");
        let more = tried.step(&sentences(fits * 3 / 2)).expect_err("far more than the reported size");
        assert!(matches!(more, TrainError::DoesNotFit { step: 5, .. }), "{more}");
        eprintln!("{fits} sentences fit; {} of {LIMIT} bytes are reserved", cuda::bytes_reserved());
        assert!(cuda::bytes_reserved() <= LIMIT);
    }
    let model = model();
    model.params().move_to(Device::Cuda).expect("it fits");
    // All sources are distinct: duplicates would be decoded once.
    let source = |i: u32| (0..29).map(|t| 4 + (t * (131 + i / 490) + i * 17) % 490).collect();
    let sources: Vec<Vec<u32>> = (0..10_000).map(source).collect();
    let options =
        |batch_tokens| SearchOptions { batch_tokens: Some(batch_tokens), ..SearchOptions::default() };
    let refused = search(&model, &sources, &options(1 << 24)).expect_err("more than fits");
    assert!(matches!(refused, DecodeError::OutOfMemory(_)), "{refused}");
    cuda::trim();
    search(&model, &sources[..20], &options(1 << 10)).expect("few fit");
}
