//! Sampling: `y_i ~ softmax(logits / temperature)`, with top-k and top-p.
//!
//! Tokens of a forced prefix are not sampled.
//!
//! The random number for token `i` of output `s` of a source is a function of (seed, source, s, i): it does
//! not depend on the rest of the batch or on the order. The same source always has the same outputs; several
//! outputs of one source differ.

use std::sync::Arc;

use heedful_tensor::ops::Normalizers;
use heedful_tensor::random::Stream;

use super::constraints::Progress;
use super::hypothesis::{Hypothesis, OpenHypothesis, Tree};
use super::input::SearchInput;
use super::options::{Sampling, SearchOptions};
use super::strategy::{Continuation, ExtraScores, ScoreRequest, Scores, Strategy};
use crate::data::SpecialTokens;

/// The sampled outputs of one sentence.
pub(super) struct Samples {
    options: Arc<SearchOptions>,
    sampling: Sampling,
    special: SpecialTokens,
    prefix: Vec<u32>,
    limit: usize,
    tree: Tree,
    open: Vec<(OpenHypothesis, Stream)>,
    rows: Vec<Continuation>,
    finished: Vec<Hypothesis>,
    candidates: Vec<Candidate>,
}

/// A token that may be sampled.
#[derive(Clone, Copy)]
struct Candidate {
    token: u32,
    score: f32,
}

impl Samples {
    pub(super) fn new(
        options: Arc<SearchOptions>,
        sampling: Sampling,
        special: SpecialTokens,
        input: &SearchInput,
        limit: usize,
    ) -> Samples {
        let source = fingerprint(&input.source);
        let open = |number: usize| {
            (OpenHypothesis::new(Progress::default()), Stream::new(sampling.seed, source, number as u64))
        };
        Samples {
            open: (0..options.n_best).map(open).collect(),
            rows: vec![Continuation { parent: None, token: special.bos }; options.n_best],
            options,
            sampling,
            special,
            prefix: input.constraints.prefix.clone(),
            limit,
            tree: Tree::default(),
            finished: Vec::new(),
            candidates: Vec::new(),
        }
    }

    fn draw(&mut self, open: &OpenHypothesis, stream: Stream, scores: &[f32]) -> u32 {
        let eos = self.special.eos;
        let banned =
            self.options.no_repeat_ngram.map(|n| self.tree.repeats(open.last, n)).unwrap_or_default();
        let allowed = |token: u32| {
            let early = token == eos && open.length < self.options.min_length;
            let suppressed = &self.special.suppressed;
            !early && banned.binary_search(&token).is_err() && suppressed.binary_search(&token).is_err()
        };
        let all = scores.iter().enumerate().map(|(token, &score)| Candidate { token: token as u32, score });
        self.candidates.clear();
        self.candidates.extend(all.filter(|c| c.score > f32::NEG_INFINITY && allowed(c.token)));
        if open.length == self.limit || self.candidates.is_empty() {
            return eos;
        }
        pick(&mut self.candidates, self.sampling, f64::from(stream.uniform(open.length as u32)))
    }
}

/// The candidate at this quantile (from 0 to 1) of the distribution, after top-k and top-p.
fn pick(candidates: &mut Vec<Candidate>, sampling: Sampling, quantile: f64) -> u32 {
    let better = |a: &Candidate, b: &Candidate| b.score.total_cmp(&a.score).then(a.token.cmp(&b.token));
    if let Some(k) = sampling.top_k
        && k < candidates.len()
    {
        candidates.select_nth_unstable_by(k - 1, better);
        candidates.truncate(k);
    }
    // Selection leaves the candidates unsorted, and the quantile depends on their order.
    if sampling.top_k.is_some() || sampling.top_p.is_some() {
        candidates.sort_unstable_by(better);
    }
    let top = candidates.iter().map(|c| c.score).fold(f32::NEG_INFINITY, f32::max);
    let weight = |c: &Candidate| (f64::from(c.score - top) / f64::from(sampling.temperature)).exp();
    if let Some(p) = sampling.top_p {
        let mut left = f64::from(p) * candidates.iter().map(weight).sum::<f64>();
        let kept = candidates.iter().position(|c| {
            left -= weight(c);
            left <= 0.0
        });
        candidates.truncate(kept.map_or(candidates.len(), |last| last + 1));
    }
    let mut left = quantile * candidates.iter().map(weight).sum::<f64>();
    let drawn = candidates.iter().find(|c| {
        left -= weight(c);
        left < 0.0
    });
    // Rounding may leave a small remainder at the end.
    drawn.or(candidates.last()).map_or(0, |c| c.token)
}

