//! Encoding many texts: words recur, so their ids are cached.

use std::collections::HashMap;

use super::native::Word;
use super::{Origin, Tokenizer};

/// Maximum number of cached words: frequent words occur early, so they are among them.
const MAX_CACHED_WORDS: usize = 1 << 17;
const MAX_CACHED_BYTES: usize = 64;

/// A tokenizer with a cache of words, for one thread.
pub struct CachingTokenizer<'t> {
    tokenizer: &'t Tokenizer,
    cache: HashMap<Box<str>, Box<[u32]>>,
}

impl<'t> CachingTokenizer<'t> {
    /// Starts with an empty cache.
    pub fn new(tokenizer: &'t Tokenizer) -> CachingTokenizer<'t> {
        CachingTokenizer { tokenizer, cache: HashMap::new() }
    }

    pub(super) fn tokenizer(&self) -> &'t Tokenizer {
        self.tokenizer
    }

    /// The same ids as [`Tokenizer::encode`].
    pub fn encode(&mut self, text: &str) -> Vec<u32> {
        let native = match &self.tokenizer.origin {
            Origin::Native(native) => native,
            // Not cached here: its pieces may cross word boundaries.
            Origin::Foreign(foreign) => return foreign.encode(text),
        };
        let prepared = native.rules.prepare(text);
        let mut ids = Vec::with_capacity(prepared.len() / 4 + 1);
        for word in native.words(&prepared) {
            let word = match word {
                Word::Text(word) => word,
                Word::Added(id) => {
                    ids.push(id);
                    continue;
                }
            };
            if let Some(cached) = self.cache.get(word) {
                ids.extend_from_slice(cached);
                continue;
            }
            let start = ids.len();
            native.encode_word(word, &mut ids);
            if word.len() <= MAX_CACHED_BYTES && self.cache.len() < MAX_CACHED_WORDS {
                self.cache.insert(word.into(), ids[start..].into());
            }
        }
        ids
    }
}
