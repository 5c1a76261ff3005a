//! How texts are explained, and why one cannot be.

use heedful_tensor::Precision;

use super::explanation::WeightForm;
use crate::decode::{DecodeError, SearchOptions};
use crate::layers::{AttentionMask, AttentionRole, Pass};
use crate::tasks::OpenError;
use crate::tasks::classify::ClassifyError;
use crate::tasks::language::GenerateError;
use crate::tasks::masked::FillError;

/// How a text is explained.
#[derive(Clone, Debug, Default)]
pub struct ExplainOptions {
    /// Whether and how attention weights are held.
    pub form: WeightForm,
    /// Whether their scores are held too.
    pub scores: ScoresKept,
    /// Masks under which the model reads the text. Outputs are searched without them; their probabilities and their
    /// attention are those under the masks.
    pub masks: Vec<AttentionMask>,
    /// How outputs are searched; of all tasks the type that is computed in.
    pub search: SearchOptions,
}

/// Whether an explanation holds the scores that the weights are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScoresKept {
    /// No.
    #[default]
    No,
    /// Yes, in the form of the weights. They count towards the most numbers that are recorded.
    Yes,
}

/// Why a text cannot be explained.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    /// The model cannot be opened.
    #[error(transparent)]
    Open(Box<OpenError>),
    /// A search or a score fails.
    #[error(transparent)]
    Decode(Box<DecodeError>),
    /// A text cannot be classified.
    #[error(transparent)]
    Classify(Box<ClassifyError>),
    /// A text cannot be read by a language model.
    #[error(transparent)]
    Generate(Box<GenerateError>),
    /// A text cannot be filled.
    #[error(transparent)]
    Fill(Box<FillError>),
}

// Boxed, so that a result is not as large as the largest error.
macro_rules! boxed {
    ($($variant:ident($error:ty)),+) => {
        $(impl From<$error> for ExplainError {
            fn from(error: $error) -> ExplainError {
                ExplainError::$variant(Box::new(error))
            }
        })+
    };
}

boxed!(
    Open(OpenError),
    Decode(DecodeError),
    Classify(ClassifyError),
    Generate(GenerateError),
    Fill(FillError)
);

impl ExplainOptions {
    /// Weights in this form, with a search of its own, without scores and masks.
    pub fn new(form: WeightForm, search: &SearchOptions) -> ExplainOptions {
        ExplainOptions { form, search: search.clone(), ..ExplainOptions::default() }
    }

    /// The type that is computed in.
    pub fn compute(&self) -> Precision {
        self.search.compute
    }

    /// A pass that records what these options ask for.
    pub(super) fn pass(&self) -> Pass {
        let pass = Pass::inference(self.compute()).with_masks(&self.masks);
        match (self.form, self.scores) {
            (WeightForm::None, _) => pass,
            (_, ScoresKept::No) => pass.recording(),
            (_, ScoresKept::Yes) => pass.recording_scores(),
        }
    }

    /// As [`ExplainOptions::pass`] for a translator, whose cross attention gives the alignment.
    pub(super) fn aligning_pass(&self) -> Pass {
        let pass = match self.form {
            WeightForm::None => self.pass().recording_role(AttentionRole::Cross),
            _ => self.pass(),
        };
        pass.without_heads(&self.search.without_heads)
    }
}
