//! From a model to sentences: the model's own output is its next input, from `<bos>` until `<eos>`.

mod greedy;

pub use greedy::{GreedyOptions, greedy};
