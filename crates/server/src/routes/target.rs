//! The model of a request, and the texts of the request as tokenized inputs.

use std::sync::Arc;

use heedful::data::text_limit::TooLong;
use heedful::decode::SearchOptions;
use heedful::tasks::Task;

use super::pending_job::PendingJob;
use crate::app::AppState;
use crate::detect::{Detected, detect_among};
use crate::error::ApiError;
use crate::inference::{Delivery, Detail, Input, Job};
use crate::models::{Engine, LoadedModel, ServedModel};
use crate::text::{Format, Layout};
use crate::wire::Texts;

/// The model of a request, in the version that is loaded when the request arrives.
pub(super) struct Target<'s> {
    pub(super) state: &'s AppState,
    pub(super) served: &'s ServedModel,
    pub(super) loaded: Arc<LoadedModel>,
}

/// The source language that a request names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Source<'r> {
    Any,
    /// To be detected from the texts.
    Auto,
    Code(&'r str),
}

/// The languages that a request names.
pub(super) struct Languages<'r> {
    pub(super) source: Source<'r>,
    target: Option<&'r str>,
}

impl<'r> Languages<'r> {
    pub(super) fn new(source: Option<&'r str>, target: Option<&'r str>) -> Languages<'r> {
        let source = match source {
            None => Source::Any,
            Some("auto") => Source::Auto,
            Some(code) => Source::Code(code),
        };
        Languages { source, target }
    }

    pub(super) fn fit(&self, served: &ServedModel) -> bool {
        let source = match self.source {
            Source::Any | Source::Auto => true,
            Source::Code(code) => served.spec.supports_source(code),
        };
        source && self.target.is_none_or(|target| served.spec.supports_target(target))
    }
}

/// A translator for these languages, and the source language if it was detected from the texts.
pub(super) fn by_languages<'s>(
    state: &'s AppState,
    languages: &Languages<'_>,
    texts: &[String],
) -> Result<(Target<'s>, Option<Detected>), ApiError> {
    let translators = state.models.with_task(Task::Translate);
    let candidates: Vec<&ServedModel> = translators.filter(|served| languages.fit(served)).collect();
    let Some(&first) = candidates.first() else {
        let source = match languages.source {
            Source::Any => "any language",
            Source::Auto => "auto",
            Source::Code(code) => code,
        };
        let target = languages.target.unwrap_or("any language");
        return Err(ApiError::bad_request(format!(
            "no model translates from {source} to {target}; /languages lists all languages"
        )));
    };
    if languages.source != Source::Auto {
        return Ok((Target::new(state, first), None));
    }
    let mut codes: Vec<&str> = candidates.iter().map(|served| served.spec.source.as_str()).collect();
    codes.dedup();
    let sample: String = texts.join("\n").chars().take(2000).collect();
    let detected = detect_among(&sample, &codes);
    let supports = |served: &&&ServedModel| {
        detected.as_ref().is_some_and(|detected| served.spec.supports_source(&detected.language))
    };
    let selected = candidates.iter().find(supports).map_or(first, |selected| *selected);
    Ok((Target::new(state, selected), detected))
}

/// The model of a name, which must fit the task; without a name the first model of the task.
pub(super) fn by_name<'s>(
    state: &'s AppState,
    name: Option<&str>,
    task: Task,
) -> Result<Target<'s>, ApiError> {
    let Some(name) = name else {
        let none = || {
            ApiError::not_found(format!(
                "this server has no model for this task; start it with {}",
                task.model()
            ))
        };
        let first = state.models.with_task(task).next().ok_or_else(none)?;
        return Ok(Target::new(state, first));
    };
    let served = state.models.named(name).ok_or_else(|| unknown(name))?;
    if served.task != task {
        let (is, wanted) = (served.task.model(), task.model());
        return Err(ApiError::bad_request(format!("`model`: {name} is {is}, not {wanted}")));
    }
    Ok(Target::new(state, served))
}

