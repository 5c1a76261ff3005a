//! Encoding many texts: words come again and again, so their ids are looked up instead of made.

use std::collections::HashMap;

use super::Tokenizer;

/// Words remembered by one encoder: the frequent ones come early, so they get in.
const REMEMBERED: usize = 1 << 17;
const LONGEST_REMEMBERED: usize = 64;

/// A tokenizer with a memory, for one thread.
pub struct Encoder<'t> {
    tokenizer: &'t Tokenizer,
    known: HashMap<Box<str>, Box<[u32]>>,
}

impl<'t> Encoder<'t> {
    /// Knows no word yet.
    pub fn new(tokenizer: &'t Tokenizer) -> Encoder<'t> {
        Encoder { tokenizer, known: HashMap::new() }
    }

    pub(super) fn tokenizer(&self) -> &'t Tokenizer {
        self.tokenizer
    }

    /// The same ids as [`Tokenizer::encode`].
    pub fn encode(&mut self, text: &str) -> Vec<u32> {
        let rules = &self.tokenizer.rules;
        let prepared = rules.prepare(text);
        let mut ids = Vec::with_capacity(prepared.len() / 4 + 1);
        for word in rules.words(&prepared) {
            if let Some(known) = self.known.get(word) {
                ids.extend_from_slice(known);
                continue;
            }
            let start = ids.len();
            self.tokenizer.encode_word(word, &mut ids);
            if word.len() <= LONGEST_REMEMBERED && self.known.len() < REMEMBERED {
                self.known.insert(word.into(), ids[start..].into());
            }
        }
        ids
    }
}
