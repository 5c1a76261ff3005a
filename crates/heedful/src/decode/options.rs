//! The options of a search and their checks.

use std::sync::Arc;

use heedful_tensor::cpu::threads::thread_count;
use heedful_tensor::{Params, Precision};

use crate::data::shortlist::Shortlist;
use crate::layers::HeadName;
use crate::models::default_precision;

/// The options of a search. The defaults are the paper's: beam size 4, α 0.6, at most 50 tokens more than
/// the source.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchOptions {
    /// Beam size: hypotheses kept at every step; 1 is greedy search.
    pub beam: usize,
    /// α of the length penalty: a hypothesis of `n` tokens (`<eos>` included) has the score
    /// `log p / ((5 + n) / 6)^α`. With 0 the score is the log-probability, which favours short outputs.
    pub length_penalty: f64,
    /// Maximum length of an output.
    pub max_length: MaxLength,
    /// Minimum length: `<eos>` is not allowed before this many tokens.
    pub min_length: usize,
    /// Number of outputs for each source, best first.
    pub n_best: usize,
    /// Sample outputs instead of searching for the best.
    pub sampling: Option<Sampling>,
    /// Whether the outputs' scores are used.
    pub scores: OutputScores,
    /// No n-gram of this many tokens occurs twice in an output.
    pub no_repeat_ngram: Option<usize>,
    /// Restricts the output softmax to the target tokens that a source may need; all others have probability
    /// 0. Only for a single Transformer.
    pub shortlist: Option<Arc<Shortlist>>,
    /// Attention heads to prune: their output is set to zero. Only for a single Transformer.
    pub without_heads: Vec<HeadName>,
    /// Type of the matrix products; `None` selects int8 if the model is stored in int8 and runs on a CPU,
    /// else bf16.
    pub compute: Option<Precision>,
    /// Maximum of source tokens × hypotheses in a batch; `None` for a value that suits the device. Affects
    /// only speed and memory.
    pub batch_tokens: Option<usize>,
}

/// The maximum number of tokens of an output, without `<eos>`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MaxLength {
    /// `factor · source length + plus`, rounded down.
    Relative {
        /// Factor on the length of the source.
        factor: f64,
        /// Tokens added to it.
        plus: usize,
    },
    /// The same for all sources.
    Absolute(usize),
}

/// Whether the scores of outputs are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutputScores {
    /// Outputs have scores.
    #[default]
    Used,
    /// Greedy search (a beam of 1) need not compute them, which is faster on a CPU: `score` and
    /// `log_probability` of its outputs are NaN. A larger beam and sampling compute them anyway.
    Unused,
}

/// How tokens are sampled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// Logits are divided by this: below 1 the distribution is sharper, above 1 flatter.
    pub temperature: f32,
    /// Top-k: only this many of the most probable tokens.
    pub top_k: Option<usize>,
    /// Top-p (nucleus): only the most probable tokens whose probabilities sum to this.
    pub top_p: Option<f32>,
    /// The random numbers are a function of the seed, the source and the number of the output: the same
    /// source has the same outputs in any batch and any order.
    pub seed: u64,
}

/// Maximum number of hypotheses, and of outputs, of a source. Each has its own row of logits and KV cache, so
/// the limit keeps a caller from exhausting the memory.
const MAX_HYPOTHESES: usize = 1000;

/// Maximum number of tokens of all hypotheses of a source together: each has an entry in the KV cache.
const MAX_TOKENS: usize = 1 << 20;

