//! A masked language model with its vocabulary: text with gaps in, guesses out.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::path::Path;
//! use heedful::tasks::masked::Filler;
//! use heedful::tensor::DType;
//!
//! let filler = Filler::open(Path::new("run"))?;
//! let filled = filler.fill("the <mask> drives through the rain", 3, DType::F32)?;
//! println!("{}", filled.text);
//! # Ok(())
//! # }
//! ```

use std::path::Path;

use heedful_tensor::ops::BestOfRows;
use heedful_tensor::{DType, Ragged};

use super::{MaskedConfig, MaskedModel};
use crate::data::batch::BatchError;
use crate::data::tokenizer::Tokenizers;
use crate::data::{UNK, special};
use crate::layers::Pass;
use crate::models::BrokenModel;
use crate::tasks::open::{Opened, open};
use crate::tasks::{OpenError, Task};

/// The token of a gap. Characters that a vocabulary does not know are spelled in bytes, so no text ever has `<unk>`: its
/// place is free for this.
pub const MASK: u32 = UNK;

/// How a gap is written.
const GAP: &str = "<mask>";

/// A masked language model that reads and writes text.
pub struct Filler {
    model: MaskedModel,
    tokenizers: Tokenizers,
}

/// A text whose gaps were filled.
#[derive(Clone, Debug, PartialEq)]
pub struct Filled {
    /// With the best guess in every gap.
    pub text: String,
    /// For every gap the best guesses, best first.
    pub gaps: Vec<Vec<Guess>>,
}

/// What may have stood in a gap.
#[derive(Clone, Debug, PartialEq)]
pub struct Guess {
    /// As it stands in a text; a piece that begins a word has its space.
    pub piece: String,
    /// How probable the model thinks it is.
    pub probability: f64,
}

/// A folder that holds no masked language model, or a text that it cannot complete.
#[derive(Debug, thiserror::Error)]
pub enum FillError {
    /// The model.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The text.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// A model whose scores are not numbers.
    #[error(transparent)]
    Broken(#[from] BrokenModel),
    /// Nothing to fill.
    #[error("the text has no gap: write <mask> where a token is missing")]
    NoGap,
    /// Nothing to say.
    #[error("no guess was asked for: ask for at least 1")]
    NoGuess,
}

impl Filler {
    /// Opens the folder of a masked language model or of its training run.
    pub fn open(folder: &Path) -> Result<Filler, FillError> {
        let Opened { config: _, model, tokenizers } = open::<MaskedConfig>(folder, Task::Masked)?;
        Ok(Filler { model, tokenizers })
    }

    /// The model.
    pub fn model(&self) -> &MaskedModel {
        &self.model
    }

    /// The `top` best guesses for every `<mask>` of a text; all gaps are guessed at once, each knowing the others only as
    /// gaps.
    pub fn fill(&self, text: &str, top: usize, compute: DType) -> Result<Filled, FillError> {
        if top == 0 {
            return Err(FillError::NoGuess);
        }
        let mut tokens = self.encode(text);
        let rows: Vec<usize> = (0..tokens.len()).filter(|&row| tokens[row] == MASK).collect();
        if rows.is_empty() {
            return Err(FillError::NoGap);
        }
        let sequences = Ragged::from_lengths([tokens.len()]);
        self.model.check_text(&tokens, &sequences)?;
        let scores = self.model.token_scores(&tokens, &sequences, &rows, &mut Pass::inference(compute));
        let mut best = BestOfRows::default();
        // Special tokens are no guesses; there may be better ones behind them.
        let wanted = (top + special::NAMES.len()).min(scores.width());
        best.find(&scores, wanted);
        let mut gaps = Vec::new();
        for (gap, &row) in rows.iter().enumerate() {
            let normalizer = best.normalizer(gap);
            if !normalizer.is_finite() {
                return Err(BrokenModel { sentence: 0 }.into());
            }
            let spoken = best.best(gap).iter().filter(|found| found.index as usize >= special::NAMES.len());
            let guesses: Vec<_> = spoken.take(top).collect();
            tokens[row] = guesses.first().map_or(MASK, |best| best.index);
            let guess = |found: &&heedful_tensor::ops::Scored| Guess {
                piece: self.tokenizers.source.text_of(found.index),
                probability: (f64::from(found.score) - normalizer).exp(),
            };
            gaps.push(guesses.iter().map(guess).collect());
        }
        Ok(Filled { text: self.tokenizers.source.decode(&tokens), gaps })
    }

    /// The tokens of a text, `<mask>` being one. The space before a gap belongs to the piece that is missing.
    fn encode(&self, text: &str) -> Vec<u32> {
        let tokenizer = &self.tokenizers.source;
        let mut tokens = Vec::new();
        for (index, part) in text.split(GAP).enumerate() {
            if index > 0 {
                tokens.push(MASK);
            }
            let is_last = text.matches(GAP).count() == index;
            let part = if is_last { part } else { part.strip_suffix(' ').unwrap_or(part) };
            tokens.extend(if index == 0 { tokenizer.encode(part) } else { tokenizer.encode_continuation(part) });
        }
        tokens
    }
}
