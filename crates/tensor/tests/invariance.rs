//! The same sentence gives the same bits alone and in any batch, on every instruction set, in f32 and bf16.

use std::sync::{Mutex, MutexGuard, PoisonError};

use heedful_tensor::cpu::isa;
use heedful_tensor::ops::*;
use heedful_tensor::random::Dropout;
use heedful_tensor::{DType, Init, Param, Params, Ragged, Tensor, tape};

const D: usize = 36;
const VOCABULARY: usize = 50;

/// The instruction set belongs to the whole process.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A little of everything that works on sequences.
struct Model {
    table: Param,
    in_projection: Param,
    out_projection: Param,
    gamma: Param,
    beta: Param,
    compute: DType,
}

impl Model {
    fn new(compute: DType) -> Model {
        let params = Params::new(3);
        Model {
            table: params.add("table", VOCABULARY, D, Init::Normal(0.2)),
            in_projection: params.add("in", D, 3 * D, Init::Xavier),
            out_projection: params.add("out", D, D, Init::Xavier),
            gamma: params.add("gamma", 1, D, Init::Constant(1.0)),
            beta: params.add("beta", 1, D, Init::Constant(0.0)),
            compute,
        }
    }

    fn log_probabilities(&self, ids: &[u32], sequences: &Ragged) -> Tensor {
        let (compute, dropout) = (self.compute, Dropout::NONE);
        let options = EmbeddingOptions {
            scale: 6.0,
            positions: Positions::Sinusoidal,
            first_position: 0,
            dropout,
            compute,
        };
        let x = embedding(ids, sequences, &self.table, options);
        let options = LinearOptions { activation: Activation::Identity, dropout, compute };
        let qkv = linear(&x, &self.in_projection, None, options);
        let part = |i: usize| Part { tensor: qkv.clone(), columns: i * D..(i + 1) * D };
        let choices = AttentionOptions {
            heads: 4,
            scale: 1.0 / 3.0,
            mask: Mask::full().causal(),
            dropout,
            weights: Weights::Discard,
        };
        let context = attention(part(0), part(1), part(2), sequences, sequences, &choices).context;
        let mixed = linear(
            &context,
            &self.out_projection,
            None,
            LinearOptions { activation: Activation::Gelu, ..options },
        );
        let options = NormOptions { epsilon: 1e-5, compute };
        let y = residual_norm(&x, &mixed, &self.gamma, &self.beta, dropout, options);
        log_softmax(&project(&y, &self.table, compute))
    }
}

#[test]
fn a_sentence_alone_and_in_a_batch() {
    let _alone = alone();
    let lengths = [1, 50, 3, 17, 230];
    let batch = Ragged::from_lengths(lengths);
    let ids: Vec<u32> = (0..batch.tokens() as u32).map(|t| t * t % VOCABULARY as u32).collect();
    for isa in isa::ALL.into_iter().filter(|isa| isa.is_available()) {
        isa::select(isa);
        for compute in [DType::F32, DType::Bf16] {
            let model = Model::new(compute);
            let run = |ids: &[u32], sequences: &Ragged| {
                tape::paused(|| model.log_probabilities(ids, sequences).to_vec())
            };
            let together = run(&ids, &batch);
            for range in batch.ranges() {
                let alone = run(&ids[range.clone()], &Ragged::from_lengths([range.len()]));
                let part = &together[range.start * VOCABULARY..range.end * VOCABULARY];
                assert!(alone == part, "{} tokens on {isa} in {compute}", range.len());
            }
        }
    }
}

#[test]
fn a_row_of_a_product_does_not_know_how_many_rows_there_are() {
    let _alone = alone();
    const MOST: usize = 40;
    for isa in isa::ALL.into_iter().filter(|isa| isa.is_available()) {
        isa::select(isa);
        for (compute, inputs, outputs) in
            [(DType::F32, D, 70), (DType::Bf16, D, 70), (DType::F32, 96, 64), (DType::Bf16, 96, 64)]
        {
            let params = Params::new(4);
            let weight = params.add("weight", inputs, outputs, Init::Xavier);
            let bias = params.add("bias", 1, outputs, Init::Normal(1.0));
            let turned = params.add("turned", outputs, inputs, Init::Xavier);
            let draws = heedful_tensor::random::Stream::new(1, 2, 3);
            let values: Vec<f32> = (0..(MOST * inputs) as u32).map(|i| draws.normal(i)).collect();
            let options = LinearOptions { activation: Activation::Relu, dropout: Dropout::NONE, compute };
            let run = |rows: usize| {
                let x = Tensor::from_f32(rows, inputs, &values[..rows * inputs]);
                let products = [
                    linear(&x, &weight, Some(&bias), options),
                    project(&x, &turned, compute),
                    project_wide(&x, &turned, compute),
                ];
                tape::paused(|| products.map(|product| product.to_vec()))
            };
            let all = run(MOST);
            for rows in 1..MOST {
                for (some, all) in run(rows).iter().zip(&all) {
                    assert!(some[..] == all[..rows * outputs], "{rows} rows on {isa} in {compute}");
                }
            }
        }
    }
}
