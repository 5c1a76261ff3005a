//! `POST /v1/classify`: labels for texts.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use heedful::tasks::Task;
use heedful::tasks::classify::{Classified, Classifier};
use serde_json::{Map, Value, json};

use super::choice::named;
use super::conversation::Conversation;
use super::json as answer;
use super::preparation::{aside, check_characters};
use crate::app::Shared;
use crate::error::Problem;
use crate::fields::Fields;
use crate::models::Engine;
use crate::work::{Answer, Detail, Item, Order, Progress};

pub(crate) async fn classify(
    State(shared): State<Arc<Shared>>,
    request: Request,
) -> Result<Response, Problem> {
    let fields = Fields::read(request, &shared.limits).await?;
    fields.expect_only(&["text", "model"])?;
    let texts = fields.texts("text")?;
    let served = named(&shared, &fields, Task::Classify)?;
    check_characters(&shared, texts.characters())?;
    let most = shared.limits.sentences;
    if texts.all().len() > most {
        return Err(Problem::large(format!(
            "`text` has {} texts, and {most} are allowed",
            texts.all().len()
        )));
    }
    shared.keys.admit(fields.key(), texts.characters())?;

    let loaded = served.current();
    let (engine, given) = (loaded.engine.clone(), texts.all().to_vec());
    let bytes = given.iter().map(String::len).sum();
    let encode = move |text: String| Item { tokens: engine.encode(&text), text };
    let all: Vec<Item> = aside(bytes, move || given.into_iter().map(encode).collect()).await?;
    let is_spoken: Vec<bool> = all.iter().map(|item| !item.tokens.is_empty()).collect();
    let order = Order {
        items: all.into_iter().filter(|item| !item.tokens.is_empty()).collect(),
        options: Arc::new(shared.search.clone()),
        detail: Detail::Text,
        progress: Progress::AtTheEnd,
    };
    let mut conversation = Conversation::begin(&shared, served, &loaded, order)?;
    let mut found = conversation.answers().await?.into_iter();
    let Engine::Classifier(classifier) = &*loaded.engine else {
        return Err(Problem::bad(format!("`model`: {} gives no labels", served.spec.name)));
    };
    // A blank text has no label.
    let result = |is_spoken: bool| match is_spoken.then(|| found.next()).flatten() {
        Some(Answer::Labelled(found)) => described(classifier, &found),
        _ => Value::Null,
    };
    let results: Vec<Value> = is_spoken.into_iter().map(result).collect();
    Ok(answer(&json!({
        "model": served.spec.name,
        "results": results,
        "timings": conversation.timings(),
    })))
}

fn described(classifier: &Classifier, found: &Classified) -> Value {
    let labels = classifier.labels();
    let probabilities: Map<String, Value> =
        labels.names().iter().cloned().zip(found.probabilities.iter().map(|p| json!(p))).collect();
    let words: Vec<Value> =
        found.words.iter().map(|word| json!({ "word": word.text, "attention": word.attention })).collect();
    json!({
        "label": labels.name(found.label()),
        "probability": found.probability(),
        "probabilities": probabilities,
        "words": words,
    })
}
