//! One text in a model whose states can be recorded and replaced: its input tokens, its predictions, and runs
//! over copies of the text in one batch.
//!
//! | model | inputs | predictions |
//! |---|---|---|
//! | translator | the source's tokens; `<bos>` and the target's tokens | the target's tokens and `<eos>` |
//! | language model | `<bos>` and the text's tokens | the text's tokens and `<eos>`, or the most probable next token |
//! | classifier | the text with the model's special tokens | the label |
//! | masked LM | the text with the model's special tokens | the best token for each `<mask>` |

mod repeated;
mod tasks;

#[cfg(test)]
pub(super) mod fixture;

use heedful_tensor::{Precision, Tensor};
use serde::Serialize;

use crate::data::batch::{Batch, BatchLayout};
use crate::data::labels::Labels;
use crate::data::tokenizer::Tokenizer;
use crate::decode::DecodeError;
use crate::layers::{Pass, StackSide, StateSite, States};
use crate::models::{BrokenModel, Inspect};
use crate::recipe::Pooling;
use crate::{Error, Result};

/// A text in a model.
pub struct Inspected<'m> {
    pub(super) model: &'m dyn Inspect,
    layout: BatchLayout,
    example: (Vec<u32>, Vec<u32>),
    ends: [u32; 2],
    inputs: Vec<StackInputs>,
    predictions: Vec<Prediction>,
    names: ClassNames<'m>,
    precision: Precision,
    pub(super) readout: Readout,
    /// The words of the source's and the target's tokens, for a translation.
    pub(super) words: Option<[Vec<Option<usize>>; 2]>,
}

/// The vectors of the last stack from which predictions are made.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Readout {
    /// The vector of one position for each prediction.
    Rows(Vec<usize>),
    /// One pooled vector.
    Pooled(Pooling),
}

/// The tokens that a stack reads.
#[derive(Clone, Debug, PartialEq)]
pub struct StackInputs {
    /// The stack.
    pub stack: StackSide,
    /// Its number of blocks.
    pub blocks: usize,
    /// The tokens' ids.
    pub ids: Vec<u32>,
    /// The tokens in readable form.
    pub pieces: Vec<String>,
    /// The size of the vocabulary.
    pub vocabulary: usize,
}

/// A prediction of the model for the text.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// The index of the token or label.
    #[serde(rename = "id")]
    pub class: u32,
    /// The token or label in readable form.
    pub piece: String,
}

/// The names of the classes that the model predicts.
#[derive(Clone, Copy)]
enum ClassNames<'m> {
    Tokens(&'m Tokenizer),
    Labels(&'m Labels),
}

/// A text without tokens.
fn blank() -> Error {
    Error::new("the text is blank: give a text to explain")
}

impl<'m> Inspected<'m> {
    /// The stacks with their inputs, in the order of computation.
    pub fn inputs(&self) -> &[StackInputs] {
        &self.inputs
    }

    /// The last stack, from which predictions are made.
    pub fn last_stack(&self) -> &StackInputs {
        self.inputs.last().expect("a model has a stack")
    }

    /// The predictions, in the order of their positions.
    pub fn predictions(&self) -> &[Prediction] {
        &self.predictions
    }

    /// The type of the matrix products of runs without gradients.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// A token or label in readable form.
    pub fn piece(&self, class: u32) -> String {
        match self.names {
            ClassNames::Tokens(tokenizer) => tokenizer.piece(class),
            ClassNames::Labels(labels) => labels.name(class).to_owned(),
        }
    }

    /// A pass without gradients.
    pub fn pass(&self) -> Pass {
        Pass::inference(self.precision)
    }

    /// The logits of some predictions in a batch of copies of the text: prediction `p` of copy `c` has the
    /// number `c · predictions + p`.
    pub fn logits(&self, pass: &mut Pass, copies: usize, predictions: &[usize]) -> Result<Tensor> {
        let batch = self.batch(copies)?;
        let device = self.model.params().device();
        let logits = device.catch_oom(|| self.model.logits_at(&batch, predictions, pass));
        Ok(logits.map_err(DecodeError::from)?)
    }

    /// The log-probabilities of all classes for some predictions, as [`Inspected::logits`].
    pub fn log_probabilities(
        &self,
        pass: &mut Pass,
        copies: usize,
        predictions: &[usize],
    ) -> Result<Vec<Vec<f64>>> {
        let logits = self.logits(pass, copies, predictions)?;
        let values = logits.to_vec();
        if values.iter().any(|value| value.is_nan()) {
            return Err(BrokenModel { sentence: 0 }.into());
        }
        Ok(values.chunks_exact(logits.width()).map(log_softmax).collect())
    }

    /// The numbers of the predictions of one copy.
    pub fn all(&self) -> Vec<usize> {
        (0..self.predictions.len()).collect()
    }

    /// The most probable class of a prediction; the prediction itself, unless it is a given token.
    pub fn best(&self, prediction: usize) -> Result<u32> {
        if self.layout != BatchLayout::Lines {
            return Ok(self.predictions[prediction].class);
        }
        let row = self.log_probabilities(&mut self.pass(), 1, &[prediction])?.swap_remove(0);
        Ok(argmax(&row) as u32)
    }

    /// The log-probability of every prediction of the text.
    pub fn scores(&self, pass: &mut Pass) -> Result<Vec<f64>> {
        let rows = self.log_probabilities(pass, 1, &self.all())?;
        let classes = self.predictions.iter().map(|prediction| prediction.class as usize);
        Ok(rows.iter().zip(classes).map(|(row, class)| row[class]).collect())
    }

    /// The states of the text.
    pub fn states(&self) -> Result<States> {
        let mut pass = self.pass().recording_states();
        self.logits(&mut pass, 1, &self.all())?;
        Ok(pass.take_states())
    }

    /// A state from row-major values, on the model's device.
    pub fn state(&self, width: usize, values: &[f32]) -> Tensor {
        Tensor::from_f32_on(self.model.params().device(), values.len() / width, width, values)
    }

    /// The name of a layer's output.
    pub fn layer_name(stack: StackSide, blocks: usize) -> String {
        StateSite::Residual { stack, blocks }.to_string()
    }

    fn batch(&self, copies: usize) -> Result<Batch> {
        let examples = vec![self.example.clone(); copies];
        let batch = Batch::of(self.layout, &examples, self.ends)?;
        self.model.check(&batch)?;
        Ok(batch)
    }
}

/// `log softmax(logits)`.
pub(super) fn log_softmax(logits: &[f32]) -> Vec<f64> {
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let exps = logits.iter().map(|&logit| f64::from(logit - largest).exp());
    let normalizer = f64::from(largest) + exps.sum::<f64>().ln();
    logits.iter().map(|&logit| f64::from(logit) - normalizer).collect()
}

/// The index of the largest value; the first in a tie.
pub(super) fn argmax(values: &[f64]) -> usize {
    let best = values.iter().enumerate().reduce(|best, next| if next.1 > best.1 { next } else { best });
    best.map_or(0, |(index, _)| index)
}
