//! Vocabularies that heedful learns: lossless, with special tokens and bytes in fixed places.

use tokenizers::models::ModelWrapper;
use tokenizers::{Model, Tokenizer as Pipeline};

use super::pieces::Pieces;
use super::rules::Rules;

pub(super) struct Own {
    pub(super) pipeline: Pipeline,
    pub(super) rules: Rules,
    pub(super) pieces: Pieces,
}

impl Own {
    /// Combines rules and a trained model.
    pub(super) fn new(model: ModelWrapper, rules: Rules) -> Own {
        let mut pipeline = Pipeline::new(model);
        pipeline.with_normalizer(rules.normalizer()).expect("no added token needs normalizing");
        pipeline.with_pre_tokenizer(Some(rules.pre_tokenizer()));
        pipeline.with_decoder(Some(rules.decoder()));
        let pieces =
            Pieces::of(pipeline.get_model()).expect("a vocabulary that was just made has all its tokens");
        Own { pipeline, rules, pieces }
    }

    /// Accepts a pipeline if [`Own::new`] could have made it; otherwise returns what differs.
    pub(super) fn from_pipeline(pipeline: Pipeline) -> Result<Own, String> {
        if pipeline.get_vocab_size(true) != pipeline.get_vocab_size(false)
            || !pipeline.get_added_vocabulary().is_empty()
        {
            return Err("it has added tokens".to_owned());
        }
        if pipeline.get_post_processor().is_some()
            || pipeline.get_padding().is_some()
            || pipeline.get_truncation().is_some()
        {
            return Err("it adds, pads or cuts tokens".to_owned());
        }
        let model = match pipeline.get_model() {
            ModelWrapper::BPE(model) if model.byte_fallback => {
                let mut model = model.clone();
                // `CachingTokenizer` caches words; the crate's own cache would store every word a second time.
                model.resize_cache(0);
                ModelWrapper::BPE(model)
            }
            ModelWrapper::Unigram(model) if model.byte_fallback() => {
                let mut model = model.clone();
                model.resize_cache(0);
                ModelWrapper::Unigram(model)
            }
            _ => return Err("its model does not encode unknown characters as bytes".to_owned()),
        };
        Pieces::of(&model)?;
        let written = [
            as_json(&pipeline.get_normalizer()),
            as_json(&pipeline.get_pre_tokenizer()),
            as_json(&pipeline.get_decoder()),
        ];
        let rules = Rules::all().map(|(normalization, cuts)| Rules::new(normalization, cuts)).find(|rules| {
            [as_json(&rules.normalizer()), as_json(&rules.pre_tokenizer()), as_json(&rules.decoder())]
                == written
        });
        match rules {
            Some(rules) => Ok(Own::new(model, rules)),
            None => Err("it normalizes or splits text by other rules".to_owned()),
        }
    }

    pub(super) fn encode(&self, text: &str) -> Vec<u32> {
        let mut ids = Vec::new();
        let prepared = self.rules.prepare(text);
        for word in self.rules.words(&prepared) {
            self.encode_word(word, &mut ids);
        }
        ids
    }

    /// Appends the ids of one word.
    pub(super) fn encode_word(&self, word: &str, ids: &mut Vec<u32>) {
        let tokens = self.pipeline.get_model().tokenize(word).expect("every byte has a token");
        ids.extend(tokens.iter().map(|token| token.id));
    }

    pub(super) fn decode(&self, ids: &[u32]) -> String {
        self.rules.without_first_space(self.text(ids))
    }

    /// The text of ids with the space before it.
    pub(super) fn text(&self, ids: &[u32]) -> String {
        let bytes: Vec<u8> = ids.iter().flat_map(|&id| self.pieces.bytes(id)).copied().collect();
        match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        }
    }
}

/// A part of a pipeline as JSON, which can be compared.
fn as_json(part: &impl serde::Serialize) -> serde_json::Value {
    serde_json::to_value(part).expect("rules are strings and numbers")
}
