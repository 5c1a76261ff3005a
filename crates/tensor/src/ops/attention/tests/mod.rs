//! A reference of attention in f64, and the test cases.

mod long;
mod properties;

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;
use crate::cpu::isa;
use crate::cpu::threads::set_thread_count;
use crate::random::Stream;
use crate::tape::{backward_from, no_grad};

/// One attention problem, small enough for the f64 reference.
#[derive(Clone)]
struct Case {
    queries: Vec<usize>,
    keys: Vec<usize>,
    heads: usize,
    d_k: usize,
    d_v: usize,
    rules: Rules,
    dropout: Dropout,
    /// The factor on the random queries and keys.
    size: f32,
}

/// A mask by its definition.
#[derive(Clone, Default)]
struct Rules {
    causal: bool,
    within: Option<i64>,
    booleans: Option<Vec<bool>>,
}

impl Case {
    fn new(lengths: &[usize], heads: usize, d_k: usize, d_v: usize) -> Case {
        let (queries, keys) = (lengths.to_vec(), lengths.to_vec());
        Case { queries, keys, heads, d_k, d_v, rules: Rules::default(), dropout: Dropout::NONE, size: 1.0 }
    }

    fn cross(self, keys: &[usize]) -> Case {
        Case { keys: keys.to_vec(), ..self }
    }

    fn causal(mut self) -> Case {
        self.rules.causal = true;
        self
    }

    fn within(mut self, r: i64) -> Case {
        self.rules.within = Some(r);
        self
    }

    /// Allows pseudo-random keys, and always the first.
    fn scattered(mut self) -> Case {
        let stream = Stream::new(9, 9, 9);
        let sizes = self.queries.iter().zip(&self.keys);
        let allowed = sizes.flat_map(|(&n_queries, &n_keys)| {
            (0..n_queries * n_keys).map(move |i| i % n_keys == 0 || stream.bits(i as u32).is_multiple_of(3))
        });
        self.rules.booleans = Some(allowed.collect());
        self
    }

    fn mask(&self) -> Mask {
        let [queries, keys] = self.sequences();
        let mut mask = Mask::full();
        if self.rules.causal {
            mask = mask.causal();
        }
        if let Some(r) = self.rules.within {
            mask = mask.within(r as usize);
        }
        if let Some(allowed) = &self.rules.booleans {
            mask =
                mask.allowed(BoolMask::new(&queries, &keys, allowed.clone()).expect("the first key is seen"));
        }
        mask
    }

    fn sequences(&self) -> [Ragged; 2] {
        [Ragged::from_lengths(self.queries.iter().copied()), Ragged::from_lengths(self.keys.iter().copied())]
    }

    fn options(&self) -> AttentionOptions {
        let (mask, dropout) = (self.mask(), self.dropout);
        let scale = 1.0 / (self.d_k as f32).sqrt();
        AttentionOptions {
            heads: self.heads,
            scale,
            mask,
            dropout,
            weights: ReturnWeights::WithScores,
            rounding: Rounding::Fused,
        }
    }

    /// Queries, keys, values and the gradient of the context.
    fn arrays(&self, dtype: DType) -> [Array; 4] {
        let [queries, keys] = self.sequences();
        let (wide, narrow) = (self.heads * self.d_k, self.heads * self.d_v);
        let shapes = [
            (queries.tokens(), wide, self.size),
            (keys.tokens(), wide, self.size),
            (keys.tokens(), narrow, 1.0),
            (queries.tokens(), narrow, 1.0),
        ];
        let mut stream = 0;
        shapes.map(|(rows, width, size)| {
            stream += 1;
            random(rows, width, size, stream).to(dtype)
        })
    }
}

fn random(rows: usize, width: usize, size: f32, stream: u64) -> Array {
    let stream = Stream::new(5, 0, stream);
    let values: Vec<f32> = (0..rows * width).map(|i| size * stream.normal(i as u32)).collect();
    Array::from_f32(rows, width, &values)
}

fn wide(array: &Array) -> Vec<f64> {
    array.to(DType::F32).f32().iter().map(|&x| f64::from(x)).collect()
}

