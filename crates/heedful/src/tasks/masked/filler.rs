//! A masked language model with its vocabulary: text with masked tokens in, predictions out.
//!
//! ```no_run
//! # fn main() -> heedful::Result<()> {
//! use heedful::Filler;
//!
//! let filler = Filler::open("run")?;
//! let filled = filler.fill("the <mask> drives through the rain", 3)?;
//! println!("{}", filled.text);
//! # Ok(())
//! # }
//! ```

use std::path::Path;

use heedful_tensor::ops::{Scored, TopK};
use heedful_tensor::{Precision, Ragged};

use super::{MaskedConfig, MaskedModel};
use crate::data::TextLimit;
use crate::data::tokenizer::{Tokenizer, Tokenizers};
use crate::decode::DecodeError;
use crate::layers::{AttentionMap, MaskFault, Pass};
use crate::models::{BrokenModel, Model, default_precision};
use crate::tasks::folder::ModelFolder;
use crate::tasks::open::{OpenedModel, open};
use crate::tasks::{OpenOptions, Task};
use crate::{Error, Result};

/// The placeholder of a masked token in a text.
const MASK: &str = "<mask>";

/// A masked language model that takes and returns text.
pub struct Filler {
    model: MaskedModel,
    tokenizers: Tokenizers,
    limit: TextLimit,
    compute: Option<Precision>,
}

/// A text whose masked tokens were predicted.
#[derive(Clone, Debug, PartialEq)]
pub struct Filled {
    /// The text with the best prediction for every masked token.
    pub text: String,
    /// The most probable predictions for every masked token, best first.
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

impl Filler {
    /// Opens the folder of a masked language model or of its training run.
    pub fn open(folder: impl AsRef<Path>) -> Result<Filler> {
        Filler::open_with(folder, &OpenOptions::new())
    }

    /// As [`Filler::open`], with options.
    pub fn open_with(folder: impl AsRef<Path>, options: &OpenOptions) -> Result<Filler> {
        Filler::open_folder(ModelFolder::open(folder.as_ref())?, options)
    }

    /// As [`Filler::open_with`], for an opened folder.
    #[doc(hidden)]
    pub fn open_folder(folder: ModelFolder, options: &OpenOptions) -> Result<Filler> {
        let opened = open::<MaskedConfig>(folder, Task::Masked, options)?;
        let OpenedModel { model, tokenizers, trained, .. } = opened;
        let limit = options.limit(TextLimit::new(&tokenizers.source, model.longest_text(), trained))?;
        let compute = options.requested_precision();
        Ok(Filler { model, tokenizers, limit, compute })
    }

    /// Sets the maximum number of tokens of a text.
    #[doc(hidden)]
    pub fn set_max_tokens(&mut self, tokens: usize) -> Result<()> {
        self.limit = self.limit.with_tokens(tokens)?;
        Ok(())
    }

    /// The type of its matrix products.
    pub fn compute(&self) -> Precision {
        self.compute.unwrap_or_else(|| default_precision([self.model.params()]))
    }

    /// The maximum number of tokens of a text.
    #[doc(hidden)]
    pub fn limit(&self) -> TextLimit {
        self.limit
    }

    /// The model.
    #[doc(hidden)]
    pub fn model(&self) -> &MaskedModel {
        &self.model
    }

    /// The id of the `<mask>` token.
    #[doc(hidden)]
    pub fn mask(&self) -> u32 {
        self.model.config().stack.special.mask
    }

    /// The `top` best predictions for every `<mask>` of a text. All are predicted in one pass: each from the
    /// text in which the others are masked.
    pub fn fill(&self, text: &str, top: usize) -> Result<Filled> {
        self.fill_tokens(self.encode(text), top)
    }

    /// As [`Filler::fill`], for a text from [`Filler::encode`].
    #[doc(hidden)]
    pub fn fill_tokens(&self, tokens: Vec<u32>, top: usize) -> Result<Filled> {
        if !tokens.contains(&self.mask()) && top > 0 {
            return Err(no_mask());
        }
        let (filled, _) = self.attend_in(&mut Pass::inference(self.compute()), tokens, top)?;
        Ok(filled)
    }

    /// As [`Filler::fill_tokens`], also returning the attention that the pass records. Without a `<mask>`
    /// nothing is predicted.
    #[doc(hidden)]
    pub fn attend_in(
        &self,
        pass: &mut Pass,
        mut tokens: Vec<u32>,
        top: usize,
    ) -> Result<(Filled, Vec<AttentionMap>)> {
        if top == 0 {
            return Err(Error::new("the number of predictions is 0: set it to at least 1"));
        }
        let mask = self.mask();
        let rows: Vec<usize> = (0..tokens.len()).filter(|&row| tokens[row] == mask).collect();
        if tokens.is_empty() {
            return Err(no_mask());
        }
        let sequences = Ragged::from_lengths([tokens.len()]);
        self.model.check_text(&tokens, &sequences)?;
        // Without a mask, any row will do: the pass still records the attention.
        let scored = if rows.is_empty() { &[0][..] } else { &rows };
        let mut best = TopK::default();
        // Special tokens are filtered out, so more candidates than `top` are needed.
        let not_text = self.model.config().stack.special.not_text();
        let find = || {
            let scores = self.model.token_scores(&tokens, &sequences, scored, pass);
            pass.check_masks()?;
            let candidates = top.saturating_add(not_text.len()).min(scores.width());
            best.find(&scores, candidates, pass.compute().precision.rounding());
            Ok::<_, MaskFault>(())
        };
        self.model.params.device().catch_oom(find).map_err(DecodeError::from)??;
        let mut gaps = Vec::new();
        for (gap, &row) in rows.iter().enumerate() {
            let normalizer = best.normalizer(gap);
            if !normalizer.is_finite() {
                return Err(BrokenModel { sentence: 0 }.into());
            }
            let is_text = |token: &&Scored| not_text.binary_search(&token.index).is_err();
            let text_tokens = best.best(gap).iter().filter(is_text);
            let guesses: Vec<_> = text_tokens.take(top).collect();
            tokens[row] = guesses.first().map_or(mask, |best| best.index);
            let guess = |token: &&Scored| Guess {
                piece: self.tokenizers.source.token_text(token.index),
                probability: (f64::from(token.score) - normalizer).exp(),
            };
            gaps.push(guesses.iter().map(guess).collect());
        }
        let filled = Filled { text: self.tokenizers.source.decode(&tokens), gaps };
        Ok((filled, pass.take_attention()?))
    }

    /// The vocabulary of its texts.
    #[doc(hidden)]
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizers.source
    }

    /// The tokens of a text; `<mask>` is one token. The space before a `<mask>` belongs to the masked piece.
    #[doc(hidden)]
    pub fn encode(&self, text: &str) -> Vec<u32> {
        let tokenizer = &self.tokenizers.source;
        let mut tokens = Vec::new();
        let gaps = text.matches(MASK).count();
        for (index, part) in text.split(MASK).enumerate() {
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

fn no_mask() -> Error {
    Error::new("the text has no <mask>: write one for each token to predict")
}
