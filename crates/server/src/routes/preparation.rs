//! From texts to sentences as tokens.

use std::sync::Arc;

use axum::http::StatusCode;

use crate::app::Shared;
use crate::error::Problem;
use crate::fields::Texts;
use crate::models::{Engine, Loaded};
use crate::text::Layout;
use crate::work::Item;

/// How texts are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Text,
    Html,
}

/// Texts that are ready to be translated.
pub(super) struct Prepared {
    pub(super) layouts: Vec<Layout>,
    /// The sentences of all texts, one after the other.
    pub(super) items: Vec<Item>,
}

/// Up to so many characters are tokenized where we are: handing them over would take as long.
const SMALL: usize = 4_000;

/// Refuses too many characters.
pub(super) fn check_characters(shared: &Shared, characters: usize) -> Result<(), Problem> {
    let most = shared.limits.characters;
    if characters > most {
        let sentence =
            format!("the text has {characters} characters, and {most} are allowed: send less at a time");
        return Err(Problem::large(sentence));
    }
    Ok(())
}

/// Splits texts into sentences and tokenizes them.
pub(super) async fn prepare(
    shared: &Shared,
    loaded: &Arc<Loaded>,
    texts: &Texts,
    format: Format,
) -> Result<Prepared, Problem> {
    let (engine, texts, most) = (loaded.engine.clone(), texts.all().to_vec(), shared.limits.sentences);
    let bytes: usize = texts.iter().map(String::len).sum();
    aside(bytes, move || split(&engine, &texts, format, most)).await?
}

/// Runs work that grows with the text where it does not keep other requests waiting.
pub(super) async fn aside<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Problem> {
    if bytes <= SMALL {
        return Ok(work());
    }
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the text could not be tokenized"))
}

fn split(engine: &Engine, texts: &[String], format: Format, most: usize) -> Result<Prepared, Problem> {
    let layout = |text: &String| match format {
        Format::Text => Layout::plain(text),
        Format::Html => Layout::html(text),
    };
    let layouts: Vec<Layout> = texts.iter().map(layout).collect();
    let sentences: usize = layouts.iter().map(|layout| layout.sentences.len()).sum();
    if sentences > most {
        let sentence =
            format!("the text has {sentences} sentences, and {most} are allowed: send less at a time");
        return Err(Problem::large(sentence));
    }
    let item = |text: &String| Item { tokens: engine.encode(text), text: text.clone() };
    let items = layouts.iter().flat_map(|layout| &layout.sentences).map(item).collect();
    Ok(Prepared { layouts, items })
}
