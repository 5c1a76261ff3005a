//! `/v1/models` and `/v1/reload`.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use heedful::tasks::Task;
use serde_json::{Value, json};

use super::json as answer;
use crate::app::Shared;
use crate::error::Problem;
use crate::fields::Fields;
use crate::models::Served;

/// `GET /v1/models`
pub(crate) async fn list(State(shared): State<Arc<Shared>>) -> Response {
    let models: Vec<Value> = shared.models.served.iter().map(described).collect();
    answer(&models)
}

fn described(served: &Served) -> Value {
    let (loaded, spec) = (served.current(), &served.spec);
    let languages = (served.task == Task::Translate).then_some((&spec.source, &spec.target));
    json!({
        "name": spec.name,
        "source": languages.map(|(source, _)| source),
        "target": languages.map(|(_, target)| target),
        "task": served.task.command(),
        "family": spec.origin.family(),
        "parameters": loaded.engine.model().params().count(),
    })
}

/// `POST /v1/reload`: one model, or all.
pub(crate) async fn reload(State(shared): State<Arc<Shared>>, request: Request) -> Result<Response, Problem> {
    let fields = Fields::read(request, &shared.limits).await?;
    fields.expect_only(&["model"])?;
    shared.keys.admit_admin(fields.key())?;
    let wanted = fields.text("model")?.map(str::to_owned);
    if let Some(name) = &wanted
        && shared.models.named(name).is_none()
    {
        return Err(Problem::missing(format!("there is no model `{name}`; /v1/models lists what there is")));
    }
    let models = shared.models.clone();
    let reload = move || {
        let chosen = models
            .served
            .iter()
            .filter(|served| wanted.as_ref().is_none_or(|name| *name == served.spec.name));
        let (mut reloaded, mut failures) = (Vec::new(), Vec::new());
        for served in chosen {
            match served.reload() {
                Ok(()) => reloaded.push(served.spec.name.clone()),
                Err(error) => failures.push(error.to_string()),
            }
        }
        (reloaded, failures)
    };
    let lost = |_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "loading the model failed");
    let (reloaded, failures) = tokio::task::spawn_blocking(reload).await.map_err(lost)?;
    if failures.is_empty() {
        return Ok(answer(&json!({ "reloaded": reloaded })));
    }
    let sentence = format!("{}; the old model keeps serving", failures.join("; "));
    Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, sentence))
}
