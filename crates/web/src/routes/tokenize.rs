//! `POST /v1/tokenize`: the tokens of a text, as a model reads or writes it.

use heedful::ExplainedToken;
use heedful::data::tokenizer::Tokenizer;
use serde::{Deserialize, Serialize};

use crate::error::ApiError;
use crate::model::{Engine, OpenModel};
use crate::session::Session;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TokenizeRequest {
    text: String,
    model: Option<String>,
    #[serde(default)]
    side: Side,
}

/// The vocabulary of a translator; other models have one.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Side {
    #[default]
    Source,
    Target,
}

#[derive(Serialize)]
pub(crate) struct TokenizeResponse {
    model: String,
    tokens: Vec<Token>,
}

#[derive(Serialize)]
struct Token {
    id: u32,
    #[serde(flatten)]
    token: ExplainedToken,
}

pub(crate) fn answer(session: &Session, request: TokenizeRequest) -> Result<TokenizeResponse, ApiError> {
    let (name, tokenizer) =
        session.select(request.model.as_deref(), |model| Some(tokenizer(model, request.side)))?;
    let ids = tokenizer.encode(&request.text);
    let words = tokenizer.display_words(&ids);
    let token = |(&id, word): (&u32, Option<usize>)| Token {
        id,
        token: ExplainedToken {
            piece: tokenizer.piece(id),
            word,
            log_probability: None,
            alternatives: Vec::new(),
        },
    };
    Ok(TokenizeResponse { model: name.to_owned(), tokens: ids.iter().zip(words).map(token).collect() })
}

fn tokenizer(model: &OpenModel, side: Side) -> &Tokenizer {
    match (&model.engine, side) {
        (Engine::Translator(translator), Side::Source) => &translator.tokenizers().source,
        (Engine::Translator(translator), Side::Target) => &translator.tokenizers().target,
        (Engine::Generator(generator), _) => generator.tokenizer(),
        (Engine::Classifier(classifier), _) => classifier.tokenizer(),
        (Engine::Filler(filler), _) => filler.tokenizer(),
    }
}
