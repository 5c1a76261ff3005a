//! Training reuses memory: from the third step on, batches of sizes already seen allocate nothing from the
//! system.
//!
//! The pool's counter is process-wide, so this file has one test only.

use heedful::data::batch::Batch;
use heedful::models::transformer::{DropoutRates, Transformer, TransformerConfig};
use heedful::tensor::DType;
use heedful::tensor::cpu::{memory, threads};
use heedful::train::{Schedule, StepTrainer, TrainerOptions};

#[test]
fn a_step_at_steady_state_allocates_nothing() {
    let batches: Vec<Batch> = [[(12, 9), (5, 7), (1, 1)], [(20, 31), (3, 2), (9, 9)]].map(batch).into();
    for (threads, compute) in [(1, DType::F32), (1, DType::Bf16), (2, DType::F32), (2, DType::Bf16)] {
        threads::set_thread_count(threads);
        let config = TransformerConfig {
            encoder_layers: 2,
            decoder_layers: 2,
            dropout: DropoutRates { residual: 0.1, attention: 0.1, feed_forward: 0.1 },
            ..TransformerConfig::tiny(100)
        };
        let model = Transformer::new(config, 1).expect("a good configuration");
        let options = TrainerOptions::new(compute, 1, Schedule::Constant { rate: 1e-3 });
        let mut trainer = StepTrainer::new(model, options);
        let mut step_over_all = || {
            for batch in &batches {
                trainer.step(batch).expect("a good batch");
            }
        };
        step_over_all();
        step_over_all();
        let before = memory::bytes_from_system();
        for _ in 0..5 {
            step_over_all();
        }
        assert_eq!(memory::bytes_from_system(), before, "{threads} threads, {compute}: the pool has grown");
    }
}

fn batch(lengths: [(usize, usize); 3]) -> Batch {
    let sentence = |length: usize| (0..length).map(|i| 3 + (i * 37 % 97) as u32).collect();
    let pairs: Vec<_> = lengths.iter().map(|&(n, m)| (sentence(n), sentence(m))).collect();
    Batch::new(&pairs, 1, 2).expect("a good batch")
}
