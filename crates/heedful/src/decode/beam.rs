//! Beam search.
//!
//! ```text
//! expand    every open hypothesis with its most probable next tokens
//! score     log p(y) = Σ log p(y_i | y_1 … y_i−1, x)
//! prune     the `beam` best of all expansions are kept
//! finish    those that end with <eos> are finished, with the score log p / ((5 + n) / 6)^α; the rest stay open
//! ```
//!
//! A hypothesis of log-probability `l` can reach at most the score `l / largest penalty of any length`,
//! because `log p` of a token is never above 0. When that bound is no better than the worst of the `n_best`
//! finished hypotheses, for every open one, the search ends.
//!
//! Constraints change which tokens are expanded and which expansions are kept: see
//! [`constraints`](super::constraints).
//!
//! At the maximum length `<eos>` is the only next token, so every finished hypothesis is complete and has a
//! log-probability.

use std::cmp::Ordering;
use std::sync::Arc;

use heedful_tensor::ops::Normalizers;

use super::constraints::{Constrained, Constraints, Phrases, allocate};
use super::hypothesis::{Hypothesis, OpenHypothesis, Tree};
use super::options::SearchOptions;
use super::strategy::{Continuation, ExtraScores, ScoreRequest, Scores, Strategy};
use crate::data::SpecialTokens;

/// The beam search of one sentence.
pub(super) struct Beam {
    options: Arc<SearchOptions>,
    special: SpecialTokens,
    /// Maximum number of tokens, without `<eos>`.
    limit: usize,
    prefix: Vec<u32>,
    phrases: Phrases,
    tree: Tree,
    open: Vec<OpenHypothesis>,
    /// The open hypotheses of the previous step; their memory is reused.
    parents: Vec<OpenHypothesis>,
    rows: Vec<Continuation>,
    /// The finished hypotheses, best first, at most `n_best`.
    finished: Vec<Hypothesis>,
    expansions: Vec<Expansion>,
    /// Tokens whose scores are needed in addition to the top k (they may be among them).
    extra_tokens: Vec<u32>,
}

#[derive(Clone, Copy)]
struct Expansion {
    row: usize,
    token: u32,
    log_probability: f64,
    /// Phrase tokens that it still lacks.
    missing: usize,
}

impl Expansion {
    /// By descending probability.
    fn order(&self, other: &Expansion) -> Ordering {
        let by_score = other.log_probability.total_cmp(&self.log_probability);
        by_score.then(self.row.cmp(&other.row)).then(self.token.cmp(&other.token))
    }
}

/// Inserts an expansion into the sorted list of the `beam` best so far. Returns false if the list is full and
/// the expansion is less probable than all of it: then no later, less probable expansion can enter either.
fn keep_best(best: &mut Vec<Expansion>, expansion: Expansion, beam: usize) -> bool {
    if best.len() == beam
        && let Some(worst) = best.last()
    {
        if expansion.order(worst).is_gt() {
            // With equal sums, a later expansion may still rank higher because of its token.
            return expansion.log_probability >= worst.log_probability;
        }
        best.pop();
    }
    let rank = best.partition_point(|other| other.order(&expansion).is_lt());
    best.insert(rank, expansion);
    true
}

impl Constrained for Expansion {
    fn missing(&self) -> usize {
        self.missing
    }
}

impl Beam {
    pub(super) fn new(
        options: Arc<SearchOptions>,
        special: SpecialTokens,
        constraints: &Constraints,
        limit: usize,
    ) -> Beam {
        let mut beam = Beam {
            options,
            rows: vec![Continuation { parent: None, token: special.bos }],
            special,
            limit,
            prefix: constraints.prefix.clone(),
            phrases: Phrases::new(&constraints.phrases),
            tree: Tree::default(),
            open: Vec::new(),
            parents: Vec::new(),
            finished: Vec::new(),
            expansions: Vec::new(),
            extra_tokens: Vec::new(),
        };
        let first = beam.with_bans(OpenHypothesis::new(beam.phrases.start()));
        beam.open.push(first);
        beam.gather_extra_tokens();
        beam
    }

    fn expand(&mut self, scores: &Scores<'_>) {
        self.expansions.clear();
        for (row, open) in self.open.iter().enumerate() {
            let expansion = |(token, log_p): (u32, f64)| Expansion {
                row,
                token,
                log_probability: open.log_probability + log_p,
                missing: self.phrases.missing_after(&open.progress, token),
            };
            if let Some(&token) = self.prefix.get(open.length) {
                self.expansions.push(expansion((token, scores.log_probability(row, token))));
                continue;
            }
            if open.length == self.limit {
                continue;
            }
            let first = self.expansions.len();
            let allowed =
                scores.best(row).filter(|&(token, log_p)| log_p > f64::NEG_INFINITY && open.allows(token));
            let mut allowed = allowed.take(self.options.beam).map(expansion);
            if self.phrases.is_empty() {
                // Best first: after the first expansion that does not enter the beam, no other does.
                allowed.all(|expansion| keep_best(&mut self.expansions, expansion, self.options.beam));
                continue;
            }
            self.expansions.extend(allowed);
            for token in self.phrases.next_tokens(&open.progress) {
                let log_p = scores.log_probability(row, token);
                let is_new = self.expansions[first..].iter().all(|other| other.token != token);
                if is_new && log_p > f64::NEG_INFINITY {
                    self.expansions.push(expansion((token, log_p)));
                }
            }
        }
        if !self.phrases.is_empty() {
            self.drop_infeasible();
        }
        if self.expansions.is_empty() {
            self.end_all(scores);
        }
    }

