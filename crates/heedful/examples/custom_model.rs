//! A custom model that finds the letter of a word that is last in the alphabet.
//!
//! ```sh
//! cargo run --release -p heedful --example custom_model
//! ```
//!
//! ```text
//! h = ReLU(E[x] W + b)
//! c = LayerNorm(MultiHead(q, h W_k + b_k, h W_v + b_v))      one learned query q attends to the whole word
//! p = softmax(c W_outᵀ)
//! ```

use heedful::layers::{Embedding, LayerNorm, Linear, Pass, attention};
use heedful::tensor::ops::{CrossEntropy, cross_entropy};
use heedful::tensor::{DType, Param, Params, Ragged, random::Stream, tape};
use heedful::{Optimizer, Schedule};

struct LastLetter {
    letters: Embedding,
    query: Embedding,
    layers: [Linear; 3],
    norm: LayerNorm,
    classes: Param,
}

impl LastLetter {
    fn new(params: &Params, letters: usize, d: usize) -> LastLetter {
        LastLetter {
            letters: Embedding::of_tokens(params, "letters", letters, d),
            query: Embedding::of_tokens(params, "query", 1, d),
            layers: ["hidden", "key", "value"].map(|name| Linear::new(params, name, d, d)),
            norm: LayerNorm::new(params, "norm", d, 1e-5),
            classes: Embedding::table(params, "classes", letters, d),
        }
    }

    fn loss(&self, letters: &[u32], words: &Ragged, labels: &[u32], pass: &mut Pass) -> CrossEntropy {
        let one_each = words.with_lengths(|_| 1);
        let q = self.query.forward(&vec![0; words.sequences()], &one_each, pass);
        let [hidden, key, value] = &self.layers;
        let h = hidden.forward(&self.letters.forward(letters, words, pass), pass).relu();
        let (k, v) = (key.forward(&h, pass), value.forward(&h, pass));
        let c = self.norm.forward(&attention(&q, &k, &v, [&one_each, words], 4, pass), pass);
        cross_entropy(&c, &self.classes, labels, pass.loss_options(0.0))
    }
}

fn main() {
    let params = Params::new(1);
    let model = LastLetter::new(&params, 26, 32);
    let schedule = Schedule::Cosine { peak: 1e-2, floor: 1e-4, warmup: 20, total: 400 };
    let mut optimizer = Optimizer::new(&params, Optimizer::PAPER, schedule);
    for step in 1..=400 {
        let draws = Stream::new(2, step, 0);
        let word = |i: u32| (0..3 + i % 10).map(|j| draws.bits(i * 16 + j) % 26).collect();
        let words: Vec<Vec<u32>> = (0..64).map(word).collect();
        let labels: Vec<u32> = words.iter().filter_map(|word| word.iter().max().copied()).collect();
        let (letters, words) = (words.concat(), Ragged::from_lengths(words.iter().map(Vec::len)));
        let loss = model.loss(&letters, &words, &labels, &mut Pass::training(DType::F32, 1, step));
        tape::backward(&loss.loss);
        optimizer.step(&params);
        println!("step {step}: loss {:.3}, {} of 64 right", loss.loss.item(), loss.correct());
    }
}
