//! `y_i+1 = argmax p(y | y_1 … y_i, x)`, until `<eos>` or the limit.
//!
//! The decoder reads its whole output anew for each token; sentences that have ended leave the batch. Because a
//! sentence's numbers do not depend on its neighbours, neither does its translation.

use heedful_tensor::{DType, Ragged, Tensor};

use crate::batch::{BatchError, lay_end_to_end};
use crate::layers::{Pass, Positions};
use crate::transformer::{Memory, Transformer};

/// How to begin and when to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GreedyOptions {
    /// The token before the first.
    pub bos: u32,
    /// The token after the last.
    pub eos: u32,
    /// An output has at most as many tokens as its source and this many more.
    pub beyond_source: usize,
    /// Type of the matrix products.
    pub compute: DType,
}

/// The outputs for `sources`, in their order, without `<bos>` and `<eos>`.
pub fn greedy(
    model: &Transformer,
    sources: &[Vec<u32>],
    options: GreedyOptions,
) -> Result<Vec<Vec<u32>>, BatchError> {
    let (tokens, sequences) = lay_end_to_end(sources.iter().map(Vec::as_slice))?;
    model.check_source(&tokens, &sequences)?;
    let mut pass = Pass::inference(options.compute);
    let memory = model.encode(&tokens, &sequences, &mut pass);

    let mut outputs = vec![vec![options.bos]; sources.len()];
    let mut open: Vec<usize> = (0..sources.len()).collect();
    while !open.is_empty() {
        let prefixes = Ragged::from_lengths(open.iter().map(|&i| outputs[i].len()));
        let prefix_tokens: Vec<u32> = open.iter().flat_map(|&i| &outputs[i]).copied().collect();
        let states = model.decode(&prefix_tokens, &prefixes, &select(&memory, &open), &mut pass);
        let ends = prefixes.ranges().map(|range| range.end - 1);
        let next = best_tokens(&model.project(&rows(&states, ends), &mut pass));
        for (&i, token) in open.iter().zip(next) {
            outputs[i].push(token);
        }
        open.retain(|&i| {
            // The first token of an output is <bos>.
            let said = outputs[i].len() - 1;
            outputs[i].last() != Some(&options.eos) && said < limit(model, sources[i].len(), options)
        });
    }
    for output in &mut outputs {
        output.remove(0);
        if output.last() == Some(&options.eos) {
            output.pop();
        }
    }
    Ok(outputs)
}

fn limit(model: &Transformer, source_length: usize, options: GreedyOptions) -> usize {
    let wished = source_length + options.beyond_source;
    match model.config().positions {
        Positions::Learned { max_length } => wished.min(max_length),
        Positions::Sinusoidal | Positions::None => wished,
    }
}

/// The most probable token of each row; of equals the first.
fn best_tokens(logits: &Tensor) -> Vec<u32> {
    let best = |row: &[f32]| {
        let better = |best: usize, i: usize| if row[i] > row[best] { i } else { best };
        (1..row.len()).fold(0, better) as u32
    };
    logits.to_vec().chunks_exact(logits.width()).map(best).collect()
}

/// The memory of some of the sentences.
fn select(memory: &Memory, sentences: &[usize]) -> Memory {
    if sentences.len() == memory.sequences.sequences() {
        return memory.clone();
    }
    let tokens = sentences.iter().flat_map(|&i| memory.sequences.range(i));
    Memory {
        states: rows(&memory.states, tokens),
        sequences: Ragged::from_lengths(sentences.iter().map(|&i| memory.sequences.length(i))),
    }
}

/// A copy of some rows.
fn rows(states: &Tensor, rows: impl Iterator<Item = usize>) -> Tensor {
    let width = states.width();
    let all = states.array().f32();
    let mut count = 0;
    let mut values = Vec::new();
    for row in rows {
        values.extend_from_slice(&all[row * width..(row + 1) * width]);
        count += 1;
    }
    Tensor::from_f32(count, width, &values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_token_is_the_first_of_equals() {
        let logits = Tensor::from_f32(2, 3, &[0.0, 2.0, 2.0, -1.0, -3.0, -2.0]);
        assert_eq!(best_tokens(&logits), [1, 0]);
    }

    #[test]
    fn memory_of_some_sentences() {
        let states = Tensor::from_f32(4, 1, &[1.0, 2.0, 3.0, 4.0]);
        let memory = Memory { states, sequences: Ragged::from_lengths([1, 2, 1]) };
        let some = select(&memory, &[0, 2]);
        assert_eq!(some.states.to_vec(), [1.0, 4.0]);
        assert_eq!(some.sequences, Ragged::from_lengths([1, 1]));
    }
}