/// Options that are invalid or contradict each other.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// An option is 0 but must be at least 1.
    #[error("{what} is 0: set it to at least 1")]
    Zero {
        /// The option.
        what: &'static str,
    },
    /// There are more outputs than hypotheses.
    #[error("the beam size {beam} is too small for {n_best} outputs: use a beam of at least {n_best}")]
    NarrowBeam {
        /// Outputs.
        n_best: usize,
        /// Hypotheses.
        beam: usize,
    },
    /// More hypotheses than the limit.
    #[error("{what} is {value}: it may be at most {MAX_HYPOTHESES}")]
    TooMany {
        /// The option.
        what: &'static str,
        /// Its value.
        value: usize,
    },
    /// All hypotheses together may become too long.
    #[error(
        "{hypotheses} hypotheses of up to {length} tokens are more than {MAX_TOKENS} tokens in all: set the maximum length \
         to at most {}",
        MAX_TOKENS / hypotheses
    )]
    TooLong {
        /// Hypotheses of a source.
        hypotheses: usize,
        /// The maximum length.
        length: usize,
    },
    /// The minimum length is above the maximum.
    #[error("the minimum length {min} is above the maximum length {max}")]
    NoLength {
        /// The minimum length.
        min: usize,
        /// The maximum length.
        max: usize,
    },
    /// A number is outside its range.
    #[error("{what} is {value}: it must be {range}")]
    OutOfRange {
        /// The option.
        what: &'static str,
        /// Its value.
        value: String,
        /// The range.
        range: &'static str,
    },
}

impl crate::error::Cause for OptionsError {}

impl Default for SearchOptions {
    fn default() -> SearchOptions {
        SearchOptions {
            beam: 4,
            length_penalty: 0.6,
            max_length: MaxLength::Relative { factor: 1.0, plus: 50 },
            min_length: 0,
            n_best: 1,
            sampling: None,
            scores: OutputScores::Used,
            no_repeat_ngram: None,
            shortlist: None,
            without_heads: Vec::new(),
            compute: None,
            batch_tokens: None,
        }
    }
}

impl Default for Sampling {
    fn default() -> Sampling {
        Sampling { temperature: 1.0, top_k: None, top_p: None, seed: 1 }
    }
}

/// Minimum and maximum batch size in tokens for each thread of a CPU: a larger batch shares each read of the
/// weights among more rows, but its KV cache exceeds the L2 cache.
const CPU_BATCH_TOKENS: [usize; 2] = [1 << 10, 1 << 12];
/// Parameters of a model for each of these tokens.
const CPU_PARAMETERS_PER_TOKEN: usize = 1 << 13;

/// Minimum and maximum batch size in tokens on a GPU.
const GPU_BATCH_TOKENS: [usize; 2] = [1 << 10, 1 << 18];
/// GPU memory to reserve for each token: its KV cache, and two rows of logits over the vocabulary.
const GPU_BYTES_PER_TOKEN: usize = 1 << 18;
const GPU_BYTES_PER_LOGIT: usize = 8;

fn cpu_capacity(parameters: usize, threads: usize) -> usize {
    let [min, max] = CPU_BATCH_TOKENS;
    threads * (parameters / CPU_PARAMETERS_PER_TOKEN).clamp(min, max)
}

fn gpu_capacity(memory: usize, vocabulary: usize) -> usize {
    let [min, max] = GPU_BATCH_TOKENS;
    let bytes = GPU_BYTES_PER_TOKEN.max(vocabulary.saturating_mul(GPU_BYTES_PER_LOGIT));
    (memory / bytes).clamp(min, max)
}

impl SearchOptions {
    /// [`SearchOptions::batch_tokens`] for a model with these parameters.
    pub(super) fn capacity(&self, model: &Params) -> usize {
        self.batch_tokens.unwrap_or_else(|| {
            let memory = model.device().memory();
            match memory {
                None => cpu_capacity(model.registered_elements(), thread_count()),
                Some(memory) => gpu_capacity(memory, model.widest()),
            }
        })
    }

