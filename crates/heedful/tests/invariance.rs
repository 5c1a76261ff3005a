//! Same input, same bits: neither the number of threads nor the rest of the batch changes a result.

use std::sync::{Mutex, MutexGuard};

use heedful::data::batch::Batch;
use heedful::layers::{Norm, Pass};
use heedful::models::Model;
use heedful::models::transformer::{DropoutRates, Transformer, TransformerConfig};
use heedful::tensor::cpu::threads;
use heedful::tensor::{DType, tape};
use heedful::train::{Schedule, StepTrainer, TrainerOptions};

const VOCABULARY: usize = 101;
/// Source and target lengths, from very short to very long.
const LENGTHS: [(usize, usize); 7] = [(1, 1), (33, 20), (7, 40), (90, 3), (2, 2), (16, 17), (1, 30)];

#[test]
fn threads_do_not_change_bits() {
    let _lock = exclusive();
    for (norm, compute) in variants() {
        let one = three_steps(norm, compute, 1);
        let two = three_steps(norm, compute, 2);
        assert_eq!(one, two, "{norm:?} {compute}");
    }
}

#[test]
fn the_rest_of_the_batch_does_not_change_bits() {
    let _lock = exclusive();
    let pairs = pairs();
    for (norm, compute) in variants() {
        let model = model(norm);
        let logits = |pairs: &[(Vec<u32>, Vec<u32>)]| {
            let batch = Batch::new(pairs, 1, 2).expect("a good batch");
            let logits = model.logits(&batch, &mut Pass::inference(compute)).to_vec();
            let rows = batch.target_sequences.ranges();
            let bits = |row: std::ops::Range<usize>| {
                logits[row.start * VOCABULARY..row.end * VOCABULARY].iter().map(|x| x.to_bits()).collect()
            };
            rows.map(bits).collect::<Vec<Vec<u32>>>()
        };
        let together = logits(&pairs);
        let mut reversed = pairs.clone();
        reversed.reverse();
        let mut in_reverse = logits(&reversed);
        in_reverse.reverse();
        for (i, pair) in pairs.iter().enumerate() {
            let alone = &logits(std::slice::from_ref(pair))[0];
            assert!(alone == &together[i], "{norm:?} {compute}: sentence {i} alone and in a batch");
            assert!(alone == &in_reverse[i], "{norm:?} {compute}: sentence {i} alone and in another batch");
        }
    }
}

/// Both tests set the number of threads, which is process-wide.
fn exclusive() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn variants() -> [(Norm, DType); 4] {
    [(Norm::Post, DType::F32), (Norm::Pre, DType::F32), (Norm::Post, DType::Bf16), (Norm::Pre, DType::Bf16)]
}

fn model(norm: Norm) -> Transformer {
    // No width is a multiple of a tile, and dropout is on everywhere: its random numbers must not depend on
    // threads either.
    let config = TransformerConfig {
        d_model: 36,
        d_ff: 70,
        heads: 3,
        encoder_layers: 2,
        decoder_layers: 2,
        norm,
        dropout: DropoutRates { residual: 0.1, attention: 0.1, feed_forward: 0.1 },
        label_smoothing: 0.1,
        ..TransformerConfig::tiny(VOCABULARY)
    };
    Transformer::new(config, 5).expect("a good configuration")
}

fn pairs() -> Vec<(Vec<u32>, Vec<u32>)> {
    let word = |i: usize| (3 + (i * i * 7 + i * 31) % (VOCABULARY - 3)) as u32;
    let sentence = |first: usize, length: usize| (first..first + length).map(word).collect();
    LENGTHS.iter().enumerate().map(|(i, &(n, m))| (sentence(i, n), sentence(50 + i, m))).collect()
}

/// Bits of the loss, of all gradients and, after three updates, of all parameters.
fn three_steps(norm: Norm, compute: DType, thread_count: usize) -> Vec<Vec<u32>> {
    threads::set_thread_count(thread_count);
    let bits = |values: &[f32]| values.iter().map(|x| x.to_bits()).collect::<Vec<u32>>();
    let batch = Batch::new(&pairs(), 1, 2).expect("a good batch");
    let model = model(norm);
    let found = model.loss(&batch, &mut Pass::training(compute, 3, 1));
    tape::backward(&found.loss);
    let gradients = bits(&model.params().gradients());
    let mut seen = vec![bits(&[found.loss.item()]), gradients];
    model.params().clear_gradients();

    let options = TrainerOptions::new(compute, 3, Schedule::Constant { rate: 1e-2 });
    let mut trainer = StepTrainer::new(model, options);
    for _ in 0..3 {
        trainer.step(&batch).expect("a good batch");
    }
    seen.push(bits(&trainer.model().params().to_vec()));
    seen
}
