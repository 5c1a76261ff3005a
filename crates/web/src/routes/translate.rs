//! `POST /v1/translate`.

use heedful::data::sentences::{Gap, split};
use heedful::{
    Constraints, ExplainOptions, Explanation, HeadName, Limits, SearchInput, SearchOptions, Translator,
    WeightForm,
};
use serde::{Deserialize, Serialize};

use super::{MAX_BEAM, Texts, at_most, explaining, too_long};
use crate::error::ApiError;
use crate::model::Engine;
use crate::session::{Session, Timings};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TranslateRequest {
    text: Texts,
    model: Option<String>,
    source: Option<String>,
    target: Option<String>,
    n_best: Option<usize>,
    beam: Option<usize>,
    prefix: Option<Texts>,
    without_heads: Option<Texts>,
    #[serde(default)]
    alternatives: usize,
    #[serde(default)]
    attention: WeightForm,
    #[serde(default)]
    raw_scores: bool,
    /// Without effect.
    #[serde(default, rename = "stream")]
    _stream: bool,
}

#[derive(Serialize)]
pub(crate) struct TranslateResponse {
    model: String,
    results: Vec<TranslatedText>,
    timings: Timings,
}

#[derive(Serialize)]
struct TranslatedText {
    text: String,
    /// Languages are not detected.
    detected: Option<()>,
    sentences: Vec<TranslatedSentence>,
}

#[derive(Serialize)]
struct TranslatedSentence {
    before: String,
    explanation: Explanation,
    after: String,
}

/// How every sentence is translated.
struct Work<'s> {
    translator: &'s Translator,
    search: SearchOptions,
    explaining: ExplainOptions,
    alternatives: usize,
}

pub(crate) fn answer(session: &Session, request: TranslateRequest) -> Result<TranslateResponse, ApiError> {
    let languages = (request.source.as_deref(), request.target.as_deref());
    let (name, translator) = session.select(request.model.as_deref(), |model| match &model.engine {
        Engine::Translator(translator) if model.fits(languages.0, languages.1) => Some(translator),
        _ => None,
    })?;
    let base = SearchOptions::default();
    let n_best = at_most("n_best", request.n_best.unwrap_or(1), MAX_BEAM)?;
    let beam = request.beam.map(|beam| at_most("beam", beam, MAX_BEAM)).transpose()?;
    let beam = beam.unwrap_or_else(|| base.beam.max(n_best));
    let without_heads = match &request.without_heads {
        Some(names) => without_heads(translator, names)?,
        None => Vec::new(),
    };
    let explaining = explaining(
        request.attention,
        request.raw_scores,
        &SearchOptions { without_heads: without_heads.clone(), ..base.clone() },
    )?;
    let search = SearchOptions { n_best, beam, without_heads, ..base };
    search.check().map_err(|error| ApiError::bad_request(format!("`beam`, `n_best`: {error}")))?;
    let alternatives = at_most("alternatives", request.alternatives, MAX_BEAM - 1)?;
    let work = Work { translator, search, explaining, alternatives };
    let texts = request.text.all();
    let prefixes = request.prefix.as_ref().map_or(&[][..], Texts::all);
    if !prefixes.is_empty() && prefixes.len() != texts.len() {
        return Err(ApiError::bad_request(format!(
            "`prefix`: there are {} for {} texts: send one for each text, \"\" for none",
            prefixes.len(),
            texts.len()
        )));
    }
    let results = texts.iter().enumerate().map(|(index, text)| {
        let prefix = prefixes.get(index).map_or("", String::as_str);
        work.text(text, (index, prefix))
    });
    Ok(TranslateResponse {
        model: name.to_owned(),
        results: results.collect::<Result<_, _>>()?,
        timings: Timings::default(),
    })
}

impl Work<'_> {
    fn text(&self, text: &str, (index, prefix): (usize, &str)) -> Result<TranslatedText, ApiError> {
        let (sentences, gaps) = split(text);
        let mut inputs = self.inputs(&sentences)?;
        if let Some(first) = inputs.first_mut()
            && !prefix.trim().is_empty()
        {
            let encode = |text: &str| self.translator.encode_target(text);
            let tokens = self.translator.target_limit().encode(prefix, encode);
            first.constraints.prefix = tokens.map_err(|error| too_long("prefix", index, error))?;
        }
        let translations = self.translator.translate_inputs(inputs, &self.search, &Limits::default())?;
        let mut explanations = Vec::with_capacity(sentences.len());
        for (sentence, translation) in sentences.iter().zip(&translations) {
            let translator = self.translator;
            if translation.outputs.is_empty() {
                explanations.push(Explanation::blank(sentence));
                continue;
            }
            let mut explanation =
                Explanation::of_translation(translator, sentence, translation, &self.explaining)?;
            if self.alternatives > 0 {
                let search = &self.explaining.search;
                explanation.add_alternatives(translator, translation, self.alternatives, search)?;
            }
            explanations.push(explanation);
        }
        Ok(joined(&sentences, &gaps, explanations))
    }

    fn inputs(&self, sentences: &[String]) -> Result<Vec<SearchInput>, ApiError> {
        let input = |(index, text): (usize, &String)| {
            let encode = |text: &str| self.translator.encode(text);
            let source = self.translator.source_limit().encode(text, encode);
            let source = source.map_err(|error| too_long("sentence", index, error))?;
            Ok(SearchInput { source, constraints: Constraints::default() })
        };
        sentences.iter().enumerate().map(input).collect()
    }
}

/// The response for a text; a sentence without an output stays unchanged.
fn joined(sentences: &[String], gaps: &[Gap], explanations: Vec<Explanation>) -> TranslatedText {
    let best = |(sentence, explanation): (&String, &Explanation)| {
        explanation.outputs.first().map_or_else(|| sentence.clone(), |output| output.text.clone())
    };
    let outputs: Vec<String> = sentences.iter().zip(&explanations).map(best).collect();
    let after = gaps.last().map_or("", |gap| &gap.text);
    let mut text = String::new();
    let mut translated = Vec::with_capacity(sentences.len());
    for (at, explanation) in explanations.into_iter().enumerate() {
        let previous = at.checked_sub(1).map(|at| outputs[at].as_str());
        let needs_space = gaps[at].space(previous, &outputs[at]).is_some();
        let before = if needs_space { " " } else { &gaps[at].text };
        text.push_str(before);
        text.push_str(&outputs[at]);
        let is_last = at + 1 == outputs.len();
        let after = if is_last { after } else { "" }.to_owned();
        translated.push(TranslatedSentence { before: before.to_owned(), explanation, after });
    }
    text.push_str(after);
    TranslatedText { text, detected: None, sentences: translated }
}

/// The heads to remove, in the order of the model.
fn without_heads(translator: &Translator, names: &Texts) -> Result<Vec<HeadName>, ApiError> {
    let refuse = |error| ApiError::bad_request(format!("`without_heads`: {error}"));
    let named = names.all().iter().map(|name| name.parse::<HeadName>());
    let named: Vec<HeadName> = named.collect::<Result<_, _>>().map_err(refuse)?;
    translator.model().check_heads(&named).map_err(refuse)?;
    Ok(translator.model().heads().into_iter().filter(|head| named.contains(head)).collect())
}
