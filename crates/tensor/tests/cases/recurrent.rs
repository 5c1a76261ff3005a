use heedful_tensor::Ragged;
use heedful_tensor::ops::{Cell, Direction, RecurrentOptions, RecurrentState, concat_rows, recurrent};

use crate::support::reference::M;
use crate::support::{Case, Values};

/// The initial state of a sequence.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Initial {
    Zeros,
    Given,
}

#[derive(Clone)]
struct Setting {
    cell: Cell,
    direction: Direction,
    initial_kind: Initial,
    lengths: Vec<usize>,
    d: usize,
}

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for cell in [Cell::Simple, Cell::Gru, Cell::Lstm] {
        for direction in [Direction::Forward, Direction::Backward] {
            for (lengths, d) in [(vec![1], 7), (vec![1, 12, 3, 12], 33), (vec![2, 0, 5], 16)] {
                for initial_kind in [Initial::Zeros, Initial::Given] {
                    cases.push(case(Setting { cell, direction, initial_kind, lengths: lengths.clone(), d }));
                }
            }
        }
        // Row counts that are not a multiple of a tile, and a row that is split into pieces.
        let lengths = (1..=20).rev().map(|i| i % 3 + 1).collect();
        cases.push(case(Setting {
            cell,
            direction: Direction::Forward,
            initial_kind: Initial::Given,
            lengths,
            d: 140,
        }));
        // Widths that GPU tensor cores support, and more rows than they process at once.
        for (lengths, d) in [((1..=20).map(|i| i % 3).collect(), 40), (vec![2, 3, 1], 264), (vec![1, 2], 520)]
        {
            let (direction, initial_kind) = (Direction::Backward, Initial::Given);
            cases.push(case(Setting { cell, direction, initial_kind, lengths, d }));
        }
    }
    cases
}

fn case(setting: Setting) -> Case {
    let Setting { cell, direction, initial_kind, lengths, d } = setting.clone();
    let (tokens, rows) = (lengths.iter().sum(), lengths.len());
    let size = 1.0 / (d as f32).sqrt();
    let case = Case::new(
        format!("recurrent {cell:?} {direction:?} from {initial_kind:?} d {d} {lengths:?}"),
        move |run| {
            let options = RecurrentOptions { cell, direction, compute: run.compute };
            let initial = (initial_kind == Initial::Given)
                .then(|| RecurrentState { h: run.x[1].clone(), c: run.x.get(2).cloned() });
            let sequences = Ragged::from_lengths(lengths.iter().copied());
            let found = recurrent(&run.x[0], &sequences, initial.as_ref(), &run.p[0], run.p.get(1), options);
            let mut parts = vec![&found.outputs, &found.last.h];
            parts.extend(&found.last.c);
            concat_rows(&parts)
        },
        move |m| setting.reference(m),
    );
    let mut case = case.input(tokens, cell.gates() * d, Values::Within(1.0));
    if initial_kind == Initial::Given {
        case = case.wide_input(rows, d, Values::Within(1.0));
        if cell.has_memory() {
            case = case.input(rows, d, Values::Within(1.0));
        }
    }
    case = case.param(d, cell.gates() * d, Values::Within(size));
    // The simple cell has no bias here.
    if cell == Cell::Simple { case } else { case.param(1, cell.gates() * d, Values::Within(1.0)) }
}

impl Setting {
    /// The outputs, the last h, the last c, one below the other.
    fn reference(&self, m: &[M]) -> M {
        let d = self.d;
        let x = &m[0];
        let states =
            if self.initial_kind == Initial::Zeros { 0 } else { 1 + usize::from(self.cell.has_memory()) };
        let (weight, bias) = (&m[1 + states], m.get(2 + states));
        let (tokens, sequences) = (x.rows, self.lengths.len());
        let below = if self.cell.has_memory() { 2 } else { 1 };
        let mut all = vec![0.0; (tokens + below * sequences) * d];
        let mut first = 0;
        for (sequence, &length) in self.lengths.iter().enumerate() {
            let initial = |state: usize| -> Vec<f64> {
                let from = |j| if state < states { m[1 + state].at(sequence, j) } else { 0.0 };
                (0..d).map(from).collect()
            };
            let (mut h, mut c) = (initial(0), initial(1));
            for step in 0..length {
                let token = match self.direction {
                    Direction::Forward => first + step,
                    Direction::Backward => first + length - 1 - step,
                };
                let x = |gate: usize, j: usize| x.at(token, gate * d + j);
                let a: Vec<f64> = (0..self.cell.gates() * d)
                    .map(|j| {
                        let bias = bias.map_or(0.0, |bias| bias.at(0, j));
                        bias + (0..d).map(|k| h[k] * weight.at(k, j)).sum::<f64>()
                    })
                    .collect();
                for j in 0..d {
                    let sum = |gate: usize| x(gate, j) + a[gate * d + j];
                    h[j] = match self.cell {
                        Cell::Simple => sum(0).tanh(),
                        Cell::Gru => {
                            let (r, z) = (sigmoid(sum(0)), sigmoid(sum(1)));
                            let n = (x(2, j) + r * a[2 * d + j]).tanh();
                            (1.0 - z) * n + z * h[j]
                        }
                        Cell::Lstm => {
                            c[j] = sigmoid(sum(1)) * c[j] + sigmoid(sum(0)) * sum(2).tanh();
                            sigmoid(sum(3)) * c[j].tanh()
                        }
                    };
                }
                all[token * d..(token + 1) * d].copy_from_slice(&h);
            }
            all[(tokens + sequence) * d..(tokens + sequence + 1) * d].copy_from_slice(&h);
            if self.cell.has_memory() {
                let row = tokens + sequences + sequence;
                all[row * d..(row + 1) * d].copy_from_slice(&c);
            }
            first += length;
        }
        M { rows: all.len() / d, width: d, values: all }
    }
}

pub(super) fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}