    /// Type of the matrix products of a search with these models.
    pub(crate) fn precision<'p>(&self, models: impl IntoIterator<Item = &'p Params>) -> Precision {
        self.compute.unwrap_or_else(|| default_precision(models))
    }

    /// These options for one of several searches that share the memory of the model's device.
    pub fn sharing_device(mut self, searches: usize, model: &Params) -> SearchOptions {
        if model.device().has_own_memory() && self.batch_tokens.is_none() {
            let share = self.capacity(model) / searches.max(1);
            self.batch_tokens = Some(share.max(GPU_BATCH_TOKENS[0]));
        }
        self
    }

    /// Checks that these options are valid.
    pub fn check(&self) -> Result<(), OptionsError> {
        for (what, value) in [
            ("the beam", self.beam),
            ("the number of outputs", self.n_best),
            ("the n-gram that must not repeat", self.no_repeat_ngram.unwrap_or(1)),
            ("the number of tokens that are decoded together", self.batch_tokens.unwrap_or(1)),
        ] {
            if value == 0 {
                return Err(OptionsError::Zero { what });
            }
        }
        for (what, value) in [("the beam", self.beam), ("the number of outputs", self.n_best)] {
            if value > MAX_HYPOTHESES {
                return Err(OptionsError::TooMany { what, value });
            }
        }
        match self.max_length {
            MaxLength::Absolute(0) => return Err(OptionsError::Zero { what: "the maximum length" }),
            MaxLength::Absolute(max) if max < self.min_length => {
                return Err(OptionsError::NoLength { min: self.min_length, max });
            }
            MaxLength::Absolute(length) | MaxLength::Relative { plus: length, .. }
                if length.saturating_mul(self.rows()) > MAX_TOKENS =>
            {
                return Err(OptionsError::TooLong { hypotheses: self.rows(), length });
            }
            MaxLength::Absolute(_) | MaxLength::Relative { .. } => {}
        }
        if self.sampling.is_none() && self.n_best > self.beam {
            return Err(OptionsError::NarrowBeam { n_best: self.n_best, beam: self.beam });
        }
        in_range(
            "the length penalty",
            self.length_penalty,
            self.length_penalty.is_finite(),
            "a finite number",
        )?;
        if let MaxLength::Relative { factor, .. } = self.max_length {
            let fits = factor.is_finite() && factor >= 0.0;
            in_range("the length factor", factor, fits, "a finite number of at least 0")?;
        }
        if let Some(Sampling { temperature, top_k, top_p, .. }) = self.sampling {
            let fits = temperature.is_finite() && temperature > 0.0;
            in_range("the temperature", f64::from(temperature), fits, "a finite number above 0")?;
            if top_k == Some(0) {
                return Err(OptionsError::Zero { what: "top-k" });
            }
            let p = top_p.unwrap_or(1.0);
            in_range("top-p", f64::from(p), p > 0.0 && p <= 1.0, "above 0 and at most 1")?;
        }
        Ok(())
    }

    /// Maximum number of tokens of an output, for a source of this length and a model with this maximum
    /// target length.
    pub(super) fn limit(&self, source: usize, longest_target: Option<usize>) -> usize {
        let requested = match self.max_length {
            MaxLength::Relative { factor, plus } => ((factor * source as f64) as usize).saturating_add(plus),
            MaxLength::Absolute(length) => length,
        };
        // To predict <eos> the model reads <bos> and all tokens.
        longest_target.map_or(requested, |longest| requested.min(longest.saturating_sub(1)))
    }

    /// The length penalty `((5 + n) / 6)^α`: the divisor of the log-probability of `n` tokens.
    pub fn penalty(&self, tokens: usize) -> f64 {
        ((5.0 + tokens as f64) / 6.0).powf(self.length_penalty)
    }

    /// Whether outputs have scores.
    pub(super) fn has_scores(&self) -> bool {
        self.scores == OutputScores::Used || self.beam > 1 || self.sampling.is_some()
    }

    /// Maximum number of rows of a sentence.
    pub(super) fn rows(&self) -> usize {
        if self.sampling.is_some() { self.n_best } else { self.beam }
    }
}

fn in_range(what: &'static str, value: f64, fits: bool, range: &'static str) -> Result<(), OptionsError> {
    if fits { Ok(()) } else { Err(OptionsError::OutOfRange { what, value: value.to_string(), range }) }
}

#[cfg(test)]
mod tests {
    use heedful_tensor::Init;

