//! Which model a request is for.

use heedful::tasks::Task;

use crate::app::AppState;
use crate::detect::{Detected, detect_among};
use crate::error::ApiError;
use crate::models::ServedModel;

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
    pub(super) target: Option<&'r str>,
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
            Source::Code(code) => served.spec.reads(code),
        };
        source && self.target.is_none_or(|target| served.spec.writes(target))
    }
}

/// A translator for these languages, and the source language if it had to be detected from the texts.
pub(super) fn by_languages<'s>(
    state: &'s AppState,
    languages: &Languages<'_>,
    texts: &[String],
) -> Result<(&'s ServedModel, Option<Detected>), ApiError> {
    let translators = state.models.with_task(Task::Translate);
    let candidates: Vec<&ServedModel> = translators.filter(|served| languages.fit(served)).collect();
    let Some(first) = candidates.first() else {
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
        return Ok((first, None));
    }
    let mut codes: Vec<&str> = candidates.iter().map(|served| served.spec.source.as_str()).collect();
    codes.dedup();
    let sample: String = texts.join("\n").chars().take(2000).collect();
    let detected = detect_among(&sample, &codes);
    let selected = detected
        .as_ref()
        .and_then(|detected| candidates.iter().find(|served| served.spec.reads(&detected.language)));
    Ok((selected.unwrap_or(first), detected))
}

/// A model by its name, which must be one for the task; without a name the first for the task.
pub(super) fn by_name<'s>(
    state: &'s AppState,
    name: Option<&str>,
    task: Task,
) -> Result<&'s ServedModel, ApiError> {
    let Some(name) = name else {
        return state.models.with_task(task).next().ok_or_else(|| {
            ApiError::not_found(format!("this server has no model for this; start it with {}", task.model()))
        });
    };
    let served = state.models.named(name).ok_or_else(|| unknown(name))?;
    if served.task != task {
        let (is, wanted) = (served.task.model(), task.model());
        return Err(ApiError::bad_request(format!("`model`: {name} is {is}, not {wanted}")));
    }
    Ok(served)
}

/// 404: no model has this name.
pub(super) fn unknown(name: &str) -> ApiError {
    ApiError::not_found(format!("there is no model `{name}`; /v1/models lists all models"))
}
