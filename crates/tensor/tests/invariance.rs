//! The same sentence gives the same bits alone and in any batch, on every instruction set, in f32 and bf16.

use std::sync::{Mutex, MutexGuard, PoisonError};

use heedful_tensor::cpu::isa;
use heedful_tensor::ops::*;
use heedful_tensor::random::Dropout;
use heedful_tensor::{Compute, DType, Init, Param, Params, Ragged, Tensor, tape};

const D: usize = 36;
const VOCABULARY: usize = 50;

/// The instruction set is process-wide, so the tests run one at a time.
fn exclusive() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A small model with every operation on sequences.
struct Model {
    table: Param,
    in_projection: Param,
    out_projection: Param,
    taps: Param,
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
            taps: params.add("taps", 5 * D, 2 * D, Init::Xavier),
            gamma: params.add("gamma", 1, D, Init::Constant(1.0)),
            beta: params.add("beta", 1, D, Init::Constant(0.0)),
            compute,
        }
    }

    fn probabilities(&self, ids: &[u32], sequences: &Ragged) -> Tensor {
        let (compute, dropout) = (Compute::inference(self.compute), Dropout::NONE);
        let options = EmbeddingOptions {
            scale: 6.0,
            positions: Positions::Sinusoidal(SinusoidLayout::Interleaved),
            first_position: 0,
            dropout,
            compute,
        };
        let x = embedding(ids, sequences, &self.table, options);
        let options = LinearOptions { activation: Activation::Identity, dropout, compute };
        let qkv = linear(&x, &self.in_projection, None, options);
        let part = |i: usize| ColumnView { tensor: qkv.clone(), columns: i * D..(i + 1) * D };
        let choices = AttentionOptions {
            heads: 4,
            scale: 1.0 / 3.0,
            mask: Mask::full().causal(),
            dropout,
            weights: ReturnWeights::None,
            rounding: heedful_tensor::Rounding::Fused,
        };
        let context = attention(part(0), part(1), part(2), sequences, sequences, &choices).context;
        let mixed = linear(
            &context,
            &self.out_projection,
            None,
            LinearOptions { activation: Activation::Gelu, ..options },
        );
        let window = ConvolutionOptions { taps: 5, dilation: 1, padding: Padding::Same, compute };
        let mixed = add(&mixed, &glu(&convolution(&x, sequences, &self.taps, None, window)));
        let options = NormOptions { epsilon: 1e-5, compute };
        let y = residual_norm(&x, &mixed, &self.gamma, &self.beta, dropout, options);
        softmax(&project(&y, &self.table, compute))
    }
}