/// Context, weights and scores by definition, in f64. Weights and scores are flattened: sequence, head,
/// query, key.
fn naive(case: &Case, inputs: &[Vec<f64>; 3]) -> (Vec<f64>, [Vec<f64>; 2]) {
    let Case { heads, d_k, d_v, .. } = *case;
    let [queries, keys] = case.sequences();
    let scale = f64::from(case.options().scale);
    let mut context = vec![0.0; queries.tokens() * heads * d_v];
    let (mut all_weights, mut all_scores) = (Vec::new(), Vec::new());
    for sequence in 0..queries.sequences() {
        let (q_rows, k_rows) = (queries.range(sequence), keys.range(sequence));
        for head in 0..heads {
            for (i, q) in q_rows.clone().enumerate() {
                let position = i as i64 + k_rows.len() as i64 - q_rows.len() as i64;
                let Rules { causal, within, booleans } = &case.rules;
                let first_boolean: usize =
                    (0..sequence).map(|s| queries.length(s) * keys.length(s)).sum::<usize>()
                        + i * k_rows.len();
                let score = |j: usize| {
                    let ahead = j as i64 - position;
                    let hidden = (*causal && ahead > 0)
                        || within.is_some_and(|r| ahead.abs() > r)
                        || booleans.as_ref().is_some_and(|allowed| !allowed[first_boolean + j]);
                    if hidden {
                        return f64::NEG_INFINITY;
                    }
                    let at = |row: usize, c: usize| row * heads * d_k + head * d_k + c;
                    scale
                        * (0..d_k)
                            .map(|c| inputs[0][at(q, c)] * inputs[1][at(k_rows.start + j, c)])
                            .sum::<f64>()
                };
                let scores: Vec<f64> = (0..k_rows.len()).map(score).collect();
                all_scores.extend(&scores);
                let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let total: f64 = scores.iter().map(|s| (s - top).exp()).sum();
                for (j, s) in scores.iter().enumerate() {
                    let weight = (s - top).exp() / total;
                    all_weights.push(weight);
                    let draw = (head * queries.tokens() + q) * keys.longest() + j;
                    let weight = weight * f64::from(case.dropout.factor(draw));
                    for c in 0..d_v {
                        let value = inputs[2][(k_rows.start + j) * heads * d_v + head * d_v + c];
                        context[q * heads * d_v + head * d_v + c] += weight * value;
                    }
                }
            }
        }
    }
    (context, [all_weights, all_scores])
}

/// The derivative of `Σ gradient ∘ context` by one element, by central differences in f64.
fn derivative(case: &Case, inputs: &[Vec<f64>; 3], gradient: &[f64], part: usize, at: usize) -> f64 {
    let step = 1e-5 * f64::from(case.size);
    let loss = |change: f64| {
        let mut inputs = inputs.clone();
        inputs[part][at] += change;
        naive(case, &inputs).0.iter().zip(gradient).map(|(a, b)| a * b).sum::<f64>()
    };
    (loss(step) - loss(-step)) / (2.0 * step)
}

#[derive(Default, PartialEq)]
struct Outcome {
    context: Vec<f32>,
    weights: Vec<Vec<Vec<f32>>>,
    scores: Vec<Vec<Vec<f32>>>,
    gradients: [Vec<f32>; 3],
}

fn run(case: &Case, arrays: &[Array; 4]) -> Outcome {
    let [queries, keys] = case.sequences();
    let [q, k, v] = [0, 1, 2].map(|part| Tensor::variable(arrays[part].clone()));
    let parts = [&q, &k, &v].map(|tensor| ColumnView::whole(tensor.clone()));
    let [q_part, k_part, v_part] = parts;
    let attended = attention(q_part, k_part, v_part, &queries, &keys, &case.options());
    let gradients = backward_from(&attended.context, arrays[3].clone());
    let gradient = |tensor: &Tensor| gradients.of(tensor).expect("a gradient").to(DType::F32).f32().to_vec();
    Outcome {
        context: attended.context.to_vec(),
        weights: attended.weights.expect("weights"),
        scores: attended.scores.expect("scores"),
        gradients: [gradient(&q), gradient(&k), gradient(&v)],
    }
}

