//! Native vocabularies, which heedful learns: lossless, with special tokens and bytes at fixed ids.

use tokenizers::models::ModelWrapper;
use tokenizers::{AddedToken, Model, Tokenizer as Pipeline};

use super::added::{AddedTokens, MatchMode, Segment};
use super::pieces::Pieces;
use super::rules::Rules;

pub(super) struct Native {
    pub(super) pipeline: Pipeline,
    pub(super) rules: Rules,
    pub(super) pieces: Pieces,
    added: Option<AddedTokens>,
}

/// A word of a text, or an added token.
pub(super) enum Word<'t> {
    Text(&'t str),
    Added(u32),
}

impl Native {
    /// Combines rules and a trained model.
    pub(super) fn new(model: ModelWrapper, rules: Rules) -> Native {
        let mut pipeline = Pipeline::new(model);
        pipeline.with_normalizer(rules.normalizer()).expect("no added token needs normalizing");
        pipeline.with_pre_tokenizer(Some(rules.pre_tokenizer()));
        pipeline.with_decoder(Some(rules.decoder()));
        let pieces =
            Pieces::of(pipeline.get_model()).expect("a vocabulary that was just made has all its tokens");
        Native { pipeline, rules, pieces, added: None }
    }

    /// The same vocabulary with added tokens, which must be new.
    pub(super) fn with_added_tokens(&self, tokens: &[&String]) -> Result<Native, String> {
        let added = self.added_contents();
        let contents = added.iter().chain(tokens.iter().copied());
        Native::new(self.pipeline.get_model().clone(), self.rules.clone()).and_added(contents)
    }

    fn and_added<'c>(mut self, contents: impl Iterator<Item = &'c String>) -> Result<Native, String> {
        let contents: Vec<&String> = contents.collect();
        let tokens = contents.iter().map(|content| AddedToken::from(content.as_str(), false));
        self.pipeline.add_tokens(tokens).map_err(|error| error.to_string())?;
        let mut forms = Vec::new();
        for content in contents {
            let id = self.pieces.count() as u32;
            if self.pipeline.token_to_id(content) != Some(id) {
                return Err(format!("its added token `{content}` does not have the id {id}"));
            }
            let form = self.rules.prepare(content).into_owned();
            self.pieces.push(form.as_bytes());
            forms.push((form, id, MatchMode::Anywhere));
        }
        self.added = AddedTokens::new(forms)?;
        Ok(self)
    }

    /// The tokens that were added, in the order of their ids.
    fn added_contents(&self) -> Vec<String> {
        let added = self.pipeline.get_added_tokens_decoder().into_iter();
        let mut added: Vec<(u32, String)> = added.map(|(id, token)| (id, token.content)).collect();
        added.sort_unstable();
        added.into_iter().map(|(_, content)| content).collect()
    }

    /// Accepts a pipeline that [`Native::new`] could have made; otherwise the error names the difference.
    pub(super) fn from_pipeline(pipeline: Pipeline) -> Result<Native, String> {
        let mut added: Vec<(u32, AddedToken)> = pipeline.get_added_tokens_decoder().into_iter().collect();
        added.sort_unstable_by_key(|(id, _)| *id);
        let is_unsupported = |token: &AddedToken| {
            token.special || token.single_word || token.lstrip || token.rstrip || !token.normalized
        };
        let size = pipeline.get_vocab_size(false) as u32;
        if (size..).zip(&added).any(|(next, (id, token))| next != *id || is_unsupported(token)) {
            return Err("it has added tokens of another kind".to_owned());
        }
        if pipeline.get_post_processor().is_some()
            || pipeline.get_padding().is_some()
            || pipeline.get_truncation().is_some()
        {
            return Err("it adds, pads or truncates tokens".to_owned());
        }
        let model = match pipeline.get_model() {
            ModelWrapper::BPE(model) if model.byte_fallback => {
                let mut model = model.clone();
                // `CachingTokenizer` caches words; the crate's own cache would store every word a second
                // time.
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
        let rules =
            Rules::all().map(|(normalization, split)| Rules::new(normalization, split)).find(|rules| {
                [as_json(&rules.normalizer()), as_json(&rules.pre_tokenizer()), as_json(&rules.decoder())]
                    == written
            });
        match rules {
            Some(rules) => Native::new(model, rules).and_added(added.iter().map(|(_, token)| &token.content)),
            None => Err("it normalizes or splits text by other rules".to_owned()),
        }
    }

    pub(super) fn encode(&self, text: &str) -> Vec<u32> {
        let mut ids = Vec::new();
        let prepared = self.rules.prepare(text);
        self.encode_prepared(&prepared, &mut ids);
        ids
    }

    /// Appends the ids of a text prepared by the rules.
    pub(super) fn encode_prepared(&self, prepared: &str, ids: &mut Vec<u32>) {
        for word in self.words(prepared) {
            match word {
                Word::Text(word) => self.encode_word(word, ids),
                Word::Added(id) => ids.push(id),
            }
        }
    }

    /// The words of a prepared text, and the added tokens between them.
    pub(super) fn words<'t>(&'t self, prepared: &'t str) -> impl Iterator<Item = Word<'t>> {
        let segments = match &self.added {
            None => vec![Segment::Text(prepared)],
            Some(added) => added.split(prepared),
        };
        segments.into_iter().flat_map(|segment| {
            let (text, id) = match segment {
                Segment::Text(text) => (Some(text), None),
                Segment::Added(id) => (None, Some(id)),
            };
            let words = text.into_iter().flat_map(|text| self.rules.words(text));
            words.map(Word::Text).chain(id.map(Word::Added))
        })
    }

    /// Appends the ids of one word.
    pub(super) fn encode_word(&self, word: &str, ids: &mut Vec<u32>) {
        let tokens = self.pipeline.get_model().tokenize(word).expect("every byte has a token");
        ids.extend(tokens.iter().map(|token| token.id));
    }

    pub(super) fn decode(&self, ids: &[u32]) -> String {
        self.rules.without_first_space(self.text(ids))
    }

    /// The text of ids, with the space before it.
    pub(super) fn text(&self, ids: &[u32]) -> String {
        let bytes: Vec<u8> = ids.iter().flat_map(|&id| self.pieces.bytes(id)).copied().collect();
        match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        }
    }
}

/// A component of a pipeline as JSON, for comparison.
fn as_json(component: &impl serde::Serialize) -> serde_json::Value {
    serde_json::to_value(component).expect("rules are strings and numbers")
}
