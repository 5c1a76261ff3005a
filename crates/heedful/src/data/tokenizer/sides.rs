//! The vocabularies of source and target: joint or separate.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use heedful_tensor::cpu::threads;
use serde::{Deserialize, Serialize};

use super::count::WordCounts;
use super::train::VocabularyOptions;
use super::{Tokenizer, TokenizerError};
use crate::data::corpus::{CorpusError, CorpusFiles, Pair};
use crate::data::parallel::{CHUNK, map_chunks};

pub(crate) const JOINT_FILE: &str = "tokenizer.json";
pub(crate) const SOURCE_FILE: &str = "source.tokenizer.json";
pub(crate) const TARGET_FILE: &str = "target.tokenizer.json";
/// The SentencePiece model that a vocabulary was converted from, or the models of both sides.
pub(crate) const JOINT_PIECES: &str = "sentencepiece.model";
pub(crate) const SIDE_PIECES: [&str; 2] = ["source.spm", "target.spm"];

/// Whether source and target share a vocabulary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sharing {
    /// One vocabulary for both sides: names and numbers are the same pieces, and embeddings can be tied.
    #[default]
    Joint,
    /// One vocabulary for each side, of the same size: for scripts that have nothing in common.
    Separate,
}

/// The tokenizers of sources and targets.
#[derive(Clone, Debug)]
pub struct Tokenizers {
    /// The tokenizer of sources.
    pub source: Arc<Tokenizer>,
    /// The tokenizer of targets; the same one if the vocabulary is joint.
    pub target: Arc<Tokenizer>,
}

/// Vocabularies with added tokens.
pub(crate) struct ExtendedTokenizers {
    pub tokenizers: Tokenizers,
    /// For source and target: for each added token, in the order of their ids, the pieces that its text had
    /// before.
    pub(crate) pieces: [Vec<Vec<u32>>; 2],
    /// How many tokens were skipped because they already existed.
    pub known: usize,
}

/// A vocabulary cannot be learned from a corpus.
#[derive(Debug, thiserror::Error)]
pub enum VocabularyError {
    /// The corpus cannot be read.
    #[error(transparent)]
    Corpus(#[from] CorpusError),
    /// The vocabulary cannot be learned.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
}

impl crate::error::Cause for VocabularyError {}

impl Tokenizers {
    /// One vocabulary for both sides.
    pub fn joint(tokenizer: Tokenizer) -> Tokenizers {
        let tokenizer = Arc::new(tokenizer);
        Tokenizers { source: Arc::clone(&tokenizer), target: tokenizer }
    }

    /// One vocabulary for each side.
    pub fn separate(source: Tokenizer, target: Tokenizer) -> Tokenizers {
        Tokenizers { source: Arc::new(source), target: Arc::new(target) }
    }

    /// Whether the vocabulary is joint or separate.
    pub fn sharing(&self) -> Sharing {
        if Arc::ptr_eq(&self.source, &self.target) { Sharing::Joint } else { Sharing::Separate }
    }

    /// The vocabularies with tokens added on both sides. Tokens that already exist on either side are
    /// skipped.
    pub(crate) fn with_added_tokens(&self, tokens: &[String]) -> Result<ExtendedTokenizers, TokenizerError> {
        let is_known = |token: &str| self.source.has_token(token) || self.target.has_token(token);
        let source = self.source.with_added_tokens(tokens, is_known)?;
        let count = source.pieces.len();
        let (tokenizers, pieces) = match self.sharing() {
            Sharing::Joint => (Tokenizers::joint(source.tokenizer), [source.pieces.clone(), source.pieces]),
            Sharing::Separate => {
                let target = self.target.with_added_tokens(tokens, is_known)?;
                (Tokenizers::separate(source.tokenizer, target.tokenizer), [source.pieces, target.pieces])
            }
        };
        Ok(ExtendedTokenizers { tokenizers, pieces, known: tokens.len() - count })
    }

    /// Learns vocabularies from a corpus. `progress` is called from time to time with the number of pairs
    /// read.
    pub fn train(
        files: &CorpusFiles,
        options: &VocabularyOptions,
        sharing: Sharing,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Tokenizers, VocabularyError> {
        let [source, target] = count(files, options, sharing, progress)?;
        Ok(match sharing {
            Sharing::Joint => Tokenizers::joint(source.train()?),
            Sharing::Separate => Tokenizers::separate(source.train()?, target.train()?),
        })
    }

    /// Reads `tokenizer.json`, or `source.tokenizer.json` and `target.tokenizer.json`, from a folder.
    pub fn load(folder: &Path) -> Result<Tokenizers, TokenizerError> {
        let separate = [SOURCE_FILE, TARGET_FILE].map(|name| folder.join(name));
        if separate.iter().any(|path| path.exists()) && !folder.join(JOINT_FILE).exists() {
            return Ok(Tokenizers::separate(Tokenizer::load(&separate[0])?, Tokenizer::load(&separate[1])?));
        }
        Ok(Tokenizers::joint(Tokenizer::load(&folder.join(JOINT_FILE))?))
    }

    /// Writes the files that [`Tokenizers::load`] reads, and removes those of the other kind of sharing,
    /// which would conflict with them.
    pub fn save(&self, folder: &Path) -> Result<(), TokenizerError> {
        let write_error =
            |path: &Path, error| TokenizerError::Write { file: path.display().to_string(), error };
        fs::create_dir_all(folder).map_err(|error| write_error(folder, error))?;
        let stale: &[&str] = match self.sharing() {
            Sharing::Joint => {
                self.source.save(&folder.join(JOINT_FILE))?;
                &[SOURCE_FILE, TARGET_FILE]
            }
            Sharing::Separate => {
                self.source.save(&folder.join(SOURCE_FILE))?;
                self.target.save(&folder.join(TARGET_FILE))?;
                &[JOINT_FILE]
            }
        };
        for path in stale.iter().map(|name| folder.join(name)).filter(|path| path.exists()) {
            fs::remove_file(&path).map_err(|error| write_error(&path, error))?;
        }
        Ok(())
    }
}

/// Counts the words of both sides; a joint vocabulary uses only the first count. Chunks are counted on all
/// threads and summed in the order of the text, so the result does not depend on the number of threads.
fn count(
    files: &CorpusFiles,
    options: &VocabularyOptions,
    sharing: Sharing,
    progress: &mut dyn FnMut(u64),
) -> Result<[WordCounts; 2], CorpusError> {
    let nothing = || [WordCounts::new(options), WordCounts::new(options)];
    let target_side = match sharing {
        Sharing::Joint => 0,
        Sharing::Separate => 1,
    };
    let mut pairs = files.pairs();
    let mut total = nothing();
    let mut read = 0;
    map_chunks(
        &mut vec![(); threads::thread_count()],
        || {
            let chunk = pairs.by_ref().take(CHUNK).collect::<Result<Vec<Pair>, CorpusError>>()?;
            read += chunk.len() as u64;
            progress(read);
            Ok((!chunk.is_empty()).then_some(chunk))
        },
        |(), chunk| {
            let mut counts = nothing();
            for pair in &chunk {
                counts[0].add(&pair.source);
                counts[target_side].add(&pair.target);
            }
            counts
        },
        |[source, target]| {
            total[0].merge(source);
            total[1].merge(target);
            Ok(())
        },
    )?;
    Ok(total)
}
