//! Operations without a gradient: the GPU's results against the CPU's.

use std::ops::Range;

use heedful_tensor::ops::*;
use heedful_tensor::random::{Dropout, Stream};
use heedful_tensor::{Array, DType, Device, Init, Params, Ragged, Rounding, Tensor};

fn random_tensor(device: Device, dtype: DType, rows: usize, width: usize, seed: u64) -> Tensor {
    let stream = Stream::new(seed, 0, 0);
    let values: Vec<f32> = (0..(rows * width) as u32).map(|i| stream.normal(i)).collect();
    Tensor::new(Array::from_f32_on(device, rows, width, &values).into_dtype(dtype))
}

fn assert_near(found: &[f32], expected: &[f32], name: &str) {
    assert_eq!(found.len(), expected.len(), "{name}");
    for (i, (a, b)) in found.iter().zip(expected).enumerate() {
        assert!(a == b || (a - b).abs() < 1e-5 * (1.0 + b.abs()), "{name}: {a} and {b} at {i}");
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn sliding_windows_match_the_cpu() {
    for dtype in [DType::F32, DType::Bf16] {
        let run = |device: Device| {
            let newest = |rows, seed| random_tensor(device, dtype, rows, 5, seed);
            let first = slide_windows(None, &[None, None], &newest(2, 1), 1);
            let second = slide_windows(Some(&first), &[Some(1), None, Some(0)], &newest(3, 2), 2);
            let third = slide_windows(Some(&second), &[Some(2), Some(0)], &newest(2, 3), 4);
            let fewer = slide_windows(Some(&third), &[Some(1)], &newest(1, 4), 2);
            let tapped =
                [(2, 2), (3, 1), (2, usize::MAX)].map(|(taps, by)| dilated_windows(&third, 5, taps, by));
            let [a, b, c] = tapped;
            [first, second, third, fewer, a, b, c].map(|windows| windows.to_vec())
        };
        assert!(run(Device::Cuda) == run(Device::Cpu), "{dtype}");
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn attention_weights_and_scores_match_the_cpu() {
    let (queries, keys) = (Ragged::from_lengths([1, 40, 7]), Ragged::from_lengths([3, 70, 7]));
    let masks = [Mask::full(), Mask::full().causal(), Mask::full().causal().within(3)];
    for (mask, d) in masks.into_iter().flat_map(|mask| [8, 300].map(|d| (mask.clone(), d))) {
        let run = |device: Device| {
            let [q, k, v] = [(queries.tokens(), 1), (keys.tokens(), 2), (keys.tokens(), 3)]
                .map(|(rows, seed)| ColumnView::whole(random_tensor(device, DType::F32, rows, 2 * d, seed)));
            let options = two_heads(d, mask.clone(), ReturnWeights::WithScores);
            attention(q, k, v, &queries, &keys, &options)
        };
        assert_same_weights(run);
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn attention_weights_and_scores_of_single_queries_match_the_cpu() {
    let keys = Ragged::from_lengths([3, 70, 1, 2100]);
    for (mask, d) in [(Mask::full(), 8), (Mask::full().within(5), 300), (Mask::full().causal(), 512)] {
        let options = two_heads(d, mask, ReturnWeights::WithScores);
        assert_same_weights(|device| {
            attend_single_queries(device, DType::F32, d, &keys, 0..keys.sequences(), &options)
        });
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn a_single_query_has_the_same_bits_alone_and_in_a_batch() {
    let keys = Ragged::from_lengths([1, 70, 3, 2100, 42]);
    for (dtype, d) in [DType::F32, DType::Bf16].into_iter().flat_map(|dtype| [9, 512].map(|d| (dtype, d))) {
        let run = |sequences: Range<usize>, weights: ReturnWeights| {
            let options = two_heads(d, Mask::full(), weights);
            attend_single_queries(Device::Cuda, dtype, d, &keys, sequences, &options).context.to_vec()
        };
        let together = run(0..keys.sequences(), ReturnWeights::None);
        for (i, expected) in together.chunks(2 * d).enumerate() {
            for weights in [ReturnWeights::None, ReturnWeights::All] {
                assert!(run(i..i + 1, weights) == expected, "sequence {i} of width {d} in {dtype}");
            }
        }
    }
}

/// The weights and scores of both devices are close.
fn assert_same_weights(run: impl Fn(Device) -> AttentionOutput) {
    let [found, expected] = [Device::Cuda, Device::Cpu].map(run);
    let flat = |matrices: Option<Vec<Vec<Vec<f32>>>>| matrices.expect("requested").concat().concat();
    assert_near(&flat(found.weights), &flat(expected.weights), "weights");
    assert_near(&flat(found.scores), &flat(expected.scores), "scores");
}

fn two_heads(d: usize, mask: Mask, weights: ReturnWeights) -> AttentionOptions {
    let scale = 0.3 / (d as f32).sqrt();
    AttentionOptions { heads: 2, scale, mask, dropout: Dropout::NONE, weights, rounding: Rounding::Fused }
}

/// One query for each of `sequences`, with the values that they have in the full batch; two heads of width
/// `d`.
fn attend_single_queries(
    device: Device,
    dtype: DType,
    d: usize,
    keys: &Ragged,
    sequences: Range<usize>,
    options: &AttentionOptions,
) -> AttentionOutput {
    let rows_of = |range: Range<usize>| range.collect::<Vec<usize>>();
    let key_rows = rows_of(keys.range(sequences.start).start..keys.range(sequences.end - 1).end);
    let part = |rows, seed, indices: &[usize]| {
        ColumnView::whole(gather_rows(&random_tensor(device, dtype, rows, 2 * d, seed), indices))
    };
    let q = part(keys.sequences(), 1, &rows_of(sequences.clone()));
    let [k, v] = [2, 3].map(|seed| part(keys.tokens(), seed, &key_rows));
    single_query_attention(q, k, v, &Ragged::from_lengths(sequences.map(|i| keys.length(i))), options)
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn ssru_step_by_step_has_the_bits_of_the_whole_sequence() {
    let (tokens, d) = (6, 70);
    let x = random_tensor(Device::Cuda, DType::F32, tokens, 2 * d, 1);
    let whole = ssru(&x, &Ragged::from_lengths([tokens])).to_vec();
    let mut state = Tensor::from_f32_on(Device::Cuda, 1, d, &vec![0.0; d]);
    for (token, expected) in whole.chunks(d).enumerate() {
        state = ssru_step(&gather_rows(&x, &[token]), &state);
        assert_eq!(state.to_vec(), expected);
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn batch_norm_with_given_statistics_matches_the_cpu() {
    let run = |device: Device| {
        let params = Params::new(3);
        let [mean, variance, gamma, beta] =
            ["mean", "variance", "gamma", "beta"].map(|name| params.add(name, 1, 33, Init::Normal(1.0)));
        variance.set(&variance.to_vec().iter().map(|x| x * x).collect::<Vec<_>>());
        params.move_to(device).expect("it fits");
        let x = random_tensor(device, DType::F32, 7, 33, 5);
        batch_norm_with_statistics(&x, [&mean, &variance], [&gamma, &beta], 1e-5).to_vec()
    };
    assert_near(&run(Device::Cuda), &run(Device::Cpu), "batch_norm_with_statistics");
}
