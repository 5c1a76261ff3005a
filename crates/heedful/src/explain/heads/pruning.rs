//! Head pruning: the BLEU of the model without some of its heads.

use std::hash::Hasher;
use std::path::Path;

use twox_hash::XxHash3_64;

use crate::Result;
use crate::decode::SearchOptions;
use crate::metrics::{BleuOptions, corpus_bleu};
use crate::models::{HeadError, HeadName};

use crate::tasks::translate::Translator;

/// Evaluates a model with different heads pruned.
pub struct Pruning {
    translator: Translator,
    corpus: PruningCorpus,
    options: SearchOptions,
}

/// The sources to translate, with their references.
#[derive(Clone, Debug)]
pub struct PruningCorpus {
    /// One sentence per line.
    pub sources: Vec<String>,
    /// One reference for each source.
    pub references: Vec<String>,
    /// How translations are scored.
    pub bleu: BleuOptions,
}

impl Pruning {
    /// Opens the folder of a Transformer.
    pub fn open(folder: &Path, corpus: PruningCorpus, options: &SearchOptions) -> Result<Pruning> {
        let translator = Translator::open(folder)?;
        // Checked here, not after the whole model was evaluated.
        if translator.model().heads().is_empty() {
            return Err(HeadError::NoHeads.into());
        }
        Ok(Pruning { translator, corpus, options: options.clone() })
    }

    /// The model.
    pub fn translator(&self) -> &Translator {
        &self.translator
    }

    /// The model, to set its limits.
    pub fn translator_mut(&mut self) -> &mut Translator {
        &mut self.translator
    }

    /// The sources to translate.
    pub fn sources(&self) -> &[String] {
        &self.corpus.sources
    }

    /// Every head of the model.
    pub fn heads(&self) -> Vec<HeadName> {
        self.translator.model().heads()
    }

    /// Checks that the model has all of these heads.
    pub fn check(&self, heads: &[HeadName]) -> Result<(), HeadError> {
        self.translator.model().check_heads(heads)
    }

    /// The BLEU of the model with these heads pruned; of the whole model if there are none.
    pub fn bleu_without(&self, heads: &[HeadName]) -> Result<f64> {
        let options = SearchOptions { without_heads: heads.to_vec(), ..self.options.clone() };
        let sources: Vec<&str> = self.corpus.sources.iter().map(String::as_str).collect();
        let found = self.translator.translate(&sources, &options)?;
        let outputs: Vec<String> = found.iter().map(|translation| translation.best().to_owned()).collect();
        Ok(corpus_bleu(&outputs, std::slice::from_ref(&self.corpus.references), &self.corpus.bleu).score)
    }

    /// A hash of everything that determines the scores: weights, texts and options.
    pub fn fingerprint(&self) -> String {
        let mut hash = XxHash3_64::new();
        for param in self.translator.model().params().iter() {
            hash.write(param.name().as_bytes());
            param.to_vec().iter().for_each(|number| hash.write(&number.to_le_bytes()));
        }
        for text in self.corpus.sources.iter().chain(&self.corpus.references) {
            hash.write(text.as_bytes());
            hash.write(b"\n");
        }
        // The number of tokens in a batch does not change translations.
        let options = SearchOptions { batch_tokens: None, ..self.options.clone() };
        hash.write(format!("{options:?} {:?}", self.corpus.bleu).as_bytes());
        format!("{:016x}", hash.finish())
    }
}
