//! `POST /v1/generate`.

use heedful::decode::{DecodeError, Scheduler};
use heedful::explain::generated_tokens;
use heedful::{ExplainedToken, Explanation, Generator, Hypothesis, Sampling, SearchOptions, WeightForm};
use serde::{Deserialize, Serialize};

use super::{MAX_BEAM, at_most, explaining};
use crate::error::ApiError;
use crate::model::Engine;
use crate::session::{Session, Timings};

/// The default and the maximum of `tokens`.
const TOKENS: usize = 100;
const MAX_TOKENS: usize = 1000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GenerateRequest {
    #[serde(default)]
    prompt: String,
    model: Option<String>,
    tokens: Option<usize>,
    n_best: Option<usize>,
    temperature: Option<f32>,
    top_k: Option<usize>,
    top_p: Option<f32>,
    seed: Option<u64>,
    beam: Option<usize>,
    no_repeat_ngram: Option<usize>,
    #[serde(default)]
    attention: WeightForm,
    #[serde(default)]
    raw_scores: bool,
    alternatives: Option<usize>,
    /// Without effect.
    #[serde(default, rename = "stream")]
    _stream: bool,
}

#[derive(Serialize)]
pub(crate) struct GenerateResponse {
    model: String,
    results: Vec<GeneratedText>,
    timings: Timings,
}

#[derive(Serialize)]
struct GeneratedText {
    text: String,
    score: f64,
    log_probability: f64,
    tokens: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    explanation: Option<Explanation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pieces: Option<Vec<ExplainedToken>>,
}

pub(crate) fn answer(session: &Session, request: GenerateRequest) -> Result<GenerateResponse, ApiError> {
    let (name, generator) = session.select(request.model.as_deref(), |model| match &model.engine {
        Engine::Generator(generator) => Some(&**generator),
        _ => None,
    })?;
    let prompt = generator.limit().encode(&request.prompt, |text| generator.encode(text));
    let prompt: Vec<u32> =
        prompt.map_err(|error| ApiError::too_large(format!("`prompt`: {error}: make it shorter")))?;
    let wanted = search_options(&request)?;
    let tokens = at_most("tokens", request.tokens.unwrap_or(TOKENS), MAX_TOKENS)?;
    let options = generator
        .options(prompt.len(), tokens, &wanted)
        .map_err(|error| ApiError::bad_request(format!("`prompt`, `tokens`: {error}")))?;
    let explaining = explaining(request.attention, request.raw_scores, &SearchOptions::default())?;
    let most = MAX_BEAM - 1;
    let alternatives = request.alternatives.map(|count| at_most("alternatives", count, most)).transpose()?;
    let source = generator.source(prompt);
    let hypotheses = search(generator, source.clone(), &options)?;
    let detailed = |hypothesis: Hypothesis| {
        let generated = &hypothesis.tokens;
        let explain = || {
            // The source begins with `<bos>`.
            let ids = [&source[1..], generated].concat();
            Explanation::of_text(generator, &ids, &explaining)
        };
        let explanation = (request.attention != WeightForm::None).then(explain).transpose()?;
        let pieces = alternatives
            .map(|count| generated_tokens(generator, &source, generated, count, &explaining.search));
        Ok(GeneratedText {
            text: generator.decode(&source, generated),
            score: hypothesis.score,
            log_probability: hypothesis.log_probability,
            tokens: generated.len(),
            explanation,
            pieces: pieces.transpose()?,
        })
    };
    let results = hypotheses.into_iter().map(detailed).collect::<Result<_, ApiError>>()?;
    Ok(GenerateResponse { model: name.to_owned(), results, timings: Timings::default() })
}

fn search(
    generator: &Generator,
    source: Vec<u32>,
    options: &SearchOptions,
) -> Result<Vec<Hypothesis>, ApiError> {
    let failed = |error: DecodeError| ApiError::from(heedful::Error::from(error));
    let mut scheduler = Scheduler::new(generator.model(), options).map_err(failed)?;
    scheduler.push(source);
    loop {
        scheduler.step().map_err(|error| failed(error.into()))?;
        if let Some((_, hypotheses)) = scheduler.poll() {
            return hypotheses.map_err(failed);
        }
    }
}

/// Sampling, unless a beam or temperature 0 is requested.
fn search_options(request: &GenerateRequest) -> Result<SearchOptions, ApiError> {
    let sampling = Sampling {
        temperature: request.temperature.unwrap_or(1.0),
        top_k: request.top_k,
        top_p: request.top_p,
        seed: request.seed.unwrap_or(1),
    };
    let beam = request.beam.map(|beam| at_most("beam", beam, MAX_BEAM)).transpose()?;
    let is_sampled = beam.is_none() && sampling.temperature != 0.0;
    let options = SearchOptions {
        beam: beam.unwrap_or(1),
        n_best: at_most("n_best", request.n_best.unwrap_or(1), MAX_BEAM)?,
        sampling: is_sampled.then_some(sampling),
        no_repeat_ngram: request.no_repeat_ngram,
        ..SearchOptions::default()
    };
    options.check().map_err(ApiError::bad_request)?;
    Ok(options)
}
