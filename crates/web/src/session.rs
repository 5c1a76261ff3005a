//! The opened models, and the requests that they answer.

use serde::Serialize;
use serde_json::json;

use crate::error::ApiError;
use crate::model::OpenModel;
use crate::routes::{attend, classify, fill, generate, tokenize, translate};

/// Opened models.
#[derive(Default)]
pub struct Session {
    models: Vec<OpenModel>,
}

/// A status of HTTP and JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// 200, or the status of the error.
    pub status: u16,
    /// JSON; of an error `{"error": "a sentence"}`.
    pub body: Vec<u8>,
}

/// The time spent in each stage, which the worker measures.
#[derive(Default, Serialize)]
pub(crate) struct Timings {
    queue_ms: f64,
    compute_ms: f64,
    total_ms: f64,
}

impl Session {
    /// Answers a request; `target` is a method and a path.
    pub fn answer(&mut self, target: &str, body: Vec<u8>) -> Response {
        self.route(target, body)
            .unwrap_or_else(|ApiError { status, message }| Response::error(status, &message))
    }

    fn route(&mut self, target: &str, body: Vec<u8>) -> Result<Response, ApiError> {
        if let Some(name) = target.strip_prefix("PUT /v1/models/") {
            let model = OpenModel::new(name, body)?;
            self.models.retain(|known| known.info.name != name);
            self.models.push(model);
            return Ok(Response::json(&self.models.last().map(|model| &model.info)));
        }
        if let Some(name) = target.strip_prefix("DELETE /v1/models/") {
            self.models.retain(|known| known.info.name != name);
            return Ok(Response::json(&json!({})));
        }
        Ok(match target {
            "GET /v1/models" => {
                Response::json(&self.models.iter().map(|model| &model.info).collect::<Vec<_>>())
            }
            "POST /v1/translate" => Response::json(&translate::answer(self, read(&body)?)?),
            "POST /v1/classify" => Response::json(&classify::answer(self, read(&body)?)?),
            "POST /v1/generate" => Response::json(&generate::answer(self, read(&body)?)?),
            "POST /v1/fill" => Response::json(&fill::answer(self, read(&body)?)?),
            "POST /v1/tokenize" => Response::json(&tokenize::answer(self, read(&body)?)?),
            "POST /v1/attend" => attend::answer(&body)?,
            _ => return Err(ApiError::not_found(format!("there is no route {target}"))),
        })
    }

    /// The model of this name, or the first that fits. `find` takes a model's engine out of it; `None` if the
    /// model is for another task.
    pub(crate) fn select<'s, E>(
        &'s self,
        name: Option<&str>,
        find: impl Fn(&'s OpenModel) -> Option<E>,
    ) -> Result<(&'s str, E), ApiError> {
        let named = |model: &&OpenModel| name.is_none_or(|name| model.info.name == name);
        let mut models = self.models.iter().filter(named).peekable();
        if let (Some(name), None) = (name, models.peek()) {
            return Err(ApiError::not_found(format!(
                "there is no model `{name}`; /v1/models lists all models"
            )));
        }
        let found = models.find_map(|model| Some((model.info.name.as_str(), find(model)?)));
        found.ok_or_else(|| match name {
            Some(name) => ApiError::bad_request(format!("`model`: {name} is for another task or language")),
            None => ApiError::not_found("no opened model is for this task and language: open one"),
        })
    }
}

impl Response {
    pub(crate) fn json(value: &impl Serialize) -> Response {
        match serde_json::to_vec(value) {
            Ok(body) => Response { status: 200, body },
            Err(error) => Response::error(500, &format!("the response cannot be written: {error}")),
        }
    }

    /// An error message.
    pub fn error(status: u16, message: &str) -> Response {
        Response { status, body: json!({ "error": message }).to_string().into_bytes() }
    }
}

fn read<T: serde::de::DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    serde_json::from_slice(body).map_err(|error| ApiError::bad_request(format!("the request: {error}")))
}
