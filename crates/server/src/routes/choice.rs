//! Which model a request means.

use heedful::tasks::Task;

use crate::app::Shared;
use crate::detect::{Detected, detect_among};
use crate::error::Problem;
use crate::fields::Fields;
use crate::models::Served;

/// Languages as a request names them.
pub(super) struct Languages<'f> {
    pub(super) source: Option<&'f str>,
    pub(super) target: Option<&'f str>,
}

/// A translator for these languages, and the source language if it had to be guessed from the texts.
pub(super) fn translator<'s>(
    shared: &'s Shared,
    languages: &Languages<'_>,
    texts: &[String],
) -> Result<(&'s Served, Option<Detected>), Problem> {
    let fits = |served: &&Served| {
        let source = languages.source.is_none_or(|source| source == "auto" || served.spec.reads(source));
        source && languages.target.is_none_or(|target| served.spec.writes(target))
    };
    let candidates: Vec<&Served> = shared.models.with_task(Task::Translate).filter(fits).collect();
    let Some(first) = candidates.first() else {
        let side = |code: Option<&str>| code.unwrap_or("any language").to_owned();
        let (source, target) = (side(languages.source), side(languages.target));
        return Err(Problem::bad(format!(
            "no model translates from {source} to {target}; /languages lists what there is"
        )));
    };
    if languages.source != Some("auto") {
        return Ok((first, None));
    }
    let mut codes: Vec<&str> = candidates.iter().map(|served| served.spec.source.as_str()).collect();
    codes.dedup();
    let sample: String = texts.join("\n").chars().take(2000).collect();
    let detected = detect_among(&sample, &codes);
    let chosen = detected
        .as_ref()
        .and_then(|detected| candidates.iter().find(|served| served.spec.reads(&detected.language)));
    Ok((chosen.unwrap_or(first), detected))
}

/// The model that a request names, or the first for the task.
pub(super) fn named<'s>(shared: &'s Shared, fields: &Fields, task: Task) -> Result<&'s Served, Problem> {
    match fields.text("model")? {
        Some(name) => by_name(shared, name, task),
        None => shared.models.with_task(task).next().ok_or_else(|| {
            Problem::missing(format!("this server has no model for this; start it with {}", task.model()))
        }),
    }
}

/// A model by its name, which must be one for the task.
pub(super) fn by_name<'s>(shared: &'s Shared, name: &str, task: Task) -> Result<&'s Served, Problem> {
    let Some(served) = shared.models.named(name) else {
        return Err(Problem::missing(format!("there is no model `{name}`; /v1/models lists what there is")));
    };
    if served.task != task {
        let (is, wanted) = (served.task.model(), task.model());
        return Err(Problem::bad(format!("`model`: {name} is {is}, not {wanted}")));
    }
    Ok(served)
}
