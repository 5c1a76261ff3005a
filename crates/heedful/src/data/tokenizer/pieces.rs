//! The pieces of a vocabulary: the bytes that each token represents.

use tokenizers::Model;
use tokenizers::models::ModelWrapper;

use crate::data::special;

/// The name of a byte's token, as the `tokenizers` crate spells it.
pub(super) fn byte_name(byte: u8) -> String {
    format!("<0x{byte:02X}>")
}

/// The names that every vocabulary begins with: special tokens, then the bytes.
pub(super) fn reserved() -> impl Iterator<Item = String> {
    special::NAMES.iter().map(|&name| name.to_owned()).chain((0..=u8::MAX).map(byte_name))
}

/// The number of reserved names.
pub(super) const RESERVED: usize = special::NAMES.len() + 256;

const UNKNOWN: &[u8] = "\u{FFFD}".as_bytes();

/// The bytes that each token adds to a text: none for special tokens.
pub(super) struct Pieces {
    bytes: Vec<Box<[u8]>>,
}

impl Pieces {
    /// Reads a model's vocabulary; an error describes what is wrong with it.
    pub(super) fn of(model: &ModelWrapper) -> Result<Pieces, String> {
        for (id, name) in reserved().enumerate() {
            if model.id_to_token(id as u32).as_deref() != Some(&name) {
                return Err(format!("its token {id} is not {name}"));
            }
        }
        let mut bytes: Vec<Box<[u8]>> = vec![Box::default(); special::NAMES.len()];
        bytes.extend((0..=u8::MAX).map(|byte| Box::from([byte])));
        for id in RESERVED..model.get_vocab_size() {
            match model.id_to_token(id as u32) {
                Some(piece) => bytes.push(piece.into_bytes().into()),
                None => return Err(format!("its ids have a gap at {id}")),
            }
        }
        Ok(Pieces { bytes })
    }

    /// The bytes of each token.
    pub(super) fn new(bytes: Vec<Box<[u8]>>) -> Pieces {
        Pieces { bytes }
    }

    /// Adds a token.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.push(bytes.into());
    }

    pub(super) fn count(&self) -> usize {
        self.bytes.len()
    }

    /// The number of bytes of the longest piece.
    pub(super) fn longest(&self) -> usize {
        self.bytes.iter().map(|bytes| bytes.len()).max().unwrap_or(1).max(1)
    }

    pub(super) fn bytes(&self, id: u32) -> &[u8] {
        self.bytes.get(id as usize).map_or(UNKNOWN, |bytes| bytes)
    }

    pub(super) fn display(&self, id: u32) -> String {
        if let Some(name) = special::NAMES.get(id as usize) {
            return (*name).to_owned();
        }
        match self.bytes.get(id as usize) {
            None => format!("<no token {id}>"),
            Some(bytes) if (id as usize) < RESERVED => byte_name(bytes[0]),
            Some(bytes) => String::from_utf8_lossy(bytes).chars().flat_map(visible_character).collect(),
        }
    }
}

/// Spaces and control characters made visible.
fn visible_character(character: char) -> Vec<char> {
    match character {
        ' ' => vec!['▁'],
        character if character.is_control() => character.escape_default().collect(),
        character => vec![character],
    }
}
