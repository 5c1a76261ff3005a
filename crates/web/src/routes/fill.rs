//! `POST /v1/fill`.

use heedful::{Explanation, SearchOptions, WeightForm};
use serde::{Deserialize, Serialize};

use super::{Texts, explaining, too_long};
use crate::error::ApiError;
use crate::model::Engine;
use crate::session::{Session, Timings};

const MAX_PREDICTIONS: usize = 100;
const PREDICTIONS: usize = 5;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FillRequest {
    text: Texts,
    model: Option<String>,
    top: Option<usize>,
    #[serde(default)]
    attention: WeightForm,
    #[serde(default)]
    raw_scores: bool,
}

#[derive(Serialize)]
pub(crate) struct FillResponse {
    model: String,
    results: Vec<FilledText>,
    timings: Timings,
}

#[derive(Serialize)]
struct FilledText {
    text: String,
    gaps: Vec<Vec<Prediction>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    explanation: Option<Explanation>,
}

#[derive(Serialize)]
struct Prediction {
    piece: String,
    probability: f64,
}

pub(crate) fn answer(session: &Session, request: FillRequest) -> Result<FillResponse, ApiError> {
    let top = request.top.unwrap_or(PREDICTIONS);
    if top == 0 || top > MAX_PREDICTIONS {
        let message = format!("`top` must be a whole number from 1 to {MAX_PREDICTIONS}");
        return Err(ApiError::bad_request(message));
    }
    let (name, filler) = session.select(request.model.as_deref(), |model| match &model.engine {
        Engine::Filler(filler) => Some(&**filler),
        _ => None,
    })?;
    let options = explaining(request.attention, request.raw_scores, &SearchOptions::default())?;
    let fill = |(index, text): (usize, &String)| {
        let ids = filler.limit().encode(text, |text| filler.encode(text));
        let ids = ids.map_err(|error| too_long("text", index, error))?;
        if !ids.contains(&filler.mask()) {
            return Err(ApiError::bad_request(format!(
                "`text`: text {} has no <mask>: write one for each token to predict",
                index + 1
            )));
        }
        let filled = filler.fill_tokens(ids.clone(), top)?;
        let explain = || Explanation::of_gaps(filler, text, &ids, &options);
        let explanation = (request.attention != WeightForm::None).then(explain).transpose()?;
        let gaps = filled.gaps.into_iter().map(|gap| {
            let prediction =
                |guess: heedful::Guess| Prediction { piece: guess.piece, probability: guess.probability };
            gap.into_iter().map(prediction).collect()
        });
        Ok(FilledText { text: filled.text, gaps: gaps.collect(), explanation })
    };
    let results = request.text.all().iter().enumerate().map(fill);
    let results = results.collect::<Result<_, ApiError>>()?;
    Ok(FillResponse { model: name.to_owned(), results, timings: Timings::default() })
}
