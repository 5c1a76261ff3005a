//! What `/translate` and `/translate_file` do with texts: sentences become translations, and those become texts.

use std::sync::Arc;

use heedful::decode::SearchOptions;
use heedful::explain::{ScoresKept, WeightForm};

use crate::app::AppState;
use crate::error::ApiError;
use crate::inference::{Delivery, Detail, Input, Job, Outcome};
use crate::models::{LoadedModel, ServedModel};
use crate::routes::pending_job::PendingJob;
use crate::routes::tokenize::{off_thread, sentences};
use crate::text::{Format, Layout, WordLinks};
use crate::wire::Texts;

/// The `n_best` translations of each text, best first.
pub(super) async fn translations(
    state: &AppState,
    served: &ServedModel,
    texts: &Texts,
    format: Format,
    n_best: usize,
) -> Result<Vec<Vec<String>>, ApiError> {
    let loaded = served.current();
    let tokenized = sentences(state, &loaded, texts, format).await?;
    let options = SearchOptions { n_best, beam: state.search.beam.max(n_best), ..state.search.clone() };
    let work = Work { state, served, loaded: &loaded, options: Arc::new(options) };
    let outputs = work.outputs(&tokenized.layouts, tokenized.inputs).await?;
    let layouts = tokenized.layouts;
    let bytes = texts.all().iter().map(String::len).sum();
    off_thread(state, bytes, move || joined(&layouts, &outputs, n_best)).await
}

/// One output for a sentence.
struct SentenceOutput {
    text: String,
    /// Only for sentences with tags in them.
    links: Option<WordLinks>,
}

struct Work<'a> {
    state: &'a AppState,
    served: &'a ServedModel,
    loaded: &'a LoadedModel,
    options: Arc<SearchOptions>,
}

impl Work<'_> {
    /// The outputs for every sentence. Only those with tags in them are aligned, which takes the model another pass.
    async fn outputs(
        &self,
        layouts: &[Layout],
        inputs: Vec<Input>,
    ) -> Result<Vec<Vec<SentenceOutput>>, ApiError> {
        let has_tags = |layout: &Layout| -> Vec<bool> {
            (0..layout.sentences.len()).map(|sentence| layout.has_tags_in(sentence)).collect()
        };
        let has_tags: Vec<bool> = layouts.iter().flat_map(has_tags).collect();
        let (mut tagged, mut plain) = (Vec::new(), Vec::new());
        for (input, &has_tags) in inputs.into_iter().zip(&has_tags) {
            if has_tags { tagged.push(input) } else { plain.push(input) }
        }
        // Both wait in the queue before either is waited for.
        let detail =
            Detail::Explained { weights: WeightForm::None, scores: ScoresKept::No, alternatives: None };
        let tagged = self.submit(tagged, detail)?;
        let plain = self.submit(plain, Detail::Text)?;
        let (mut plain, mut tagged) =
            (outcomes(plain).await?.into_iter(), outcomes(tagged).await?.into_iter());
        let outcome = |has_tags: bool| if has_tags { tagged.next() } else { plain.next() };
        Ok(has_tags
            .into_iter()
            .map(outcome)
            .map(|outcome| outcome.map(outputs).unwrap_or_default())
            .collect())
    }

    fn submit(&self, inputs: Vec<Input>, detail: Detail) -> Result<Option<PendingJob>, ApiError> {
        if inputs.is_empty() {
            return Ok(None);
        }
        let job = Job { inputs, options: self.options.clone(), detail, delivery: Delivery::Complete };
        PendingJob::submit(self.state, self.served, self.loaded, job).map(Some)
    }
}

async fn outcomes(job: Option<PendingJob>) -> Result<Vec<Outcome>, ApiError> {
    match job {
        Some(mut job) => job.outcomes().await,
        None => Ok(Vec::new()),
    }
}

fn outputs(outcome: Outcome) -> Vec<SentenceOutput> {
    match outcome {
        Outcome::Generated(outputs) => {
            outputs.into_iter().map(|output| SentenceOutput { text: output.text, links: None }).collect()
        }
        // A sentence without tokens stays as it is.
        Outcome::Explained(explanation) if explanation.outputs.is_empty() => {
            vec![SentenceOutput { text: explanation.source.text, links: None }]
        }
        Outcome::Explained(explanation) => {
            let source = &explanation.source;
            let output = |output: &heedful::explain::ExplainedOutput| SentenceOutput {
                text: output.text.clone(),
                links: Some(WordLinks::aligned(source, output)),
            };
            explanation.outputs.iter().map(output).collect()
        }
        Outcome::Written(_) | Outcome::Classified(..) | Outcome::Filled(..) => Vec::new(),
    }
}

/// For each text the texts of each rank; a sentence with fewer outputs has its last.
fn joined(layouts: &[Layout], outputs: &[Vec<SentenceOutput>], n_best: usize) -> Vec<Vec<String>> {
    let mut rest = outputs;
    let mut texts = Vec::with_capacity(layouts.len());
    for layout in layouts {
        let (sentences, others) = rest.split_at(layout.sentences.len());
        rest = others;
        let of_rank = |rank: usize| {
            let chosen: Vec<Option<&SentenceOutput>> =
                sentences.iter().map(|outputs| outputs.get(rank).or(outputs.last())).collect();
            let said: Vec<&str> =
                chosen.iter().map(|output| output.map_or("", |output| output.text.as_str())).collect();
            let links: Vec<Option<WordLinks>> =
                chosen.iter().map(|output| output.and_then(|output| output.links.clone())).collect();
            layout.join(&said, &links)
        };
        texts.push((0..n_best).map(of_rank).collect());
    }
    texts
}
