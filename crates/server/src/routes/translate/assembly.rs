//! The response to `/v1/translate`: assembles sentences, which finish in any order, into texts.

use heedful::explain::Explanation;
use serde::Serialize;
use utoipa::ToSchema;

use crate::detect::Detected;
use crate::error::ErrorBody;
use crate::inference::Outcome;
use crate::routes::pending_job::Timings;
use crate::text::Layout;
use crate::wire::ExplanationSchema;

/// The translations of all texts.
#[derive(Serialize, ToSchema)]
pub(crate) struct TranslateResponse<'a> {
    /// The model that translated.
    #[schema(example = "en-de")]
    model: &'a str,
    /// One for each text.
    results: Vec<TranslatedText<'a>>,
    /// The time spent in each stage.
    timings: Timings,
}

/// The translation of a text.
#[derive(Serialize, ToSchema)]
struct TranslatedText<'a> {
    /// The best outputs of its sentences, with the gaps between them as in the source.
    #[schema(example = "Ein Hund läuft.")]
    text: String,
    /// The source language, if it was detected.
    #[schema(required)]
    detected: Option<&'a Detected>,
    /// Its sentences, in order.
    sentences: Vec<TranslatedSentence<'a>>,
}

/// The translation of a sentence.
#[derive(Serialize, ToSchema)]
pub(crate) struct TranslatedSentence<'a> {
    /// The gap before it in the text.
    before: &'a str,
    /// Its outputs, with scores, alignment and attention; null until it is done.
    #[schema(value_type = Option<ExplanationSchema>, required)]
    explanation: Option<&'a Explanation>,
    /// The gap after it, if it is the last.
    after: &'a str,
}

/// The data of an event of the stream, by its name.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum TranslateEvent<'a> {
    /// `partial`: the text of the best hypothesis for a sentence.
    Partial {
        /// The index of the text.
        result: usize,
        /// The index of the sentence in it.
        sentence: usize,
        /// The text.
        text: String,
    },
    /// `sentence`: a sentence is done.
    Sentence {
        /// The index of the text.
        result: usize,
        /// The index of the sentence in it.
        sentence: usize,
        #[serde(flatten)]
        translated: TranslatedSentence<'a>,
    },
    /// `done`: the last event.
    Done(TranslateResponse<'a>),
    /// `error`: the last event of a stream that failed.
    #[expect(dead_code, reason = "`sse::response` writes it; this describes it")]
    Error(ErrorBody),
}

/// Collects the sentences of a job.
pub(super) struct Assembly {
    model: String,
    layouts: Vec<Layout>,
    detected: Option<Detected>,
    /// For each input the index of its text and of its sentence within the text.
    positions: Vec<(usize, usize)>,
    explanations: Vec<Option<Explanation>>,
}

impl Assembly {
    pub(super) fn new(model: String, layouts: Vec<Layout>, detected: Option<Detected>) -> Assembly {
        let sentences = |(text, layout): (usize, &Layout)| {
            (0..layout.sentences.len()).map(move |sentence| (text, sentence)).collect::<Vec<_>>()
        };
        let positions: Vec<(usize, usize)> = layouts.iter().enumerate().flat_map(sentences).collect();
        let explanations = positions.iter().map(|_| None).collect();
        Assembly { model, layouts, detected, positions, explanations }
    }

    pub(super) fn put(&mut self, input: usize, outcome: Outcome) {
        if let Outcome::Explained(explanation) = outcome {
            self.explanations[input] = Some(*explanation);
        }
    }

    pub(super) fn partial(&self, input: usize, text: String) -> TranslateEvent<'_> {
        let (result, sentence) = self.positions[input];
        TranslateEvent::Partial { result, sentence, text }
    }

    pub(super) fn sentence(&self, input: usize) -> TranslateEvent<'_> {
        let (result, sentence) = self.positions[input];
        let (_, outputs) = self.outputs(result);
        TranslateEvent::Sentence { result, sentence, translated: self.translated(input, &outputs) }
    }

    pub(super) fn response(&self, timings: Timings) -> TranslateResponse<'_> {
        let result = |text: usize| {
            let (first, outputs) = self.outputs(text);
            let sentences = (first..first + outputs.len()).map(|input| self.translated(input, &outputs));
            TranslatedText {
                text: self.layouts[text].join(&outputs, &[]),
                detected: self.detected.as_ref(),
                sentences: sentences.collect(),
            }
        };
        TranslateResponse {
            model: &self.model,
            results: (0..self.layouts.len()).map(result).collect(),
            timings,
        }
    }

    fn translated(&self, input: usize, outputs: &[&str]) -> TranslatedSentence<'_> {
        let (text, sentence) = self.positions[input];
        let layout = &self.layouts[text];
        let is_last = sentence + 1 == layout.sentences.len();
        TranslatedSentence {
            before: layout.before(sentence, outputs),
            explanation: self.explanations[input].as_ref(),
            after: if is_last { layout.after() } else { "" },
        }
    }

    /// The first input of a text, and the best outputs of all its sentences.
    fn outputs(&self, text: usize) -> (usize, Vec<&str>) {
        let first = self.positions.partition_point(|place| place.0 < text);
        let count = self.layouts[text].sentences.len();
        (first, (first..first + count).map(|input| self.best(input)).collect())
    }

    /// The best output for an input; a sentence without output is returned unchanged.
    fn best(&self, input: usize) -> &str {
        let (text, sentence) = self.positions[input];
        let explanation = self.explanations[input].as_ref();
        let best = explanation.and_then(|explanation| explanation.outputs.first());
        best.map_or(&self.layouts[text].sentences[sentence], |output| &output.text)
    }
}
