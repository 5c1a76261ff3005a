use heedful_tensor::Ragged;
use heedful_tensor::ops::{
    AttentionRnnInputs, AttentionRnnOptions, AttentionRnnWeights, AttentionScore, Cell, Estimator, Mask,
    RecurrentState, ReturnWeights, Selection, attention_rnn, concat_columns,
};
use heedful_tensor::random::Stream;

use super::attend_tokens::{is_hidden, mask};
use super::recurrent::sigmoid;
use crate::support::reference::M;
use crate::support::{Case, Values};

#[derive(Clone)]
struct Setting {
    cell: Cell,
    score: AttentionScore,
    /// `None` is soft attention; `Some` is the sampling seed, chosen so that rounding to bf16 changes no
    /// sampled position.
    draws: Option<u64>,
    is_masked: bool,
    targets: Vec<usize>,
    sources: Vec<usize>,
    d: usize,
    key_width: usize,
    value_width: usize,
}

const SOFT_SHARE: f32 = 0.5;

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (cell, score) in [
        (Cell::Simple, AttentionScore::Additive),
        (Cell::Gru, AttentionScore::Additive),
        (Cell::Lstm, AttentionScore::General),
        (Cell::Gru, AttentionScore::ScaledDot),
        (Cell::Simple, AttentionScore::Dot),
        (Cell::Lstm, AttentionScore::Additive),
    ] {
        for (targets, sources, d) in [
            (vec![1], vec![1], 21),
            (vec![1, 6, 3, 6], vec![9, 2, 1, 33], 33),
            (vec![2, 0, 4], vec![3, 5, 2], 16),
        ] {
            let key_width = if score.requires_equal_widths() { d } else { d + 3 };
            let value_width = d + 5;
            for is_masked in [false, true] {
                let (targets, sources) = (targets.clone(), sources.clone());
                cases.push(case(Setting {
                    cell,
                    score,
                    draws: None,
                    is_masked,
                    targets,
                    sources,
                    d,
                    key_width,
                    value_width,
                }));
            }
        }
    }
    // Widths that GPU tensor cores support.
    for (cell, score, key_width) in [
        (Cell::Gru, AttentionScore::Additive, 40),
        (Cell::Simple, AttentionScore::ScaledDot, 40),
        (Cell::Lstm, AttentionScore::General, 80),
    ] {
        cases.push(case(Setting {
            cell,
            score,
            draws: None,
            is_masked: true,
            targets: (1..=18).map(|i| i % 4).collect(),
            sources: (1..=18).map(|i| i % 5 + 1).collect(),
            d: 40,
            key_width,
            value_width: 80,
        }));
    }
    for (cell, score, seed) in
        [(Cell::Gru, AttentionScore::Additive, 5), (Cell::Lstm, AttentionScore::General, 11)]
    {
        cases.push(case(Setting {
            cell,
            score,
            draws: Some(seed),
            is_masked: false,
            targets: vec![3, 2],
            sources: vec![2, 3],
            d: 16,
            key_width: 20,
            value_width: 24,
        }));
    }
    cases
}

fn case(setting: Setting) -> Case {
    let Setting { cell, score, draws, is_masked, targets, sources, d, key_width, value_width } =
        setting.clone();
    let (tokens, source_tokens, rows) = (targets.iter().sum(), sources.iter().sum(), targets.len());
    let hardness = match (draws, is_masked) {
        (Some(_), _) => "hard",
        (None, true) => "masked",
        (None, false) => "soft",
    };
    let case = Case::new(
        format!("attention_rnn {cell:?} {score:?} {hardness} d {d} {targets:?} at {sources:?}"),
        move |run| {
            let [targets, sources] =
                [&targets, &sources].map(|lengths| Ragged::from_lengths(lengths.clone()));
            let mask = if is_masked { mask(&targets, &sources) } else { Mask::full() };
            let c = cell.has_memory().then(|| run.x[4].clone());
            let [hidden, bias, context] = [&run.p[0], &run.p[1], &run.p[2]];
            let found = attention_rnn(
                AttentionRnnInputs {
                    x_gates: &run.x[0],
                    targets: &targets,
                    initial: &RecurrentState { h: run.x[3].clone(), c },
                    keys: &run.x[1],
                    values: &run.x[2],
                    sources: &sources,
                    mask: &mask,
                },
                AttentionRnnWeights {
                    hidden,
                    bias: Some(bias),
                    context,
                    query: (!score.requires_equal_widths()).then(|| &run.p[3]),
                    score,
                    score_weight: (score == AttentionScore::Additive).then(|| &run.p[4]),
                },
                AttentionRnnOptions {
                    cell,
                    selection: draws.map_or(Selection::Soft, |seed| Selection::Sampled {
                        stream: Stream::new(seed, 0, 0),
                        soft_share: SOFT_SHARE,
                        estimator: Estimator::ScoreFunction,
                    }),
                    compute: run.compute,
                    weights: ReturnWeights::None,
                },
            );
            concat_columns(&[&found.states, &found.contexts, &found.choices])
        },
        move |m| setting.reference(m),
    );
    let within = |width: usize| Values::Within(1.0 / (width as f32).sqrt());
    let mut case = case
        .input(tokens, cell.gates() * d, Values::Within(1.0))
        .input(source_tokens, key_width, Values::Within(1.0))
        .wide_input(source_tokens, value_width, Values::Within(1.0))
        .wide_input(rows, d, Values::Within(1.0));
    if cell.has_memory() {
        case = case.wide_input(rows, d, Values::Within(1.0));
    }
    case = case.param(d, cell.gates() * d, within(d)).param(1, cell.gates() * d, Values::Within(1.0)).param(
        value_width,
        cell.gates() * d,
        within(value_width),
    );
    if !score.requires_equal_widths() {
        case = case.param(d, key_width, within(d));
    }
    if score == AttentionScore::Additive { case.param(1, key_width, Values::Within(1.0)) } else { case }
}