/// A hash of a source (FNV-1a over its tokens).
fn fingerprint(source: &[u32]) -> u64 {
    source.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &token| {
        (hash ^ u64::from(token)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

impl Strategy for Samples {
    type Output = Vec<Hypothesis>;

    fn rows(&self) -> &[Continuation] {
        &self.rows
    }

    fn score_request(&self) -> ScoreRequest<'_> {
        ScoreRequest { top_k: 0, extra: ExtraScores::All, normalizers: Normalizers::Computed }
    }

    fn advance(&mut self, scores: &Scores<'_>) {
        self.rows.clear();
        for (row, (open, stream)) in std::mem::take(&mut self.open).into_iter().enumerate() {
            let forced = self.prefix.get(open.length).copied();
            let token = forced.unwrap_or_else(|| self.draw(&open, stream, &scores.row(row)));
            let log_probability = open.log_probability + scores.log_probability(row, token);
            if token == self.special.eos {
                let score = log_probability / self.options.penalty(open.length + 1);
                let tokens = self.tree.tokens(open.last);
                self.finished.push(Hypothesis { tokens, score, log_probability });
            } else {
                let last = Some(self.tree.add(open.last, token));
                self.open.push((
                    OpenHypothesis { last, length: open.length + 1, log_probability, ..open },
                    stream,
                ));
                self.rows.push(Continuation { parent: Some(row), token });
            }
        }
    }

    fn partial_output(&self) -> Option<Vec<u32>> {
        self.open.first().map(|(open, _)| self.tree.tokens(open.last))
    }

    fn into_output(mut self: Box<Self>) -> Vec<Hypothesis> {
        self.finished.sort_by(|a, b| b.score.total_cmp(&a.score));
        self.finished
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCORES: [f32; 4] = [1.0, 3.0, 2.0, 0.0];

    /// How often each token is drawn at evenly spread points.
    fn shares(sampling: Sampling) -> [f64; 4] {
        let mut shares = [0.0; 4];
        for i in 0..10_000 {
            let all = SCORES.iter().enumerate();
            let mut all = all.map(|(token, &score)| Candidate { token: token as u32, score }).collect();
            shares[pick(&mut all, sampling, f64::from(i) / 10_000.0) as usize] += 1e-4;
        }
        shares
    }

    fn close(found: [f64; 4], weights: [f64; 4]) {
        let total: f64 = weights.iter().sum();
        for (found, weight) in found.iter().zip(weights) {
            assert!((found - weight / total).abs() < 1e-3, "{found} and {}", weight / total);
        }
    }

    #[test]
    fn draws_follow_the_probabilities() {
        let e = |x: f64| x.exp();
        let plain = Sampling::default();
        close(shares(plain), [e(1.0), e(3.0), e(2.0), e(0.0)]);
        close(shares(Sampling { temperature: 0.5, ..plain }), [e(2.0), e(6.0), e(4.0), e(0.0)]);
        close(shares(Sampling { top_k: Some(2), ..plain }), [0.0, e(3.0), e(2.0), 0.0]);
        // The best has 0.64 of the probability, the two best 0.88.
        close(shares(Sampling { top_p: Some(0.6), ..plain }), [0.0, 1.0, 0.0, 0.0]);
        close(shares(Sampling { top_p: Some(0.7), ..plain }), [0.0, e(3.0), e(2.0), 0.0]);
        close(shares(Sampling { top_p: Some(1.0), ..plain }), [e(1.0), e(3.0), e(2.0), e(0.0)]);
    }
}
