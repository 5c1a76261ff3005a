//! Search over a complete list of sources.

use heedful_tensor::Precision;

use super::DecodeError;
use super::ensemble::Ensemble;
use super::hypothesis::Hypothesis;
use super::input::{SearchInput, SentenceId};
use super::limits::Limits;
use super::options::{MaxLength, OutputScores, SearchOptions};
use super::scheduler::Scheduler;
use crate::models::Generate;

/// For each source its `n_best` hypotheses, best first. The result for a source is bit-identical for any
/// other sources, any order, any `batch_tokens` and any number of threads. Equal sources are decoded once.
pub fn search(
    model: &dyn Generate,
    sources: &[Vec<u32>],
    options: &SearchOptions,
) -> Result<Vec<Vec<Hypothesis>>, DecodeError> {
    let inputs: Vec<SearchInput> = sources.iter().cloned().map(SearchInput::from).collect();
    search_by(&model.into(), &inputs, options, &Limits::default())
}

/// As [`search`], with several models, constraints and limits.
pub fn search_by(
    ensemble: &Ensemble<'_>,
    inputs: &[SearchInput],
    options: &SearchOptions,
    limits: &Limits,
) -> Result<Vec<Vec<Hypothesis>>, DecodeError> {
    options.check()?;
    if inputs.is_empty() {
        return Ok(Vec::new());
    }
    let mut scheduler = Scheduler::new(ensemble.clone(), options)?;
    for input in inputs {
        scheduler.push(input.clone());
    }
    let mut found = vec![Vec::new(); inputs.len()];
    loop {
        while let Some((SentenceId(number), hypotheses)) = scheduler.poll() {
            found[number] = hypotheses?;
        }
        if scheduler.is_idle() {
            return Ok(found);
        }
        match limits.tokens {
            // Every step may exceed the budget.
            Some(_) => scheduler.step()?,
            None => scheduler.run()?,
        }
        limits.check(scheduler.generated())?;
    }
}

/// The options of greedy decoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GreedyOptions {
    /// The maximum length of an output is the length of its source plus this many tokens.
    pub beyond_source: usize,
    /// Type of the matrix products.
    pub compute: Precision,
}

/// The outputs of beam search of size 1 for `sources`, in their order, without `<bos>` and `<eos>`:
/// `y_i+1 = argmax p(y | y_1 … y_i, x)`, until `<eos>` or the maximum length.
pub fn greedy(
    model: &dyn Generate,
    sources: &[Vec<u32>],
    options: GreedyOptions,
) -> Result<Vec<Vec<u32>>, DecodeError> {
    let options = SearchOptions {
        beam: 1,
        max_length: MaxLength::Relative { factor: 1.0, plus: options.beyond_source },
        compute: Some(options.compute),
        scores: OutputScores::Unused,
        ..SearchOptions::default()
    };
    let found = search(model, sources, &options)?;
    let best = |hypotheses: Vec<Hypothesis>| hypotheses.into_iter().next().map(|best| best.tokens);
    Ok(found.into_iter().map(|hypotheses| best(hypotheses).unwrap_or_default()).collect())
}
