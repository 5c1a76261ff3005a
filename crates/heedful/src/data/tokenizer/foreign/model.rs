//! The model that splits a normalized text into tokens.

use tokenizers::Model;
use tokenizers::models::ModelWrapper;

use super::unigram::UnigramModel;

pub(super) enum ForeignModel {
    Unigram(UnigramModel),
    /// BPE or WordPiece, by the `tokenizers` crate.
    Library(Box<ModelWrapper>),
}

impl ForeignModel {
    /// Appends the ids of a pre-token.
    pub(super) fn encode(&self, text: &str, ids: &mut Vec<u32>) {
        match self {
            ForeignModel::Unigram(model) => model.encode(text, ids),
            // It fails only without an unknown token, which was checked when the file was read.
            ForeignModel::Library(model) => {
                ids.extend(model.tokenize(text).unwrap_or_default().iter().map(|token| token.id));
            }
        }
    }
}