#[test]
fn a_sentence_has_the_same_bits_alone_and_in_a_batch() {
    let _lock = exclusive();
    let lengths = [1, 50, 3, 17, 230];
    let batch = Ragged::from_lengths(lengths);
    let ids: Vec<u32> = (0..batch.tokens() as u32).map(|t| t * t % VOCABULARY as u32).collect();
    for isa in isa::ALL.into_iter().filter(|isa| isa.is_available()) {
        isa::select(isa);
        for compute in [DType::F32, DType::Bf16] {
            let model = Model::new(compute);
            let run = |ids: &[u32], sequences: &Ragged| {
                tape::no_grad(|| model.probabilities(ids, sequences).to_vec())
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
fn a_pooled_sequence_has_the_same_bits_alone_and_in_a_batch() {
    let _lock = exclusive();
    let batch = Ragged::from_lengths([1, 50, 3, 17, 230]);
    let draws = heedful_tensor::random::Stream::new(1, 2, 3);
    let values: Vec<f32> = (0..(batch.tokens() * D) as u32).map(|i| draws.normal(i)).collect();
    for isa in isa::ALL.into_iter().filter(|isa| isa.is_available()) {
        isa::select(isa);
        for dtype in [DType::F32, DType::Bf16] {
            let run = |values: &[f32], sequences: &Ragged| {
                let x = cast(&Tensor::from_f32(sequences.tokens(), D, values), dtype);
                [mean_pool(&x, sequences), max_pool(&x, sequences)].map(|pooled| pooled.to_vec())
            };
            let together = run(&values, &batch);
            for (i, range) in batch.ranges().enumerate() {
                let part = &values[range.start * D..range.end * D];
                let alone = run(part, &Ragged::from_lengths([range.len()]));
                let in_batch = together.each_ref().map(|pooled| &pooled[i * D..(i + 1) * D]);
                assert!(
                    alone.each_ref().map(Vec::as_slice) == in_batch,
                    "{} tokens on {isa} in {dtype}",
                    range.len()
                );
            }
        }
    }
}

#[test]
fn a_causal_convolution_has_the_same_bits_token_by_token() {
    let _lock = exclusive();
    const TAPS: usize = 4;
    let sequences = Ragged::from_lengths([3, 1, 40]);
    let draws = heedful_tensor::random::Stream::new(1, 2, 3);
    let values: Vec<f32> = (0..(sequences.tokens() * D) as u32).map(|i| draws.normal(i)).collect();
    for isa in isa::ALL.into_iter().filter(|isa| isa.is_available()) {
        isa::select(isa);
        for (compute, dilation) in [(DType::F32, 1), (DType::Bf16, 1), (DType::F32, 3), (DType::Bf16, 3)] {
            let span = (TAPS - 1) * dilation + 1;
            let params = Params::new(4);
            let weight = params.add("weight", TAPS * D, 70, Init::Xavier);
            let bias = params.add("bias", 1, 70, Init::Normal(1.0));
            let x = cast(&Tensor::from_f32(sequences.tokens(), D, &values), compute);
            let compute_as = Compute::inference(compute);
            let options =
                ConvolutionOptions { taps: TAPS, dilation, padding: Padding::Causal, compute: compute_as };
            let whole = tape::no_grad(|| convolution(&x, &sequences, &weight, Some(&bias), options).to_vec());
            let mut windows: Option<Tensor> = None;
            for step in 0..sequences.longest() {
                let alive = (0..sequences.sequences()).filter(|&i| sequences.length(i) > step);
                let alive: Vec<usize> = alive.collect();
                // The rows of the previous step: sequences longer than that step.
                let before: Vec<usize> =
                    (0..sequences.sequences()).filter(|&i| sequences.length(i) >= step).collect();
                let parent = |i: &usize| (step > 0).then(|| before.iter().position(|b| b == i)).flatten();
                let parents: Vec<Option<usize>> = alive.iter().map(parent).collect();
                let rows: Vec<usize> = alive.iter().map(|&i| sequences.range(i).start + step).collect();
                // The number of slots grows with the sequence, up to the span of a window.
                let slots = span.min(step + 1);
                let next = slide_windows(windows.as_ref(), &parents, &gather_rows(&x, &rows), slots);
                let (activation, dropout) = (Activation::Identity, Dropout::NONE);
                let options = LinearOptions { activation, dropout, compute: Compute::inference(compute) };
                let y = tape::no_grad(|| {
                    linear(&dilated_windows(&next, D, TAPS, dilation), &weight, Some(&bias), options).to_vec()
                });
                for (y, row) in y.chunks_exact(70).zip(&rows) {
                    assert!(
                        y == &whole[row * 70..(row + 1) * 70],
                        "step {step}, dilation {dilation} on {isa} in {compute}"
                    );
                }
                windows = Some(next);
            }
        }
    }
}

#[test]
fn a_row_of_a_product_does_not_depend_on_the_number_of_rows() {
    let _lock = exclusive();
    const MAX_ROWS: usize = 40;
    for isa in isa::ALL.into_iter().filter(|isa| isa.is_available()) {
        isa::select(isa);
        for (compute, inputs, outputs) in
            [(DType::F32, D, 70), (DType::Bf16, D, 70), (DType::F32, 96, 64), (DType::Bf16, 96, 64)]
        {
            let params = Params::new(4);
            let weight = params.add("weight", inputs, outputs, Init::Xavier);
            let bias = params.add("bias", 1, outputs, Init::Normal(1.0));
            let transposed = params.add("transposed", outputs, inputs, Init::Xavier);
            let draws = heedful_tensor::random::Stream::new(1, 2, 3);
            let values: Vec<f32> = (0..(MAX_ROWS * inputs) as u32).map(|i| draws.normal(i)).collect();
            for compute in [Compute::training(compute), Compute::inference(compute)] {
                let options = LinearOptions { activation: Activation::Relu, dropout: Dropout::NONE, compute };
                let run = |rows: usize| {
                    let x = Tensor::from_f32(rows, inputs, &values[..rows * inputs]);
                    let products = [
                        linear(&x, &weight, Some(&bias), options),
                        project(&x, &transposed, compute),
                        project_f32_out(&x, &transposed, compute),
                    ];
                    tape::no_grad(|| products.map(|product| product.to_vec()))
                };
                let all = run(MAX_ROWS);
                for rows in 1..MAX_ROWS {
                    for (some, all) in run(rows).iter().zip(&all) {
                        assert!(some[..] == all[..rows * outputs], "{rows} rows on {isa} in {compute:?}");
                    }
                }
            }
        }
    }
}