impl Setting {
    /// States, contexts and choices, side by side.
    fn reference(&self, m: &[M]) -> M {
        let (d, gates) = (self.d, self.cell.gates() * self.d);
        let [x, keys, values, initial] = [&m[0], &m[1], &m[2], &m[3]];
        let p = &m[if self.cell.has_memory() { 5 } else { 4 }..];
        let width = d + self.value_width + 2;
        let mut all = Vec::new();
        let (mut token, mut source_start) = (0, 0);
        for (sequence, (&length, &source)) in self.targets.iter().zip(&self.sources).enumerate() {
            let mut h = M::build(1, d, |_, j| initial.at(sequence, j));
            let mut c: Vec<f64> =
                (0..d).map(|j| if self.cell.has_memory() { m[4].at(sequence, j) } else { 0.0 }).collect();
            for query in 0..length {
                let q = if self.score.requires_equal_widths() { h.clone() } else { h.times(&p[3]) };
                let e = M::build(1, source, |_, j| {
                    if self.is_masked && is_hidden(query, j, source) {
                        return f64::NEG_INFINITY;
                    }
                    let key = |u: usize| keys.at(source_start + j, u);
                    match self.score {
                        AttentionScore::Additive => {
                            (0..self.key_width).map(|u| p[4].at(0, u) * (q.at(0, u) + key(u)).tanh()).sum()
                        }
                        AttentionScore::Dot | AttentionScore::ScaledDot | AttentionScore::General => {
                            let dot: f64 = (0..self.key_width).map(|u| q.at(0, u) * key(u)).sum();
                            if self.score == AttentionScore::ScaledDot {
                                dot / (self.key_width as f64).sqrt()
                            } else {
                                dot
                            }
                        }
                    }
                });
                let alpha = e.softmax();
                let (context, choice) = self.context(&alpha, values, source_start, token);
                let input_side = context.times(&p[2]);
                let a = h.times(&p[0]).plus(&p[1], 1.0);
                let input =
                    |gate: usize, j: usize| x.at(token, gate * d + j) + input_side.at(0, gate * d + j);
                let mut next = vec![0.0; d];
                for (j, next) in next.iter_mut().enumerate() {
                    let sum = |gate: usize| input(gate, j) + a.at(0, gate * d + j);
                    *next = match self.cell {
                        Cell::Simple => sum(0).tanh(),
                        Cell::Gru => {
                            let (r, z) = (sigmoid(sum(0)), sigmoid(sum(1)));
                            (1.0 - z) * (input(2, j) + r * a.at(0, 2 * d + j)).tanh() + z * h.at(0, j)
                        }
                        Cell::Lstm => {
                            c[j] = sigmoid(sum(1)) * c[j] + sigmoid(sum(0)) * sum(2).tanh();
                            sigmoid(sum(3)) * c[j].tanh()
                        }
                    };
                }
                debug_assert_eq!(a.width, gates);
                h = M { rows: 1, width: d, values: next };
                all.extend(h.values.iter().chain(&context.values).chain(&choice));
                token += 1;
            }
            source_start += source;
        }
        M { rows: token, width, values: all }
    }

    fn context(&self, alpha: &M, values: &M, start: usize, token: usize) -> (M, [f64; 2]) {
        let mean = || {
            M::build(1, self.value_width, |_, u| {
                (0..alpha.width).map(|j| alpha.at(0, j) * values.at(start + j, u)).sum()
            })
        };
        let Some(seed) = self.draws else { return (mean(), [0.0; 2]) };
        let entropy = -alpha.values.iter().map(|a| a * a.ln()).sum::<f64>();
        if Stream::new(seed, 0, 0).uniform(!(token as u32)) < SOFT_SHARE {
            return (mean(), [0.0, entropy]);
        }
        let uniform = f64::from(Stream::new(seed, 0, 0).uniform(token as u32));
        let mut sum = 0.0;
        let taken = (0..alpha.width).find(|&j| {
            sum += alpha.at(0, j);
            uniform < sum
        });
        let taken = taken.expect("weights sum to 1");
        let context = M::build(1, self.value_width, |_, u| values.at(start + taken, u));
        (context, [alpha.at(0, taken).ln(), entropy])
    }
}
