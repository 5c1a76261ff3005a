//! Encoding many texts: words recur, so their ids are cached.

use std::collections::HashMap;

use super::own::Word;
use super::{Origin, Tokenizer};

/// The most words in a cache: frequent words occur early, so they are among them.
const MOST_CACHED: usize = 1 << 17;
const LONGEST_CACHED: usize = 64;

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
        let own = match &self.tokenizer.origin {
            Origin::Own(own) => own,
            // Its pieces may cross words, and what it caches is its own affair.
            Origin::Foreign(foreign) => return foreign.encode(text),
        };
        let prepared = own.rules.prepare(text);
        let mut ids = Vec::with_capacity(prepared.len() / 4 + 1);
        for word in own.words(&prepared) {
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
            own.encode_word(word, &mut ids);
            if word.len() <= LONGEST_CACHED && self.cache.len() < MOST_CACHED {
                self.cache.insert(word.into(), ids[start..].into());
            }
        }
        ids
    }
}
