//! `log p(y | x) = Σ log p(y_i | y_1 … y_i−1, x)` of a given target.
//!
//! Forced decoding: the target goes step by step through the same engine as a search. The arithmetic is the
//! same, so the output of a search has exactly the log-probability that the search reported.

use heedful_tensor::ops::Normalizers;

use super::DecodeError;
use super::engine::Engine;
use super::ensemble::Ensemble;
use super::group::Sentence;
use super::input::SentenceId;
use super::options::SearchOptions;
use super::strategy::{Continuation, ExtraScores, ScoreRequest, Scores, Strategy};
use crate::data::SpecialTokens;
use crate::data::batch::Batch;
use crate::models::Generate;

/// The log-probability of a target.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetScore {
    /// Sum over its tokens and `<eos>`.
    pub log_probability: f64,
    /// `log p` of each token, and of `<eos>` at the end.
    pub tokens: Vec<f64>,
    /// For each token, and for `<eos>`, the most probable tokens at its position with their `log p`, best
    /// first: as many as requested.
    pub alternatives: Vec<Vec<(u32, f64)>>,
}

/// The log-probabilities of `(source, target)` pairs, in their order. Only the options `compute`,
/// `without_heads` and `batch_tokens` have an effect.
pub fn score(
    model: &dyn Generate,
    pairs: &[(Vec<u32>, Vec<u32>)],
    options: &SearchOptions,
) -> Result<Vec<TargetScore>, DecodeError> {
    score_by(&model.into(), pairs, options)
}

/// As [`score`], with several models.
pub fn score_by(
    ensemble: &Ensemble<'_>,
    pairs: &[(Vec<u32>, Vec<u32>)],
    options: &SearchOptions,
) -> Result<Vec<TargetScore>, DecodeError> {
    score_with_alternatives(ensemble, pairs, 0, options)
}

/// As [`score_by`], with the `alternatives` most probable tokens at each position of a target.
pub(crate) fn score_with_alternatives(
    ensemble: &Ensemble<'_>,
    pairs: &[(Vec<u32>, Vec<u32>)],
    alternatives: usize,
    options: &SearchOptions,
) -> Result<Vec<TargetScore>, DecodeError> {
    if pairs.is_empty() {
        return Ok(Vec::new());
    }
    let special = ensemble.special_tokens();
    ensemble.check(&Batch::new(pairs, special.bos, special.eos)?)?;
    let mut engine = Engine::start(ensemble, options)?;
    for (number, (source, target)) in pairs.iter().enumerate() {
        engine.push(Sentence {
            id: SentenceId(number),
            source: source.clone(),
            tokens: None,
            length: target.len(),
            weight: source.len(),
            rows: 1,
            strategy: Box::new(Forced::new(target, &special, alternatives)),
        });
    }
    let mut scores: Vec<Option<TargetScore>> = vec![None; pairs.len()];
    while !engine.is_idle() {
        for (SentenceId(number), found) in engine.run()? {
            scores[number] = Some(found?);
        }
    }
    Ok(scores.into_iter().flatten().collect())
}

/// The forced decoding of one target.
struct Forced {
    /// With `<eos>`.
    target: Vec<u32>,
    rows: Vec<Continuation>,
    tokens: Vec<f64>,
    /// The number of alternatives per position, and the alternatives so far.
    n_alternatives: usize,
    alternatives: Vec<Vec<(u32, f64)>>,
}

impl Forced {
    fn new(target: &[u32], special: &SpecialTokens, n_alternatives: usize) -> Forced {
        Forced {
            target: target.iter().copied().chain([special.eos]).collect(),
            rows: vec![Continuation { parent: None, token: special.bos }],
            tokens: Vec::new(),
            n_alternatives,
            alternatives: Vec::new(),
        }
    }
}

impl Strategy for Forced {
    type Output = TargetScore;

    fn rows(&self) -> &[Continuation] {
        &self.rows
    }

    fn score_request(&self) -> ScoreRequest<'_> {
        let next = &self.target[self.tokens.len()..][..1];
        ScoreRequest {
            top_k: self.n_alternatives,
            extra: ExtraScores::Tokens(next),
            normalizers: Normalizers::Computed,
        }
    }

    fn advance(&mut self, scores: &Scores<'_>) {
        let token = self.target[self.tokens.len()];
        self.tokens.push(scores.log_probability(0, token));
        if self.n_alternatives > 0 {
            self.alternatives.push(scores.best(0).take(self.n_alternatives).collect());
        }
        self.rows.clear();
        if self.tokens.len() < self.target.len() {
            self.rows.push(Continuation { parent: Some(0), token });
        }
    }

    fn into_output(self: Box<Self>) -> TargetScore {
        // Summed in order, as in a search.
        TargetScore {
            log_probability: self.tokens.iter().fold(0.0, |sum, log_p| sum + log_p),
            tokens: self.tokens,
            alternatives: self.alternatives,
        }
    }
}
