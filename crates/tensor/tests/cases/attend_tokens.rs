use heedful_tensor::Ragged;
use heedful_tensor::ops::{
    AttendInputs, AttendOptions, AttentionScore, BoolMask, Estimator, Mask, ReturnWeights, Selection,
    attend_tokens, concat_columns,
};
use heedful_tensor::random::Stream;

use crate::support::reference::M;
use crate::support::{Case, Values};

const SOFT_SHARE: f32 = 0.5;

#[derive(Clone)]
struct Setting {
    score: AttentionScore,
    /// `None` is soft attention; `Some` is the sampling seed, chosen so that rounding to bf16 changes no
    /// sampled position.
    draws: Option<u64>,
    is_masked: bool,
    targets: Vec<usize>,
    sources: Vec<usize>,
    key_width: usize,
    value_width: usize,
}

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for &score in AttentionScore::ALL {
        for (targets, sources, key_width) in [
            (vec![1], vec![1], 21),
            (vec![1, 6, 3, 6], vec![9, 2, 1, 33], 33),
            (vec![2, 0, 4], vec![3, 5, 2], 16),
        ] {
            let value_width = key_width + 5;
            for is_masked in [false, true] {
                let (targets, sources) = (targets.clone(), sources.clone());
                cases.push(case(Setting {
                    score,
                    draws: None,
                    is_masked,
                    targets,
                    sources,
                    key_width,
                    value_width,
                }));
            }
        }
    }
    for (score, seed) in [(AttentionScore::Additive, 5), (AttentionScore::General, 11)] {
        cases.push(case(Setting {
            score,
            draws: Some(seed),
            is_masked: false,
            targets: vec![3, 2],
            sources: vec![2, 3],
            key_width: 20,
            value_width: 24,
        }));
    }
    cases
}

/// Whether the mask hides a key from the query at this index of its sequence; the last key is never hidden.
pub(super) fn is_hidden(query: usize, key: usize, keys: usize) -> bool {
    key + 1 < keys && (query + key).is_multiple_of(3)
}

/// The mask of all sequences.
pub(super) fn mask(targets: &Ragged, sources: &Ragged) -> Mask {
    let allowed = targets.lengths().zip(sources.lengths()).flat_map(|(queries, keys)| {
        (0..queries).flat_map(move |query| (0..keys).map(move |key| !is_hidden(query, key, keys)))
    });
    let allowed = BoolMask::new(targets, sources, allowed.collect());
    Mask::full().allowed(allowed.expect("the last key is visible"))
}

fn case(setting: Setting) -> Case {
    let Setting { score, draws, is_masked, targets, sources, key_width, value_width } = setting.clone();
    let (tokens, source_tokens) = (targets.iter().sum(), sources.iter().sum());
    let hardness = match (draws, is_masked) {
        (Some(_), _) => "hard",
        (None, true) => "masked",
        (None, false) => "soft",
    };
    let case = Case::new(
        format!("attend_tokens {score:?} {hardness} {key_width} {targets:?} at {sources:?}"),
        move |run| {
            let [targets, sources] =
                [&targets, &sources].map(|lengths| Ragged::from_lengths(lengths.clone()));
            let mask = if is_masked { mask(&targets, &sources) } else { Mask::full() };
            let found = attend_tokens(
                AttendInputs {
                    queries: &run.x[0],
                    targets: &targets,
                    keys: &run.x[1],
                    values: &run.x[2],
                    sources: &sources,
                    mask: &mask,
                },
                AttendOptions {
                    score,
                    score_weight: (score == AttentionScore::Additive).then(|| &run.p[0]),
                    selection: draws.map_or(Selection::Soft, |seed| Selection::Sampled {
                        stream: Stream::new(seed, 0, 0),
                        soft_share: SOFT_SHARE,
                        estimator: Estimator::ScoreFunction,
                    }),
                    compute: run.compute,
                    weights: ReturnWeights::None,
                },
            );
            concat_columns(&[&found.contexts, &found.choices])
        },
        move |m| setting.reference(m),
    );
    let case = case
        .wide_input(tokens, key_width, Values::Within(1.0))
        .input(source_tokens, key_width, Values::Within(1.0))
        .wide_input(source_tokens, value_width, Values::Within(1.0));
    if score == AttentionScore::Additive { case.param(1, key_width, Values::Within(1.0)) } else { case }
}

impl Setting {
    /// Contexts and choices, side by side.
    fn reference(&self, m: &[M]) -> M {
        let [queries, keys, values] = [&m[0], &m[1], &m[2]];
        let mut all = Vec::new();
        let (mut token, mut start) = (0, 0);
        for (&length, &source) in self.targets.iter().zip(&self.sources) {
            for query in 0..length {
                let e = M::build(1, source, |_, j| {
                    if self.is_masked && is_hidden(query, j, source) {
                        return f64::NEG_INFINITY;
                    }
                    let pairs = (0..self.key_width).map(|u| (u, queries.at(token, u), keys.at(start + j, u)));
                    match self.score {
                        AttentionScore::Additive => {
                            pairs.map(|(u, q, k)| m[3].at(0, u) * (q + k).tanh()).sum()
                        }
                        AttentionScore::ScaledDot => {
                            pairs.map(|(_, q, k)| q * k).sum::<f64>() / (self.key_width as f64).sqrt()
                        }
                        AttentionScore::Dot | AttentionScore::General => pairs.map(|(_, q, k)| q * k).sum(),
                    }
                });
                let alpha = e.softmax();
                let (shares, choice) = self.shares(&alpha, token);
                let context = |u| (0..source).map(|j| shares[j] * values.at(start + j, u)).sum::<f64>();
                all.extend((0..self.value_width).map(context).chain(choice));
                token += 1;
            }
            start += source;
        }
        M { rows: token, width: self.value_width + 2, values: all }
    }

    /// The share of each value in the context; the log-probability and entropy of the selection.
    fn shares(&self, alpha: &M, token: usize) -> (Vec<f64>, [f64; 2]) {
        let Some(seed) = self.draws else { return (alpha.values.clone(), [0.0; 2]) };
        let stream = Stream::new(seed, 0, 0);
        let entropy = -alpha.values.iter().map(|a| a * a.ln()).sum::<f64>();
        if stream.uniform(!(token as u32)) < SOFT_SHARE {
            return (alpha.values.clone(), [0.0, entropy]);
        }
        let uniform = f64::from(stream.uniform(token as u32));
        let mut sum = 0.0;
        let taken = (0..alpha.width).find(|&j| {
            sum += alpha.at(0, j);
            uniform < sum
        });
        let taken = taken.expect("weights sum to 1");
        let shares = (0..alpha.width).map(|j| if j == taken { 1.0 } else { 0.0 }).collect();
        (shares, [alpha.at(0, taken).ln(), entropy])
    }
}
