//! `POST /v1/generate`: a language model goes on with a prompt, at once or as it goes.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use futures_util::stream::unfold;
use heedful::decode::{Sampling, SearchOptions};
use heedful::tasks::Task;
use heedful::tasks::translate::Output;
use serde_json::{Value, json};

use super::choice::named;
use super::conversation::{Conversation, News};
use super::preparation::check_characters;
use super::{events, json as answer};
use crate::app::Shared;
use crate::error::Problem;
use crate::fields::Fields;
use crate::models::Engine;
use crate::work::{Answer, Detail, Item, Order, Progress};

const FIELDS: [&str; 11] = [
    "prompt",
    "model",
    "tokens",
    "n_best",
    "temperature",
    "top_k",
    "top_p",
    "seed",
    "beam",
    "no_repeat_ngram",
    "stream",
];
/// Tokens unless told.
const TOKENS: usize = 100;

pub(crate) async fn generate(
    State(shared): State<Arc<Shared>>,
    request: Request,
) -> Result<Response, Problem> {
    let fields = Fields::read(request, &shared.limits).await?;
    fields.expect_only(&FIELDS)?;
    let prompt = fields.text("prompt")?.unwrap_or_default().to_owned();
    let tokens = fields.count("tokens", shared.limits.tokens)?.unwrap_or(TOKENS.min(shared.limits.tokens));
    let options = search_options(&shared, &fields)?;
    let progress = if fields.is_set("stream")? { Progress::AsItGoes } else { Progress::AtTheEnd };
    let served = named(&shared, &fields, Task::Language)?;
    let characters = prompt.chars().count();
    check_characters(&shared, characters)?;
    shared.keys.admit(fields.key(), characters + tokens)?;

    let loaded = served.current();
    let Engine::Generator(generator) = &*loaded.engine else {
        return Err(Problem::bad(format!("`model`: {} says no texts", served.spec.name)));
    };
    let options = generator
        .options(&prompt, tokens, &options)
        .map_err(|error| Problem::bad(format!("`prompt`: {error}")))?;
    let item = Item { tokens: generator.encode(&prompt), text: prompt };
    let order = Order { items: vec![item], options: Arc::new(options), detail: Detail::Text, progress };
    let mut conversation = Conversation::begin(&shared, served, &loaded, order)?;
    let model = served.spec.name.clone();
    match progress {
        Progress::AtTheEnd => {
            let said = conversation.answers().await?.pop();
            Ok(answer(&whole(&model, said, &conversation)))
        }
        Progress::AsItGoes => Ok(as_it_goes(model, conversation)),
    }
}

/// As `heedful generate` has it: drawn at random, unless a beam or temperature 0 is asked for.
fn search_options(shared: &Shared, fields: &Fields) -> Result<SearchOptions, Problem> {
    let most = shared.limits.beam;
    let beam = fields.count("beam", most)?;
    let temperature = fields.number("temperature")?.unwrap_or(1.0) as f32;
    let sampling = Sampling {
        temperature,
        top_k: fields.count("top_k", usize::MAX)?,
        top_p: fields.number("top_p")?.map(|p| p as f32),
        seed: fields.count("seed", usize::MAX)?.map_or(1, |seed| seed as u64),
    };
    let is_drawn = beam.is_none() && temperature != 0.0;
    let options = SearchOptions {
        beam: beam.unwrap_or(1),
        n_best: fields.count("n_best", most)?.unwrap_or(1),
        sampling: is_drawn.then_some(sampling),
        no_repeat_ngram: fields.count("no_repeat_ngram", usize::MAX)?,
        length_penalty: SearchOptions::default().length_penalty,
        min_length: 0,
        ..shared.search.clone()
    };
    options.check().map_err(|error| Problem::bad(error.to_string()))?;
    Ok(options)
}

fn as_it_goes(model: String, conversation: Conversation) -> Response {
    let begin = Some((model, conversation));
    events::answer(unfold(begin, |state| async {
        let (model, mut conversation) = state?;
        match conversation.next().await {
            Ok(Some(News::Partial { text, .. })) => {
                Some((Ok(events::event("partial", &json!({ "text": text }))), Some((model, conversation))))
            }
            Ok(Some(News::Done { answer, .. })) => {
                Some((Ok(events::event("done", &whole(&model, Some(answer), &conversation))), None))
            }
            Ok(None) => None,
            Err(problem) => Some((Ok(events::problem(&problem)), None)),
        }
    }))
}

fn whole(model: &str, said: Option<Answer>, conversation: &Conversation) -> Value {
    let outputs = match said {
        Some(Answer::Said(outputs)) => outputs,
        _ => Vec::new(),
    };
    let result = |output: &Output| {
        let hypothesis = &output.hypothesis;
        json!({
            "text": output.text,
            "score": hypothesis.score,
            "log_probability": hypothesis.log_probability,
            "tokens": hypothesis.tokens.len(),
        })
    };
    let results: Vec<Value> = outputs.iter().map(result).collect();
    json!({ "model": model, "results": results, "timings": conversation.timings() })
}
