//! A masked language model with its vocabulary: text with masked tokens in, predictions out.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::path::Path;
//! use heedful::tasks::masked::Filler;
//! use heedful::tensor::Precision;
//!
//! let filler = Filler::open(Path::new("run"))?;
//! let filled = filler.fill("the <mask> drives through the rain", 3, Precision::F32)?;
//! println!("{}", filled.text);
//! # Ok(())
//! # }
//! ```

use std::path::Path;

use heedful_tensor::ops::{Scored, TopK};
use heedful_tensor::{OutOfMemory, Precision, Ragged};

use super::{MaskedConfig, MaskedModel};
use crate::data::TextLimit;
use crate::data::batch::BatchError;
use crate::data::text_limit::LimitError;
use crate::data::tokenizer::{Tokenizer, Tokenizers};
use crate::layers::{AttentionMap, MaskFault, Pass, TooManyWeights};
use crate::models::BrokenModel;
use crate::tasks::open::{Opened, open};
use crate::tasks::{OpenError, Task};

/// How a masked token is written in a text.
const GAP: &str = "<mask>";

/// A masked language model that takes and returns text.
pub struct Filler {
    model: MaskedModel,
    tokenizers: Tokenizers,
    limit: TextLimit,
}

/// A text whose masked tokens were predicted.
#[derive(Clone, Debug, PartialEq)]
pub struct Filled {
    /// With the best prediction for every masked token.
    pub text: String,
    /// For every masked token the most probable predictions, best first.
    pub gaps: Vec<Vec<Guess>>,
}

/// A prediction for a masked token.
#[derive(Clone, Debug, PartialEq)]
pub struct Guess {
    /// The token's text; a piece that begins a word includes its space.
    pub piece: String,
    /// Its probability.
    pub probability: f64,
}

/// Why a masked language model cannot be opened, or cannot fill a text.
#[derive(Debug, thiserror::Error)]
pub enum FillError {
    /// The folder holds no masked language model.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The text does not fit the model.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// The model's scores are not finite.
    #[error(transparent)]
    Broken(#[from] BrokenModel),
    /// The device has no memory for the batch.
    #[error("{0}: give it less text at a time, or use --device cpu")]
    OutOfMemory(#[from] OutOfMemory),
    /// More attention weights than can be recorded.
    #[error(transparent)]
    Weights(#[from] TooManyWeights),
    /// A given mask cannot be applied.
    #[error(transparent)]
    Mask(#[from] MaskFault),
    /// The text has no `<mask>`.
    #[error("the text has no <mask>: write one for each token to predict")]
    NoGap,
    /// The number of predictions is 0.
    #[error("the number of predictions is 0: set it to at least 1")]
    NoGuess,
}

impl Filler {
    /// Opens the folder of a masked language model or of its training run.
    pub fn open(folder: &Path) -> Result<Filler, FillError> {
        let Opened { model, tokenizers, trained, .. } = open::<MaskedConfig>(folder, Task::Masked)?;
        let limit = TextLimit::new(&tokenizers.source, model.longest_text(), trained);
        Ok(Filler { model, tokenizers, limit })
    }

    /// Sets the most tokens of a text.
    pub fn set_max_tokens(&mut self, tokens: usize) -> Result<(), LimitError> {
        self.limit = self.limit.with_tokens(tokens)?;
        Ok(())
    }

    /// The most tokens of a text.
    pub fn limit(&self) -> TextLimit {
        self.limit
    }

    /// The model.
    pub fn model(&self) -> &MaskedModel {
        &self.model
    }

    /// The token that stands for `<mask>`.
    pub fn mask(&self) -> u32 {
        self.model.config().stack.special.mask
    }

    /// The `top` best predictions for every `<mask>` of a text. All are predicted at once, each from a text in which the
    /// others are masked.
    pub fn fill(&self, text: &str, top: usize, compute: Precision) -> Result<Filled, FillError> {
        self.fill_tokens(self.encode(text), top, compute)
    }

    /// As [`Filler::fill`], for a text from [`Filler::encode`].
    pub fn fill_tokens(&self, tokens: Vec<u32>, top: usize, compute: Precision) -> Result<Filled, FillError> {
        if !tokens.contains(&self.mask()) && top > 0 {
            return Err(FillError::NoGap);
        }
        let (filled, _) = self.attend_in(&mut Pass::inference(compute), tokens, top)?;
        Ok(filled)
    }

    /// As [`Filler::fill_tokens`], with what a pass records meanwhile. Without a `<mask>` nothing is predicted.
    pub fn attend_in(
        &self,
        pass: &mut Pass,
        mut tokens: Vec<u32>,
        top: usize,
    ) -> Result<(Filled, Vec<AttentionMap>), FillError> {
        if top == 0 {
            return Err(FillError::NoGuess);
        }
        let mask = self.mask();
        let rows: Vec<usize> = (0..tokens.len()).filter(|&row| tokens[row] == mask).collect();
        if tokens.is_empty() {
            return Err(FillError::NoGap);
        }
        let sequences = Ragged::from_lengths([tokens.len()]);
        self.model.check_text(&tokens, &sequences)?;
        // Scores of some row: the model reads the text in any case.
        let scored = if rows.is_empty() { &[0][..] } else { &rows };
        let mut best = TopK::default();
        // Special tokens are no guesses; there may be better ones behind them.
        let not_text = self.model.config().stack.special.not_text();
        self.model.params.device().fitting(|| {
            let scores = self.model.token_scores(&tokens, &sequences, scored, pass);
            pass.check_masks()?;
            let wanted = top.saturating_add(not_text.len()).min(scores.width());
            best.find(&scores, wanted, pass.compute().precision.rounding());
            Ok::<_, MaskFault>(())
        })??;
        let mut gaps = Vec::new();
        for (gap, &row) in rows.iter().enumerate() {
            let normalizer = best.normalizer(gap);
            if !normalizer.is_finite() {
                return Err(BrokenModel { sentence: 0 }.into());
            }
            let is_text = |found: &&Scored| not_text.binary_search(&found.index).is_err();
            let ordinary = best.best(gap).iter().filter(is_text);
            let guesses: Vec<_> = ordinary.take(top).collect();
            tokens[row] = guesses.first().map_or(mask, |best| best.index);
            let guess = |found: &&Scored| Guess {
                piece: self.tokenizers.source.text_of(found.index),
                probability: (f64::from(found.score) - normalizer).exp(),
            };
            gaps.push(guesses.iter().map(guess).collect());
        }
        let filled = Filled { text: self.tokenizers.source.decode(&tokens), gaps };
        Ok((filled, pass.take_attention()?))
    }

    /// The vocabulary of its texts.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizers.source
    }

    /// The tokens of a text, `<mask>` being one. The space before a `<mask>` belongs to the masked piece.
    pub fn encode(&self, text: &str) -> Vec<u32> {
        let tokenizer = &self.tokenizers.source;
        let mut tokens = Vec::new();
        let gaps = text.matches(GAP).count();
        for (index, part) in text.split(GAP).enumerate() {
            if index > 0 {
                tokens.push(self.mask());
            }
            let is_last = index == gaps;
            let part = if is_last { part } else { part.strip_suffix(' ').unwrap_or(part) };
            tokens.extend(if index == 0 {
                tokenizer.encode(part)
            } else {
                tokenizer.encode_continuation(part)
            });
        }
        tokens
    }
}