/// 404: no model has this name.
pub(super) fn unknown(name: &str) -> ApiError {
    ApiError::not_found(format!("there is no model `{name}`; /v1/models lists all models"))
}

/// Texts up to this size are tokenized on the thread of the request: spawning a blocking task would take as
/// long.
const MAX_BYTES_ON_THREAD: usize = 4_000;

impl<'s> Target<'s> {
    fn new(state: &'s AppState, served: &'s ServedModel) -> Target<'s> {
        Target { state, served, loaded: served.current() }
    }

    /// The name of the model.
    pub(super) fn name(&self) -> String {
        self.served.spec.name.clone()
    }

    /// Submits a job; 503 if the queue is full or the worker is stuck.
    pub(super) fn submit(
        &self,
        inputs: Vec<Input>,
        options: SearchOptions,
        (detail, delivery): (Detail, Delivery),
    ) -> Result<PendingJob, ApiError> {
        PendingJob::submit(self, Job { inputs, options: Arc::new(options), detail, delivery })
    }

    /// Splits texts into sentences and tokenizes them: returns a layout for each text, and all sentences in
    /// order.
    pub(super) async fn sentences(
        &self,
        texts: &Texts,
        format: Format,
    ) -> Result<(Vec<Layout>, Vec<Input>), ApiError> {
        let (given, most) = (texts.all().to_vec(), self.state.limits.sentences);
        self.tokenized(texts, move |engine| {
            let layouts: Vec<Layout> = given.iter().map(|text| Layout::new(text, format)).collect();
            let sentences = layouts.iter().flat_map(|layout| &layout.sentences).cloned();
            let count = sentences.clone().count();
            if count > most {
                return Err(ApiError::too_large(format!(
                    "the text has {count} sentences, and {most} are allowed: send less at a time"
                )));
            }
            let inputs = inputs(engine, "sentence", sentences)?;
            Ok((layouts, inputs))
        })
        .await
    }

    /// Tokenizes texts without splitting them.
    pub(super) async fn texts(&self, texts: &Texts) -> Result<Vec<Input>, ApiError> {
        let (given, most) = (texts.all().to_vec(), self.state.limits.sentences);
        if given.len() > most {
            let count = given.len();
            return Err(ApiError::too_large(format!("`text` has {count} texts, and {most} are allowed")));
        }
        self.tokenized(texts, move |engine| inputs(engine, "text", given.into_iter())).await
    }

    async fn tokenized<T: Send + 'static>(
        &self,
        texts: &Texts,
        work: impl FnOnce(&Engine) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let (engine, bytes) = (self.loaded.engine.clone(), texts.all().iter().map(String::len).sum());
        self.off_thread(bytes, move || work(&engine)).await?
    }

    /// Runs work on large texts on a blocking thread, so that it does not delay other requests; 504 after the
    /// timeout of a request.
    pub(super) async fn off_thread<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        if bytes <= MAX_BYTES_ON_THREAD {
            return Ok(work());
        }
        let timeout = self.state.limits.timeout;
        let done = tokio::time::timeout(timeout, tokio::task::spawn_blocking(work)).await;
        let done = done.map_err(|_| ApiError::deadline_exceeded(timeout.as_secs()))?;
        done.map_err(|_| ApiError::internal("the text could not be tokenized"))
    }
}

fn inputs(engine: &Engine, what: &str, texts: impl Iterator<Item = String>) -> Result<Vec<Input>, ApiError> {
    let input = |(index, text): (usize, String)| {
        let tokens = engine.encode(&text).map_err(|error| too_long(what, index, error))?;
        Ok(Input { tokens, text, prefix: Vec::new() })
    };
    texts.enumerate().map(input).collect()
}

/// 413: one of the texts has more tokens than the model supports.
pub(super) fn too_long(what: &str, index: usize, error: TooLong) -> ApiError {
    ApiError::too_large(format!("{what} {}: {error}: send it in parts", index + 1))
}
