//! A model of your own from operations and layers: which letter occurs most often in a word?
//!
//! ```text
//! h_t = ReLU(E[x_t] W_1 + b_1)
//! c   = LayerNorm(MultiHead(q, h, h))      attention pooling: one learned query q attends to the whole word
//! p   = softmax(c W_2ᵀ)
//! ```
//!
//! `cargo run --release -p heedful --example custom_model`

use heedful::layers::{AttentionRole, Embedding, LayerNorm, Linear, Pass, PositionalEncoding};
use heedful::tensor::ops::{self, Activation, AttentionOptions, CrossEntropy, Mask, Part};
use heedful::tensor::random::Stream;
use heedful::tensor::{DType, Param, Params, Ragged, tape};
use heedful::train::{Optimizer, Schedule};

const LETTERS: usize = 5;
const D: usize = 32;
const HEADS: usize = 4;
const BATCH: u32 = 64;

struct MajorityVote {
    params: Params,
    letters: Embedding,
    query: Embedding,
    inner: Linear,
    key_value: Linear,
    norm: LayerNorm,
    classes: Param,
}

impl MajorityVote {
    fn new(seed: u64) -> MajorityVote {
        let params = Params::new(seed);
        MajorityVote {
            // Order does not matter for counting: no positions.
            letters: Embedding::new(
                Embedding::table(&params, "letters", LETTERS, D),
                PositionalEncoding::None,
                0.0,
            ),
            query: Embedding::new(Embedding::table(&params, "query", 1, D), PositionalEncoding::None, 0.0),
            inner: Linear::new(&params, "inner", D, D),
            key_value: Linear::new(&params, "key_value", D, 2 * D),
            norm: LayerNorm::new(&params, "norm", D, 1e-5),
            classes: Embedding::table(&params, "classes", LETTERS, D),
            params,
        }
    }

    fn loss(&self, words: &[u32], sequences: &Ragged, labels: &[u32], pass: &mut Pass) -> CrossEntropy {
        let embedded = self.letters.forward(words, sequences, pass);
        let hidden = self.inner.activated(&embedded, Activation::Relu, pass.dropout(0.0), pass);
        let key_value = self.key_value.forward(&hidden, pass);
        // One query for each word: a batch of sequences of length 1.
        let one_each = Ragged::from_lengths(vec![1; sequences.sequences()]);
        let query = self.query.forward(&vec![0; sequences.sequences()], &one_each, pass);
        let options = AttentionOptions {
            heads: HEADS,
            scale: ((D / HEADS) as f32).sqrt().recip(),
            mask: Mask::full(),
            dropout: pass.dropout(0.0),
            weights: pass.weights(AttentionRole::Pooling, HEADS, &one_each, sequences),
            rounding: pass.compute().precision.rounding(),
        };
        let pooled = ops::attention(
            Part { tensor: query, columns: 0..D },
            Part { tensor: key_value.clone(), columns: 0..D },
            Part { tensor: key_value, columns: D..2 * D },
            &one_each,
            sequences,
            &options,
        );
        let context = self.norm.forward(&pooled.context, pass);
        ops::cross_entropy(&context, &self.classes, labels, pass.loss_options(0.0))
    }
}

fn main() {
    let model = MajorityVote::new(1);
    let schedule = Schedule::Cosine { peak: 1e-2, floor: 1e-4, warmup: 20, total: 400 };
    let mut optimizer = Optimizer::new(&model.params, Optimizer::PAPER, schedule);
    for step in 1..=400 {
        let (words, sequences, labels) = words(step);
        let found = model.loss(&words, &sequences, &labels, &mut Pass::training(DType::F32, 1, step));
        tape::backward(&found.loss);
        optimizer.step(&model.params);
        if step == 1 || step % 50 == 0 {
            let accuracy = 100.0 * found.correct() as f64 / found.tokens as f64;
            println!("step {step:3}   loss {:.4}   {accuracy:.0} % right", found.loss.item());
        }
    }
    check_a_gradient(&model);
}

/// The gradient on the tape against `(loss(θ + h) − loss(θ − h)) / 2h` for one number of one parameter.
fn check_a_gradient(model: &MajorityVote) {
    let (words, sequences, labels) = words(1_000);
    let loss = || model.loss(&words, &sequences, &labels, &mut Pass::training(DType::F32, 1, 1)).loss;
    model.params.clear_gradients();
    tape::backward(&loss());
    let param = model.params.get("key_value.weight").expect("a parameter of the model");
    let gradient = param.gradient();
    let index = (0..gradient.len()).max_by(|&a, &b| gradient[a].abs().total_cmp(&gradient[b].abs()));
    let index = index.expect("the parameter has numbers");

    let values = param.to_vec();
    let moved = |by: f32| {
        let mut values = values.clone();
        values[index] += by;
        param.set(&values);
        f64::from(loss().item())
    };
    let h = 1e-2_f32;
    let measured = (moved(h) - moved(-h)) / (2.0 * f64::from(h));
    let taped = f64::from(gradient[index]);
    println!("gradient of key_value.weight[{index}]: {taped:.6} on the tape, {measured:.6} measured");
    assert!((taped - measured).abs() <= 0.02 * measured.abs() + 1e-5, "the gradient is wrong");
}

/// Random words of 3 to 12 letters, end to end, each with its most frequent letter (of equals the first).
fn words(step: u64) -> (Vec<u32>, Ragged, Vec<u32>) {
    let stream = Stream::new(2, step, 0);
    let word = |i: u32| -> Vec<u32> {
        let length = 3 + stream.bits(i * 16) % 10;
        (0..length).map(|j| stream.bits(i * 16 + 1 + j) % LETTERS as u32).collect()
    };
    let words: Vec<Vec<u32>> = (0..BATCH).map(word).collect();
    let label = |word: &Vec<u32>| {
        let count = |letter: u32| word.iter().filter(|&&other| other == letter).count();
        (0..LETTERS as u32).rev().max_by_key(|&letter| count(letter)).expect("there are letters")
    };
    let labels = words.iter().map(label).collect();
    let sequences = Ragged::from_lengths(words.iter().map(Vec::len));
    (words.concat(), sequences, labels)
}
