use heedful_tensor::Ragged;
use heedful_tensor::ops::ssru;

use crate::support::reference::M;
use crate::support::{Case, Values};

pub(crate) fn cases() -> Vec<Case> {
    let shapes = [(vec![1], 7), (vec![1, 12, 3, 12], 33), (vec![2, 0, 5], 16), (vec![9, 4], 130)];
    shapes.into_iter().map(|(lengths, d)| case(lengths, d)).collect()
}

fn case(lengths: Vec<usize>, d: usize) -> Case {
    let (again, tokens) = (lengths.clone(), lengths.iter().sum());
    Case::new(
        format!("ssru {lengths:?} d {d}"),
        move |run| ssru(&run.x[0], &Ragged::from_lengths(lengths.iter().copied())),
        move |m| reference(&m[0], &again, d),
    )
    .input(tokens, 2 * d, Values::Within(2.0))
}

fn reference(x: &M, lengths: &[usize], d: usize) -> M {
    let firsts: Vec<bool> = lengths.iter().flat_map(|&length| (0..length).map(|token| token == 0)).collect();
    let mut states = vec![0.0; x.rows * d];
    for token in 0..x.rows {
        for column in 0..d {
            let before = if firsts[token] { 0.0 } else { states[(token - 1) * d + column] };
            let forget = 1.0 / (1.0 + (-x.at(token, d + column)).exp());
            states[token * d + column] = forget * before + (1.0 - forget) * x.at(token, column);
        }
    }
    M::build(x.rows, d, |token, column| states[token * d + column])
}
