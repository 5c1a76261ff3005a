//! The options of a search and their checks.

use std::sync::Arc;

use heedful_tensor::{Params, Precision};

use crate::data::shortlist::Shortlist;
use crate::layers::HeadName;
use crate::models::default_precision;

/// The options of a search. The defaults are the paper's: beam size 4, α 0.6, at most 50 tokens more than the source.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchOptions {
    /// Beam size: hypotheses kept at every step; 1 is greedy search.
    pub beam: usize,
    /// α of the length penalty: a hypothesis of `n` tokens (its `<eos>` counts) has the score
    /// `log p / ((5 + n) / 6)^α`. 0 leaves the bare log-probability, which favours short outputs.
    pub length_penalty: f64,
    /// Maximum length of an output.
    pub max_length: MaxLength,
    /// Minimum length: `<eos>` is not allowed before this many tokens.
    pub min_length: usize,
    /// Number of outputs for each source, best first.
    pub n_best: usize,
    /// Sample outputs instead of searching for the best.
    pub sampling: Option<Sampling>,
    /// No n-gram of this many tokens occurs twice in an output.
    pub no_repeat_ngram: Option<usize>,
    /// Only the target tokens that a source may need have scores: the others have the probability 0. For one Transformer.
    pub shortlist: Option<Arc<Shortlist>>,
    /// Heads whose output is set to zero, to see what they are for. For one Transformer.
    pub without_heads: Vec<HeadName>,
    /// Type of the matrix products; `None` for int8 if the model was stored in int8 and a CPU computes, else bf16.
    pub compute: Option<Precision>,
    /// Maximum of source tokens × hypotheses that are decoded together; `None` for as many as suit the device. Only speed and
    /// memory depend on it.
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

/// How tokens are sampled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// Logits are divided by this: below 1 the distribution is sharper, above 1 flatter.
    pub temperature: f32,
    /// Top-k: only this many of the most probable tokens.
    pub top_k: Option<usize>,
    /// Top-p (nucleus): only the most probable tokens whose probabilities sum to this.
    pub top_p: Option<f32>,
    /// The random numbers are a function of the seed, the source and the number of the output: the same source has the
    /// same outputs in any batch and any order.
    pub seed: u64,
}

/// The most hypotheses, and outputs, of a source: every one has a row of logits and a past of its own, so nobody who can
/// choose their number decides how much memory is taken.
const MOST_HYPOTHESES: usize = 1000;

/// The most tokens of all hypotheses of a source together, which keep keys and values for each.
const MOST_TOKENS: usize = 1 << 20;

/// Options that are invalid or contradict each other.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// A number is 0 that must be at least 1.
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
    /// More hypotheses than any search may have.
    #[error("{what} is {value}: it may be at most {MOST_HYPOTHESES}")]
    TooMany {
        /// The option.
        what: &'static str,
        /// Its value.
        value: usize,
    },
    /// All hypotheses together may become too long.
    #[error(
        "{hypotheses} hypotheses of up to {length} tokens are more than {MOST_TOKENS} tokens in all: set the maximum length \
         to at most {}",
        MOST_TOKENS / hypotheses
    )]
    TooLong {
        /// How many hypotheses a source has.
        hypotheses: usize,
        /// The maximum length.
        length: usize,
    },
    /// No output can be long enough.
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

/// Tokens that a CPU decodes together.
const BATCH_TOKENS: usize = 8192;

/// Tokens that a GPU decodes together: at least, and at most.
const GPU_BATCH_TOKENS: [usize; 2] = [1 << 10, 1 << 18];
/// Bytes that it must have for each of them: keys and values, and two rows of scores as wide as the vocabulary.
const GPU_BYTES_OF_A_TOKEN: usize = 1 << 18;
const GPU_BYTES_OF_A_SCORE: usize = 8;

fn gpu_capacity(memory: usize, vocabulary: usize) -> usize {
    let [least, most] = GPU_BATCH_TOKENS;
    let bytes = GPU_BYTES_OF_A_TOKEN.max(vocabulary.saturating_mul(GPU_BYTES_OF_A_SCORE));
    (memory / bytes).clamp(least, most)
}

impl SearchOptions {
    /// [`SearchOptions::batch_tokens`] for a model with these parameters.
    pub(super) fn capacity(&self, model: &Params) -> usize {
        self.batch_tokens.unwrap_or_else(|| {
            let memory = model.device().memory();
            memory.map_or(BATCH_TOKENS, |memory| gpu_capacity(memory, model.widest()))
        })
    }

