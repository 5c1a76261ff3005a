//! `POST /v1/classify`.

use std::collections::BTreeMap;

use heedful::{Classified, Classifier, Explanation, SearchOptions, WeightForm};
use serde::{Deserialize, Serialize};

use super::{Texts, explaining, too_long};
use crate::error::ApiError;
use crate::model::Engine;
use crate::session::{Session, Timings};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClassifyRequest {
    text: Texts,
    model: Option<String>,
    #[serde(default)]
    attention: WeightForm,
    #[serde(default)]
    raw_scores: bool,
}

#[derive(Serialize)]
pub(crate) struct ClassifyResponse {
    model: String,
    /// Null for a blank text.
    results: Vec<Option<Classification>>,
    timings: Timings,
}

#[derive(Serialize)]
struct Classification {
    label: String,
    probability: f32,
    probabilities: BTreeMap<String, f32>,
    words: Vec<AttendedWord>,
    #[serde(skip_serializing_if = "Option::is_none")]
    explanation: Option<Explanation>,
}

#[derive(Serialize)]
struct AttendedWord {
    word: String,
    attention: f32,
}

pub(crate) fn answer(session: &Session, request: ClassifyRequest) -> Result<ClassifyResponse, ApiError> {
    let (name, classifier) = session.select(request.model.as_deref(), |model| match &model.engine {
        Engine::Classifier(classifier) => Some(&**classifier),
        _ => None,
    })?;
    let options = explaining(request.attention, request.raw_scores, &SearchOptions::default())?;
    let classify = |(index, text): (usize, &String)| {
        let ids = classifier.limit().encode(text, |text| classifier.encode(text));
        let ids = ids.map_err(|error| too_long("text", index, error))?;
        if ids.is_empty() {
            return Ok(None);
        }
        let classified = classifier.classify_tokens(std::slice::from_ref(&ids))?.remove(0);
        let explain = || Explanation::of_class(classifier, text, &ids, 1, &options);
        let explanation = (request.attention != WeightForm::None).then(explain).transpose()?;
        Ok(Some(Classification { explanation, ..Classification::new(classifier, classified) }))
    };
    let results = request.text.all().iter().enumerate().map(classify);
    let results = results.collect::<Result<_, ApiError>>()?;
    Ok(ClassifyResponse { model: name.to_owned(), results, timings: Timings::default() })
}

impl Classification {
    fn new(classifier: &Classifier, classified: Classified) -> Classification {
        let labels = classifier.labels();
        Classification {
            label: labels.name(classified.label()).to_owned(),
            probability: classified.probability(),
            probabilities: labels
                .names()
                .iter()
                .cloned()
                .zip(classified.probabilities.iter().copied())
                .collect(),
            words: classified
                .words
                .into_iter()
                .map(|word| AttendedWord { word: word.text, attention: word.attention })
                .collect(),
            explanation: None,
        }
    }
}
