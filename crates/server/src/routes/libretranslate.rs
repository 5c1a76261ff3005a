//! The interface of LibreTranslate, so that its clients work by changing the address.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use heedful::decode::SearchOptions;
use heedful::tasks::Task;
use heedful::tasks::translate::Output;
use serde_json::{Map, Value, json};

use super::choice::{Languages, translator};
use super::conversation::Conversation;
use super::json as answer;
use super::preparation::{Format, check_characters, prepare};
use crate::app::Shared;
use crate::detect;
use crate::error::Problem;
use crate::fields::{Fields, Texts};
use crate::languages;
use crate::text::Layout;
use crate::work::{Answer, Detail, Order, Progress};

/// `POST /translate`
pub(crate) async fn translate(
    State(shared): State<Arc<Shared>>,
    request: Request,
) -> Result<Response, Problem> {
    let fields = Fields::read(request, &shared.limits).await?;
    let texts = fields.texts("q")?;
    let missing = |name: &str| Problem::bad(format!("`{name}` is missing: it is the code of a language"));
    let source = fields.text("source")?.ok_or_else(|| missing("source"))?;
    let target = fields.text("target")?.ok_or_else(|| missing("target"))?;
    let format = match fields.choice("format", &["text", "html"])? {
        "html" => Format::Html,
        _ => Format::Text,
    };
    let alternatives = fields.count("alternatives", shared.limits.beam - 1)?.unwrap_or(0);
    check_characters(&shared, texts.characters())?;
    shared.keys.admit(fields.key(), texts.characters())?;

    let languages = Languages { source: Some(source), target: Some(target) };
    let (served, detected) = translator(&shared, &languages, texts.all())?;
    let loaded = served.current();
    let prepared = prepare(&shared, &loaded, &texts, format).await?;
    let n_best = alternatives + 1;
    let options = SearchOptions { n_best, beam: shared.search.beam.max(n_best), ..shared.search.clone() };
    let order = Order {
        items: prepared.items,
        options: Arc::new(options),
        detail: Detail::Text,
        progress: Progress::AtTheEnd,
    };
    let answers = Conversation::begin(&shared, served, &loaded, order)?.answers().await?;

    let mut outputs = answers.into_iter().map(|answer| match answer {
        Answer::Said(outputs) => outputs,
        _ => Vec::new(),
    });
    let each: Vec<Vec<String>> = prepared
        .layouts
        .iter()
        .map(|layout| {
            let sentences: Vec<Vec<Output>> = outputs.by_ref().take(layout.sentences.len()).collect();
            (0..n_best).map(|rank| whole(layout, &sentences, rank)).collect()
        })
        .collect();
    let mut fields = Map::new();
    let shaped = |values: Vec<Value>| match &texts {
        Texts::One(_) => values.into_iter().next().unwrap_or(Value::Null),
        Texts::Many(_) => Value::Array(values),
    };
    fields.insert("translatedText".into(), shaped(each.iter().map(|ranks| json!(ranks[0])).collect()));
    if alternatives > 0 {
        fields.insert("alternatives".into(), shaped(each.iter().map(|ranks| json!(ranks[1..])).collect()));
    }
    if let Some(detected) = detected {
        let detected = vec![json!(detected); each.len()];
        fields.insert("detectedLanguage".into(), shaped(detected));
    }
    Ok(answer(&fields))
}

/// The text made of the output of this rank of each sentence; a sentence with fewer outputs has its last.
fn whole(layout: &Layout, sentences: &[Vec<Output>], rank: usize) -> String {
    let chosen =
        |outputs: &Vec<Output>| outputs.get(rank).or(outputs.last()).map(|output| output.text.clone());
    let texts: Vec<String> = sentences.iter().map(|outputs| chosen(outputs).unwrap_or_default()).collect();
    layout.join(&texts.iter().map(String::as_str).collect::<Vec<_>>())
}

/// `POST /detect`
pub(crate) async fn detect(State(shared): State<Arc<Shared>>, request: Request) -> Result<Response, Problem> {
    let fields = Fields::read(request, &shared.limits).await?;
    let texts = fields.texts("q")?;
    check_characters(&shared, texts.characters())?;
    shared.keys.admit(fields.key(), texts.characters())?;
    let sample: String = texts.all().join("\n").chars().take(5_000).collect();
    Ok(answer(&detect::detect(&sample).into_iter().collect::<Vec<_>>()))
}

/// `GET /languages`
pub(crate) async fn languages(State(shared): State<Arc<Shared>>) -> Response {
    let specs: Vec<_> = shared.models.with_task(Task::Translate).map(|served| &served.spec).collect();
    let mut codes: Vec<&str> = specs.iter().map(|spec| spec.source.as_str()).collect();
    codes.sort_unstable();
    codes.dedup();
    let language = |code: &&str| {
        let mut targets: Vec<&str> =
            specs.iter().filter(|spec| spec.source == **code).map(|spec| spec.target.as_str()).collect();
        targets.sort_unstable();
        targets.dedup();
        json!({ "code": code, "name": name(code), "targets": targets })
    };
    // Clients look for the names of targets here too.
    let mut only_targets: Vec<&str> =
        specs.iter().map(|spec| spec.target.as_str()).filter(|code| !codes.contains(code)).collect();
    only_targets.sort_unstable();
    only_targets.dedup();
    let target = |code: &&str| json!({ "code": code, "name": name(code), "targets": [] });
    let list: Vec<Value> = codes.iter().map(language).chain(only_targets.iter().map(target)).collect();
    answer(&list)
}

/// `GET /frontend/settings`
pub(crate) async fn settings(State(shared): State<Arc<Shared>>) -> Response {
    let first = shared.models.with_task(Task::Translate).next().map(|served| &served.spec);
    let side = |code: Option<&str>| code.map(|code| json!({ "code": code, "name": name(code) }));
    answer(&json!({
        "apiKeys": shared.keys.are_required(),
        "keyRequired": shared.keys.are_required(),
        "charLimit": shared.limits.characters,
        "filesTranslation": false,
        "supportedFilesFormat": [],
        "suggestions": false,
        "frontendTimeout": 500,
        "language": {
            "source": side(first.map(|spec| spec.source.as_str())),
            "target": side(first.map(|spec| spec.target.as_str())),
        },
    }))
}

fn name(code: &str) -> &str {
    languages::name(code).unwrap_or(code)
}
