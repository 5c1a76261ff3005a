//! `POST /v1/translate`: translations with everything that can be told about them, at once or as they come.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use futures_util::stream::unfold;
use heedful::decode::SearchOptions;
use heedful::explain::{Explanation, WeightForm};
use heedful::tasks::Task;
use serde_json::{Value, json};

use super::choice::{Languages, by_name, translator};
use super::conversation::{Conversation, News};
use super::preparation::{Format, check_characters, prepare};
use super::{events, json as answer};
use crate::app::Shared;
use crate::detect::{Detected, detect_among};
use crate::error::Problem;
use crate::fields::Fields;
use crate::models::Served;
use crate::text::Layout;
use crate::work::{Answer, Detail, Order, Progress};

const FIELDS: [&str; 8] = ["text", "model", "source", "target", "n_best", "beam", "attention", "stream"];

pub(crate) async fn translate(
    State(shared): State<Arc<Shared>>,
    request: Request,
) -> Result<Response, Problem> {
    let fields = Fields::read(request, &shared.limits).await?;
    fields.expect_only(&FIELDS)?;
    let texts = fields.texts("text")?;
    let form = match fields.choice("attention", &["none", "rows", "packed"])? {
        "rows" => WeightForm::Rows,
        "packed" => WeightForm::Packed,
        _ => WeightForm::None,
    };
    let options = search_options(&shared, &fields)?;
    let progress = if fields.is_set("stream")? { Progress::AsItGoes } else { Progress::AtTheEnd };
    let (served, detected) = chosen(&shared, &fields, texts.all())?;
    check_characters(&shared, texts.characters())?;
    shared.keys.admit(fields.key(), texts.characters())?;

    let loaded = served.current();
    let prepared = prepare(&shared, &loaded, &texts, Format::Text).await?;
    let order = Order {
        items: prepared.items,
        options: Arc::new(options),
        detail: Detail::Explained(form),
        progress,
    };
    let conversation = Conversation::begin(&shared, served, &loaded, order)?;
    let assembly = Assembly::new(served.spec.name.clone(), prepared.layouts, detected);
    match progress {
        Progress::AtTheEnd => at_once(conversation, assembly).await,
        Progress::AsItGoes => Ok(as_it_goes(conversation, assembly)),
    }
}

fn search_options(shared: &Shared, fields: &Fields) -> Result<SearchOptions, Problem> {
    let most = shared.limits.beam;
    let n_best = fields.count("n_best", most)?.unwrap_or(1);
    let beam = fields.count("beam", most)?.unwrap_or_else(|| shared.search.beam.max(n_best));
    let options = SearchOptions { n_best, beam, ..shared.search.clone() };
    options.check().map_err(|error| Problem::bad(format!("`beam`, `n_best`: {error}")))?;
    Ok(options)
}

/// The model by name, or by languages.
fn chosen<'s>(
    shared: &'s Shared,
    fields: &Fields,
    texts: &[String],
) -> Result<(&'s Served, Option<Detected>), Problem> {
    let languages = Languages { source: fields.text("source")?, target: fields.text("target")? };
    let Some(name) = fields.text("model")? else { return translator(shared, &languages, texts) };
    let served = by_name(shared, name, Task::Translate)?;
    let (source, target) = (languages.source.unwrap_or("auto"), languages.target);
    if (source != "auto" && !served.spec.reads(source))
        || target.is_some_and(|target| !served.spec.writes(target))
    {
        return Err(Problem::bad(format!(
            "`model`: {name} translates from {} to {}",
            served.spec.source, served.spec.target
        )));
    }
    let asked = languages.source == Some("auto");
    Ok((served, asked.then(|| detect_among(&texts.join("\n"), &[&served.spec.source])).flatten()))
}

async fn at_once(mut conversation: Conversation, mut assembly: Assembly) -> Result<Response, Problem> {
    while let Some(news) = conversation.next().await? {
        if let News::Done { item, answer } = news {
            assembly.put(item, answer);
        }
    }
    Ok(answer(&assembly.whole(&conversation)))
}