    /// Drops expansions that cannot meet all phrases within the maximum length, unless none can.
    fn drop_infeasible(&mut self) {
        let length = |expansion: &Expansion| self.open[expansion.row].length + 1;
        let is_possible = |expansion: &Expansion| {
            expansion.token == self.special.eos || length(expansion) + expansion.missing <= self.limit
        };
        if self.expansions.iter().any(is_possible) {
            self.expansions.retain(is_possible);
        }
    }

    /// Ends all hypotheses, because the maximum length is reached or no token is allowed. A hypothesis that
    /// lacks a phrase is ended only if nothing is finished yet and no other lacks less.
    fn end_all(&mut self, scores: &Scores<'_>) {
        let token = self.special.eos;
        let missing = |open: &OpenHypothesis| self.phrases.missing(&open.progress);
        let least =
            if self.finished.is_empty() { self.open.iter().map(missing).min().unwrap_or(0) } else { 0 };
        for (row, open) in self.open.iter().enumerate().filter(|(_, open)| missing(open) <= least) {
            let log_probability = open.log_probability + scores.log_probability(row, token);
            self.expansions.push(Expansion { row, token, log_probability, missing: least });
        }
    }

    fn prune(&mut self) {
        self.expansions.sort_unstable_by(Expansion::order);
        if self.phrases.is_empty() {
            self.expansions.truncate(self.options.beam);
        } else {
            allocate(&mut self.expansions, self.options.beam);
        }
    }

    fn finish(&mut self) {
        std::mem::swap(&mut self.parents, &mut self.open);
        self.open.clear();
        self.rows.clear();
        for index in 0..self.expansions.len() {
            let Expansion { row, token, log_probability, .. } = self.expansions[index];
            let parent = &self.parents[row];
            if token == self.special.eos {
                let (last, tokens) = (parent.last, parent.length + 1);
                self.keep(last, log_probability / self.options.penalty(tokens), log_probability);
            } else {
                let last = Some(self.tree.add(parent.last, token));
                let progress = self.phrases.after(&parent.progress, token);
                let length = parent.length + 1;
                let open = OpenHypothesis { last, length, log_probability, banned: Vec::new(), progress };
                let open = self.with_bans(open);
                self.open.push(open);
                self.rows.push(Continuation { parent: Some(row), token });
            }
        }
        if self.is_done() {
            self.open.clear();
            self.rows.clear();
        }
        self.gather_extra_tokens();
    }

    fn gather_extra_tokens(&mut self) {
        self.extra_tokens.clear();
        self.extra_tokens.push(self.special.eos);
        for open in &self.open {
            match self.prefix.get(open.length) {
                Some(&forced) => self.extra_tokens.push(forced),
                None => self.extra_tokens.extend(self.phrases.next_tokens(&open.progress)),
            }
        }
        self.extra_tokens.sort_unstable();
        self.extra_tokens.dedup();
    }

    /// Keeps a finished hypothesis if it is one of the `n_best`. With equal scores, the one that finished
    /// first ranks higher.
    fn keep(&mut self, last: Option<usize>, score: f64, log_probability: f64) {
        let (score, log_probability) =
            if self.options.has_scores() { (score, log_probability) } else { (f64::NAN, f64::NAN) };
        let rank = self.finished.partition_point(|finished| finished.score >= score);
        if rank < self.options.n_best {
            self.finished.truncate(self.options.n_best - 1);
            self.finished.insert(rank, Hypothesis { tokens: self.tree.tokens(last), score, log_probability });
        }
    }

    /// Whether no open hypothesis can still become one of the `n_best`.
    fn is_done(&self) -> bool {
        let Some(worst) = self.finished.get(self.options.n_best - 1) else { return false };
        // All open hypotheses have the same length.
        let Some(OpenHypothesis { length, .. }) = self.open.first() else { return true };
        // The penalty is monotonic in the length (the sign of α decides the direction): its maximum is at
        // one of the ends.
        let [next, last] = [length + 1, self.limit + 1].map(|tokens| self.options.penalty(tokens));
        let largest = next.max(last);
        self.open.iter().all(|open| open.log_probability / largest <= worst.score)
    }

    fn with_bans(&self, mut open: OpenHypothesis) -> OpenHypothesis {
        if let Some(n) = self.options.no_repeat_ngram {
            open.banned = self.tree.repeats(open.last, n);
        }
        if !self.special.suppressed.is_empty() {
            open.banned.extend_from_slice(&self.special.suppressed);
            open.banned.sort_unstable();
            open.banned.dedup();
        }
        let is_early = open.length < self.options.min_length || self.phrases.missing(&open.progress) > 0;
        if is_early && let Err(index) = open.banned.binary_search(&self.special.eos) {
            open.banned.insert(index, self.special.eos);
        }
        open
    }
}

impl Strategy for Beam {
    type Output = Vec<Hypothesis>;

    fn rows(&self) -> &[Continuation] {
        &self.rows
    }

    fn score_request(&self) -> ScoreRequest<'_> {
        let banned = self.open.iter().map(|open| open.banned.len()).max().unwrap_or(0);
        ScoreRequest {
            top_k: self.options.beam + banned,
            extra: ExtraScores::Tokens(&self.extra_tokens),
            normalizers: match self.options.has_scores() {
                true => Normalizers::Computed,
                false => Normalizers::Skipped,
            },
        }
    }

    fn advance(&mut self, scores: &Scores<'_>) {
        self.expand(scores);
        self.prune();
        self.finish();
    }

    fn partial_output(&self) -> Option<Vec<u32>> {
        let better =
            |a: &&OpenHypothesis, b: &&OpenHypothesis| a.log_probability.total_cmp(&b.log_probability);
        self.open.iter().max_by(better).map(|best| self.tree.tokens(best.last))
    }

    fn into_output(self: Box<Self>) -> Vec<Hypothesis> {
        self.finished
    }
}
