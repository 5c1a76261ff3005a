//! The tokenizer of a model.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use heedful::data::tokenizer::Tokenizer as Vocabulary;
use pyo3::prelude::*;

use crate::arguments::PyInt;
use crate::errors::value_error;

/// A side of a model that encodes text.
pub(crate) trait Encode: Send + Sync {
    /// The token ids of a text.
    fn encode(&self, text: &str) -> Vec<u32>;
    /// The vocabulary of the ids.
    fn vocabulary(&self) -> &Vocabulary;
}

/// The vocabulary of a model, with encoding and decoding.
#[pyclass(frozen, module = "heedful")]
pub(crate) struct Tokenizer {
    side: Arc<dyn Encode>,
    tokens: OnceLock<Tokens>,
}

/// The names of all tokens, built on first use.
struct Tokens {
    names: Vec<String>,
    ids: HashMap<String, u32>,
}

impl Tokenizer {
    pub(crate) fn new(side: Arc<dyn Encode>) -> Tokenizer {
        Tokenizer { side, tokens: OnceLock::new() }
    }

    fn tokens(&self) -> &Tokens {
        self.tokens.get_or_init(|| {
            let names = self.side.vocabulary().names();
            // The first of two tokens with the same name wins.
            let ids = names.iter().enumerate().rev().map(|(id, name)| (name.clone(), id as u32)).collect();
            Tokens { names, ids }
        })
    }
}

#[pymethods]
impl Tokenizer {
    /// The ids of a text.
    fn encode(&self, text: &str) -> Vec<u32> {
        self.side.encode(text)
    }

    /// The text of ids, without special tokens.
    fn decode(&self, ids: &Bound<'_, PyAny>) -> PyResult<String> {
        let ids = ids.try_iter()?.map(|id| id?.extract::<PyInt>()?.at_least("an id", 0));
        Ok(self.side.vocabulary().decode(&ids.collect::<PyResult<Vec<u32>>>()?))
    }

    /// The tokens of a text in readable form: spaces as ▁.
    fn pieces(&self, text: &str) -> Vec<String> {
        let vocabulary = self.side.vocabulary();
        self.encode(text).into_iter().map(|id| vocabulary.piece(id)).collect()
    }

    /// The id of a token; None if there is no such token.
    fn token_to_id(&self, token: &str) -> Option<u32> {
        self.tokens().ids.get(token).copied()
    }

    /// The token of an id.
    fn id_to_token(&self, id: PyInt) -> PyResult<&str> {
        let (id, names): (usize, _) = (id.at_least("id", 0)?, &self.tokens().names);
        let last = names.len() - 1;
        names
            .get(id)
            .map(String::as_str)
            .ok_or_else(|| value_error(format!("id is {id}: ids are 0 to {last}")))
    }

    /// All tokens, in the order of their ids.
    #[getter]
    fn vocabulary(&self) -> Vec<String> {
        self.tokens().names.clone()
    }

    /// The number of tokens.
    #[getter]
    fn vocabulary_size(&self) -> usize {
        self.side.vocabulary().size()
    }

    fn __len__(&self) -> usize {
        self.vocabulary_size()
    }

    fn __repr__(&self) -> String {
        format!("Tokenizer(vocabulary_size={})", self.vocabulary_size())
    }
}