/// Events `partial`, `sentence` and at last `done`, or `error`.
fn as_it_goes(conversation: Conversation, assembly: Assembly) -> Response {
    let begin = Some((conversation, assembly));
    events::answer(unfold(begin, |state| async {
        let (mut conversation, mut assembly) = state?;
        match conversation.next().await {
            Ok(Some(News::Partial { item, text })) => {
                let (result, sentence) = assembly.places[item];
                let data = json!({ "result": result, "sentence": sentence, "text": text });
                Some((Ok(events::event("partial", &data)), Some((conversation, assembly))))
            }
            Ok(Some(News::Done { item, answer })) => {
                assembly.put(item, answer);
                let data = assembly.sentence(item);
                Some((Ok(events::event("sentence", &data)), Some((conversation, assembly))))
            }
            Ok(None) => Some((Ok(events::event("done", &assembly.whole(&conversation))), None)),
            Err(problem) => Some((Ok(events::problem(&problem)), None)),
        }
    }))
}

/// Sentences that come in any order become texts.
struct Assembly {
    model: String,
    layouts: Vec<Layout>,
    detected: Option<Detected>,
    /// For each item the number of its text and of the sentence in it.
    places: Vec<(usize, usize)>,
    explanations: Vec<Option<Explanation>>,
}

impl Assembly {
    fn new(model: String, layouts: Vec<Layout>, detected: Option<Detected>) -> Assembly {
        let sentences = |(text, layout): (usize, &Layout)| {
            (0..layout.sentences.len()).map(move |sentence| (text, sentence)).collect::<Vec<_>>()
        };
        let places: Vec<(usize, usize)> = layouts.iter().enumerate().flat_map(sentences).collect();
        let explanations = places.iter().map(|_| None).collect();
        Assembly { model, layouts, detected, places, explanations }
    }

    fn put(&mut self, item: usize, answer: Answer) {
        if let Answer::Explained(explanation) = answer {
            self.explanations[item] = Some(*explanation);
        }
    }

    /// The best output of an item; what has none stays as it is.
    fn best(&self, item: usize) -> &str {
        let (text, sentence) = self.places[item];
        let explained = self.explanations[item].as_ref();
        let best =
            explained.and_then(|explained| explained.outputs.first()).map(|output| output.text.as_str());
        best.unwrap_or(&self.layouts[text].sentences[sentence])
    }

    /// The outputs of one text.
    fn outputs(&self, text: usize) -> (usize, Vec<&str>) {
        let first = self.places.partition_point(|place| place.0 < text);
        let count = self.layouts[text].sentences.len();
        (first, (first..first + count).map(|item| self.best(item)).collect())
    }

    /// One sentence that is done.
    fn sentence(&self, item: usize) -> Value {
        let (result, sentence) = self.places[item];
        let (_, outputs) = self.outputs(result);
        let mut data = self.described(item, &outputs);
        data["result"] = json!(result);
        data["sentence"] = json!(sentence);
        data
    }

    fn described(&self, item: usize, outputs: &[&str]) -> Value {
        let (text, sentence) = self.places[item];
        let layout = &self.layouts[text];
        let is_last = sentence + 1 == layout.sentences.len();
        json!({
            "before": layout.before(sentence, outputs),
            "explanation": self.explanations[item],
            "after": if is_last { layout.after() } else { "" },
        })
    }

    /// The whole answer.
    fn whole(&self, conversation: &Conversation) -> Value {
        let result = |text: usize| {
            let (first, outputs) = self.outputs(text);
            let sentences: Vec<Value> =
                (0..outputs.len()).map(|sentence| self.described(first + sentence, &outputs)).collect();
            json!({
                "text": self.layouts[text].join(&outputs),
                "detected": self.detected,
                "sentences": sentences,
            })
        };
        let results: Vec<Value> = (0..self.layouts.len()).map(result).collect();
        json!({ "model": self.model, "results": results, "timings": conversation.timings() })
    }
}