fn close(what: &str, ours: &[f32], exact: &[f64], tolerance: f64) {
    assert_eq!(ours.len(), exact.len(), "{what}");
    let finite = exact.iter().filter(|x| x.is_finite());
    let size = finite.fold(1e-3_f64, |top, x| top.max(x.abs()));
    for (i, (&ours, &exact)) in ours.iter().zip(exact).enumerate() {
        // Hidden keys have a score of exactly −∞.
        let error = if f64::from(ours) == exact { 0.0 } else { (f64::from(ours) - exact).abs() };
        assert!(error <= tolerance * size, "{what}[{i}]: {ours}, not {exact} (of {size})");
    }
}

fn check(name: &str, case: &Case, dtype: DType) {
    let tolerance = if dtype == DType::F32 { 1e-5 } else { 2e-2 };
    let arrays = case.arrays(dtype);
    let outcome = run(case, &arrays);
    let inputs = [0, 1, 2].map(|part| wide(&arrays[part]));
    let (context, [weights, scores]) = naive(case, &inputs);
    close(&format!("{name}: context"), &outcome.context, &context, tolerance);
    // Weights never pass through bf16.
    close(&format!("{name}: weights"), &outcome.weights.concat().concat(), &weights, 1e-5);
    close(&format!("{name}: scores"), &outcome.scores.concat().concat(), &scores, 1e-5);
    let gradient = wide(&arrays[3]);
    for part in 0..3 {
        // A prime stride visits all rows, heads and columns.
        let chosen: Vec<usize> =
            (0..inputs[part].len()).step_by(if inputs[part].len() < 300 { 1 } else { 23 }).collect();
        let ours: Vec<f32> = chosen.iter().map(|&at| outcome.gradients[part][at]).collect();
        let exact: Vec<f64> =
            chosen.iter().map(|&at| derivative(case, &inputs, &gradient, part, at)).collect();
        close(&format!("{name}: gradient of input {part}"), &ours, &exact, tolerance.max(2e-5));
    }
}

fn cases() -> Vec<(&'static str, Case)> {
    let dropout = Dropout::new(0.3, Stream::new(1, 2, 3));
    let uneven: &[usize] = &[1, 9, 3, 40];
    vec![
        ("length 1", Case::new(&[1, 1, 1], 2, 4, 4)),
        ("uneven lengths", Case::new(uneven, 1, 7, 7)),
        ("width 33", Case::new(&[2, 5], 1, 33, 33)),
        ("width 100", Case::new(&[6, 3], 1, 100, 100)),
        ("6 heads of 5", Case::new(&[4, 7], 6, 5, 5)),
        ("wide keys", Case::new(&[4, 7], 2, 20, 3)),
        ("wide values", Case::new(&[4, 7], 2, 3, 50)),
        ("causal", Case::new(uneven, 2, 8, 8).causal()),
        ("window", Case::new(&[70, 2, 5], 1, 4, 3).within(2)),
        ("causal window", Case::new(&[75, 1], 1, 3, 4).causal().within(3)),
        ("booleans", Case::new(uneven, 2, 4, 4).scattered()),
        ("cross", Case::new(&[3, 8, 1], 2, 6, 4).cross(&[5, 2, 37])),
        ("cached keys", Case::new(&[1, 3], 2, 6, 4).cross(&[5, 36]).causal().within(4)),
        ("no queries", Case::new(&[0, 3, 0], 2, 4, 4).cross(&[4, 3, 0])),
        (
            "booleans and the rest",
            Case { dropout, ..Case::new(&[4, 8], 2, 4, 4) }.cross(&[40, 9]).scattered().within(39),
        ),
        ("dropout", Case { dropout, ..Case::new(&[5, 1, 36], 3, 5, 7) }),
        ("steep", Case { size: 3.0, ..Case::new(&[5, 9], 2, 8, 8) }),
    ]
}