    /// Type of the matrix products of a search by these models together.
    pub(crate) fn precision<'p>(&self, models: impl IntoIterator<Item = &'p Params>) -> Precision {
        self.compute.unwrap_or_else(|| default_precision(models))
    }

    /// These options for one of several searches that share the memory of the device which has this model.
    pub fn one_of(mut self, searches: usize, model: &Params) -> SearchOptions {
        if model.device().has_own_memory() && self.batch_tokens.is_none() {
            let share = self.capacity(model) / searches.max(1);
            self.batch_tokens = Some(share.max(GPU_BATCH_TOKENS[0]));
        }
        self
    }

    /// Whether these options are valid.
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
            if value > MOST_HYPOTHESES {
                return Err(OptionsError::TooMany { what, value });
            }
        }
        match self.max_length {
            MaxLength::Absolute(0) => return Err(OptionsError::Zero { what: "the maximum length" }),
            MaxLength::Absolute(max) if max < self.min_length => {
                return Err(OptionsError::NoLength { min: self.min_length, max });
            }
            MaxLength::Absolute(length) | MaxLength::Relative { plus: length, .. }
                if length.saturating_mul(self.rows()) > MOST_TOKENS =>
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

    /// Maximum number of tokens of an output, for a source of this length and a model with this limit.
    pub(super) fn limit(&self, source: usize, longest_target: Option<usize>) -> usize {
        let asked = match self.max_length {
            MaxLength::Relative { factor, plus } => ((factor * source as f64) as usize).saturating_add(plus),
            MaxLength::Absolute(length) => length,
        };
        // The model reads <bos> and all tokens before it predicts <eos>.
        longest_target.map_or(asked, |longest| asked.min(longest.saturating_sub(1)))
    }

    /// The length penalty `((5 + n) / 6)^α`, by which the log-probability of `n` tokens is divided.
    pub fn penalty(&self, tokens: usize) -> f64 {
        ((5.0 + tokens as f64) / 6.0).powf(self.length_penalty)
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
    fn a_gpu_decodes_as_much_at_a_time_as_its_memory_allows() {
        let gib = 1 << 30;
        assert_eq!(gpu_capacity(139 * gib, 32_000), 1 << 18);
        assert_eq!(gpu_capacity(8 * gib, 32_000), 1 << 15);
        assert_eq!(gpu_capacity(8 * gib, 250_000), 8 * gib / 2_000_000);
        assert_eq!(gpu_capacity(0, usize::MAX), 1 << 10);
        let model = Params::new(1);
        model.add("embedding", 250_000, 4, Init::Constant(0.0));
        assert_eq!(model.widest(), 250_000);
        assert_eq!(SearchOptions::default().one_of(6, &model).batch_tokens, None);
        let chosen = SearchOptions { batch_tokens: Some(7), ..SearchOptions::default() };
        assert_eq!(chosen.one_of(6, &model).batch_tokens, Some(7));
    }

    #[test]
    fn contradictions_are_named() {
        let complaint = |options: SearchOptions| options.check().expect_err("a contradiction").to_string();
        let good = SearchOptions::default();
        assert_eq!(good.check(), Ok(()));
        assert!(complaint(SearchOptions { beam: 0, ..good.clone() }).starts_with("the beam is 0"));
        assert!(complaint(SearchOptions { n_best: 9, ..good.clone() }).contains("a beam of at least 9"));
        assert!(complaint(SearchOptions { beam: 1001, ..good.clone() }).contains("at most 1000"));
        let many = SearchOptions { n_best: 1_000_000, sampling: Some(Sampling::default()), ..good.clone() };
        assert!(complaint(many).starts_with("the number of outputs is 1000000"));
        assert!(
            complaint(SearchOptions { batch_tokens: Some(0), ..good.clone() })
                .contains("decoded together is 0")
        );
        let absolute =
            |max| SearchOptions { max_length: MaxLength::Absolute(max), min_length: 3, ..good.clone() };
        assert!(complaint(absolute(0)).starts_with("the maximum length is 0"));
        assert_eq!(complaint(absolute(2)), "the minimum length 3 is above the maximum length 2");
        assert_eq!(absolute(3).check(), Ok(()));
        let error = complaint(absolute(1_000_000_000_000));
        assert!(error.starts_with("4 hypotheses of up to 1000000000000 tokens are more than"), "{error}");
        assert!(error.ends_with("set the maximum length to at most 262144"), "{error}");
        let nan = SearchOptions { length_penalty: f64::NAN, ..good.clone() };
        assert!(complaint(nan).starts_with("the length penalty is NaN"));
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
