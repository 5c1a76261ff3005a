//! From texts to the inputs of a job: sentences as tokens.

use std::sync::Arc;

use heedful::data::text_limit::TooLong;

use crate::app::AppState;
use crate::error::ApiError;
use crate::inference::Input;
use crate::models::{Engine, LoadedModel};
use crate::text::{Format, Layout};
use crate::wire::Texts;

/// Texts that are ready to be translated.
pub(super) struct Tokenized {
    pub(super) layouts: Vec<Layout>,
    /// The sentences of all texts, one after the other.
    pub(super) inputs: Vec<Input>,
}

/// Up to so many bytes are tokenized on the thread of the request: handing them to another would take as long.
const SMALL: usize = 4_000;

/// Refuses too many characters.
pub(super) fn check_characters(state: &AppState, characters: usize) -> Result<(), ApiError> {
    let most = state.limits.characters;
    if characters > most {
        return Err(ApiError::too_large(format!(
            "the text has {characters} characters, and {most} are allowed: send less at a time"
        )));
    }
    Ok(())
}

/// Splits texts into sentences and tokenizes them.
pub(super) async fn sentences(
    state: &AppState,
    loaded: &Arc<LoadedModel>,
    texts: &Texts,
    format: Format,
) -> Result<Tokenized, ApiError> {
    let (engine, texts, most) = (loaded.engine.clone(), texts.all().to_vec(), state.limits.sentences);
    let bytes: usize = texts.iter().map(String::len).sum();
    off_thread(state, bytes, move || split(&engine, &texts, format, most)).await?
}

/// Runs work that grows with the text where it does not block other requests; 504 if it takes longer than a request may.
pub(super) async fn off_thread<T: Send + 'static>(
    state: &AppState,
    bytes: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    if bytes <= SMALL {
        return Ok(work());
    }
    let timeout = state.limits.timeout;
    let done = tokio::time::timeout(timeout, tokio::task::spawn_blocking(work)).await;
    let done = done.map_err(|_| ApiError::deadline_exceeded(timeout.as_secs()))?;
    done.map_err(|_| ApiError::internal("the text could not be tokenized"))
}

/// 413: one of the texts has more tokens than the model reads.
pub(super) fn too_long(what: &str, index: usize, error: TooLong) -> ApiError {
    ApiError::too_large(format!("{what} {}: {error}: send it in parts", index + 1))
}

fn split(engine: &Engine, texts: &[String], format: Format, most: usize) -> Result<Tokenized, ApiError> {
    let layouts: Vec<Layout> = texts.iter().map(|text| Layout::new(text, format)).collect();
    let sentences: usize = layouts.iter().map(|layout| layout.sentences.len()).sum();
    if sentences > most {
        return Err(ApiError::too_large(format!(
            "the text has {sentences} sentences, and {most} are allowed: send less at a time"
        )));
    }
    let sentences = layouts.iter().flat_map(|layout| &layout.sentences).enumerate();
    let input = |(index, text): (usize, &String)| {
        let tokens = engine.read(text).map_err(|error| too_long("sentence", index, error))?;
        Ok(Input { tokens, text: text.clone(), prefix: Vec::new() })
    };
    let inputs = sentences.map(input).collect::<Result<_, ApiError>>()?;
    Ok(Tokenized { layouts, inputs })
}
