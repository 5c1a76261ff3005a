//! Training in numbers of eight bits: it learns as bf16 does, its steps are replayed, and a state holds all that decides how it goes on.

use heedful::data::batch::Batch;
use heedful::models::Model;
use heedful::models::transformer::Transformer;
use heedful::tensor::{DType, Device, Precision, cuda};
use heedful::train::Trainer;

use super::{batch, train, trainer};

/// Whether the GPU does; says so if it does not.
fn multiplies_fp8() -> bool {
    let gpu = cuda::card().expect("an NVIDIA GPU");
    if !gpu.multiplies_fp8() {
        eprintln!("not tested: {} does not multiply in fp8", gpu.name());
    }
    gpu.multiplies_fp8()
}

fn in_fp8() -> Trainer<Transformer> {
    trainer(Device::Cuda, Precision::Fp8, Some(1000.0))
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn a_model_learns_in_fp8_as_it_does_in_bf16() {
    if !multiplies_fp8() {
        return;
    }
    let losses = |mut trainer: Trainer<Transformer>| -> Vec<(f32, f32)> {
        let report = |step: u32| {
            let report = trainer.step(&batch(step % 3)).expect("a good step");
            (report.loss, report.update.gradient_norm)
        };
        (0..90).map(report).collect()
    };
    let (found, expected) = (losses(in_fp8()), losses(trainer(Device::Cuda, DType::Bf16, Some(1000.0))));
    eprintln!("losses and norms, fp8: {:?} … {:?}", &found[..3], &found[87..]);
    eprintln!("losses and norms, bf16: {:?} … {:?}", &expected[..3], &expected[87..]);
    assert_eq!(found[0], expected[0], "the first step is bf16's");
    // From the second one on eight bits are multiplied.
    let off = |(a, b): ((f32, f32), (f32, f32))| [(a.0 / b.0 - 1.0).abs(), (a.1 / b.1 - 1.0).abs()];
    let [loss, norm] = off((found[1], expected[1]));
    assert!(found[1] != expected[1] && loss < 5e-3 && norm < 5e-2, "{loss} {norm}");
    assert!(found[89].0 < found[0].0 - 1.0, "{:?} after {:?}", found[89], found[0]);
    assert!(found[89].0 < 1.01 * expected[89].0, "{:?} beside {:?}", found[89], expected[89]);
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn what_is_replayed_in_fp8_has_the_bits_of_what_is_sent() {
    if !multiplies_fp8() {
        return;
    }
    let one_by_one = || {
        let mut trainer = in_fp8();
        train(&mut trainer, (0..15).map(|step| step % 3));
        trainer.state()
    };
    let expected = one_by_one();
    assert!(expected.maxima.is_some());
    assert!(one_by_one() == expected, "two runs differ");
    // Without waiting for each step.
    let mut trainer = in_fp8();
    for step in 0..15 {
        trainer.submit(std::slice::from_ref(&batch(step % 3))).expect("a good step");
    }
    trainer.drain().expect("good steps");
    assert!(trainer.state() == expected, "steps that are not waited for differ");
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn a_run_in_fp8_goes_on_from_its_state_bit_for_bit() {
    if !multiplies_fp8() {
        return;
    }
    for stop in [0, 1, 2, 9, 20] {
        let mut whole = in_fp8();
        train(&mut whole, 0..stop);
        let state = whole.state();
        assert_eq!(state.maxima.is_some(), stop > 0);
        train(&mut whole, stop..stop + 5);
        let mut resumed = in_fp8();
        // It has seen other operands meanwhile.
        train(&mut resumed, 30..32);
        resumed.restore(&state).expect("the same model");
        assert!(resumed.state() == state, "stopped after {stop} steps");
        train(&mut resumed, stop..stop + 5);
        assert!(resumed.state() == whole.state(), "stopped after {stop} steps");
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn several_batches_make_a_step_in_fp8() {
    if !multiplies_fp8() {
        return;
    }
    let run = || {
        let mut trainer = in_fp8();
        for step in 0..4 {
            let batches: Vec<Batch> = (0..3).map(|index| batch(step * 3 + index)).collect();
            trainer.step_over(&batches).expect("a good step");
        }
        trainer.state()
    };
    assert!(run() == run(), "two runs differ");
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn a_refused_update_leaves_no_trace_in_the_maxima() {
    if !multiplies_fp8() {
        return;
    }
    let mut trainer = in_fp8();
    train(&mut trainer, 0..3);
    let before = trainer.state();
    let weight = trainer.model().params().iter().nth(3).expect("a weight");
    let mut values = weight.to_vec();
    values[7] = f32::NAN;
    weight.set(&values);
    let error = (3..9).find_map(|step| trainer.submit(std::slice::from_ref(&batch(step))).err());
    error.or_else(|| trainer.drain().err()).expect("an error");
    assert!(trainer.state().maxima == before.maxima, "a refused update was remembered");
    trainer.restore(&before).expect("the same model");
    let mut other = in_fp8();
    other.restore(&before).expect("the same model");
    for trainer in [&mut trainer, &mut other] {
        train(trainer, 3..6);
    }
    assert!(trainer.state() == other.state());
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn a_state_of_fp8_goes_on_in_bf16_and_back() {
    if !multiplies_fp8() {
        return;
    }
    let mut eight = in_fp8();
    train(&mut eight, 0..3);
    let mut sixteen = trainer(Device::Cuda, DType::Bf16, Some(1000.0));
    sixteen.restore(&eight.state()).expect("the same model");
    train(&mut sixteen, 3..5);
    assert!(sixteen.state().maxima.is_none());
    eight.restore(&sixteen.state()).expect("the same model");
    train(&mut eight, 5..7);
    assert!(eight.state().maxima.is_some());
}