    use super::*;

    #[test]
    fn the_batch_size_of_a_cpu_follows_from_the_model_and_the_threads() {
        assert_eq!(cpu_capacity(7_500_000, 1), 1024);
        assert_eq!(cpu_capacity(16_000_000, 2), 2 * 1953);
        assert_eq!(cpu_capacity(60_000_000, 16), 65_536);
    }

    #[test]
    fn the_batch_size_of_a_gpu_follows_from_its_memory() {
        let gib = 1 << 30;
        assert_eq!(gpu_capacity(139 * gib, 32_000), 1 << 18);
        assert_eq!(gpu_capacity(8 * gib, 32_000), 1 << 15);
        assert_eq!(gpu_capacity(8 * gib, 250_000), 8 * gib / 2_000_000);
        assert_eq!(gpu_capacity(0, usize::MAX), 1 << 10);
        let model = Params::new(1);
        model.add("embedding", 250_000, 4, Init::Constant(0.0));
        assert_eq!(model.widest(), 250_000);
        assert_eq!(SearchOptions::default().sharing_device(6, &model).batch_tokens, None);
        let chosen = SearchOptions { batch_tokens: Some(7), ..SearchOptions::default() };
        assert_eq!(chosen.sharing_device(6, &model).batch_tokens, Some(7));
    }

    #[test]
    fn contradictions_are_named() {
        let message = |options: SearchOptions| options.check().expect_err("a contradiction").to_string();
        let good = SearchOptions::default();
        assert_eq!(good.check(), Ok(()));
        assert!(message(SearchOptions { beam: 0, ..good.clone() }).starts_with("the beam is 0"));
        assert!(message(SearchOptions { n_best: 9, ..good.clone() }).contains("a beam of at least 9"));
        assert!(message(SearchOptions { beam: 1001, ..good.clone() }).contains("at most 1000"));
        let many = SearchOptions { n_best: 1_000_000, sampling: Some(Sampling::default()), ..good.clone() };
        assert!(message(many).starts_with("the number of outputs is 1000000"));
        assert!(
            message(SearchOptions { batch_tokens: Some(0), ..good.clone() })
                .contains("decoded together is 0")
        );
        let absolute =
            |max| SearchOptions { max_length: MaxLength::Absolute(max), min_length: 3, ..good.clone() };
        assert!(message(absolute(0)).starts_with("the maximum length is 0"));
        assert_eq!(message(absolute(2)), "the minimum length 3 is above the maximum length 2");
        assert_eq!(absolute(3).check(), Ok(()));
        let error = message(absolute(1_000_000_000_000));
        assert!(error.starts_with("4 hypotheses of up to 1000000000000 tokens are more than"), "{error}");
        assert!(error.ends_with("set the maximum length to at most 262144"), "{error}");
        let nan = SearchOptions { length_penalty: f64::NAN, ..good.clone() };
        assert!(message(nan).starts_with("the length penalty is NaN"));
        for sampling in [
            Sampling { temperature: 0.0, ..Sampling::default() },
            Sampling { top_k: Some(0), ..Sampling::default() },
            Sampling { top_p: Some(1.5), ..Sampling::default() },
        ] {
            assert!(SearchOptions { sampling: Some(sampling), ..good.clone() }.check().is_err());
        }
        let many_samples = SearchOptions { n_best: 9, sampling: Some(Sampling::default()), ..good };
        assert_eq!(many_samples.check(), Ok(()));
    }

    #[test]
    fn the_limit_depends_on_the_source_and_on_the_model() {
        let options = SearchOptions::default();
        assert_eq!(options.limit(7, None), 57);
        assert_eq!(options.limit(7, Some(20)), 19);
        let half = MaxLength::Relative { factor: 1.5, plus: 1 };
        assert_eq!(SearchOptions { max_length: half, ..options.clone() }.limit(5, None), 8);
        assert_eq!(SearchOptions { max_length: MaxLength::Absolute(3), ..options }.limit(5, None), 3);
    }
}
