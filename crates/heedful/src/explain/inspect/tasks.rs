//! The texts of each task.

use heedful_tensor::Precision;

use super::{ClassNames, Inspected, Prediction, Readout, StackInputs, argmax, blank};
use crate::data::SpecialTokens;
use crate::data::batch::BatchLayout;
use crate::data::tokenizer::Tokenizer;
use crate::models::{Generate, Inspect, Model};
use crate::tasks::classify::Classifier;
use crate::tasks::language::Generator;
use crate::tasks::masked::Filler;
use crate::tasks::translate::Translator;
use crate::{Error, Result};

/// The tokens of a stack in readable form, their ids, and the size of the vocabulary.
pub(super) type Read = (Vec<String>, Vec<u32>, usize);

fn unsupported() -> Error {
    Error::new(
        "only models of the Transformer family have a residual stream, and this model is of another family: \
         `heedful explain MODEL TEXT` shows the attention of every family",
    )
}

impl<'m> Inspected<'m> {
    /// A source and its translation; `precision` is that of the translator if not given.
    pub fn of_translation(
        translator: &'m Translator,
        source: &[u32],
        target: &[u32],
        precision: Option<Precision>,
    ) -> Result<Inspected<'m>> {
        let model = translator.model().as_inspect().ok_or_else(unsupported)?;
        if source.is_empty() {
            return Err(blank());
        }
        let special = model.special_tokens();
        let tokenizers = translator.tokenizers();
        let pieces = |tokenizer: &Tokenizer, ids: &[u32]| ids.iter().map(|&id| tokenizer.piece(id)).collect();
        let read: Vec<u32> = [special.bos].into_iter().chain(target.iter().copied()).collect();
        let inputs = [
            (pieces(&tokenizers.source, source), source.to_vec(), tokenizers.source.size()),
            (pieces(&tokenizers.target, &read), read, tokenizers.target.size()),
        ];
        let words = [tokenizers.source.words(source), tokenizers.target.words(target)];
        let predicted = target.iter().copied().chain([special.eos]);
        let precision = precision.unwrap_or_else(|| translator.compute());
        let text = Inspected::new(
            model,
            BatchLayout::Pairs,
            (source.to_vec(), target.to_vec()),
            inputs.into(),
            ClassNames::Tokens(&tokenizers.target),
            precision,
        );
        Ok(Inspected { words: Some(words), ..text.predicting(predicted) })
    }

    /// A text in a language model.
    pub fn of_text(
        generator: &'m Generator,
        ids: &[u32],
        precision: Option<Precision>,
    ) -> Result<Inspected<'m>> {
        let model = generator.model().as_inspect().ok_or_else(unsupported)?;
        if ids.is_empty() {
            return Err(blank());
        }
        let SpecialTokens { bos, eos, .. } = model.special_tokens();
        let tokenizer = generator.tokenizer();
        let read: Vec<u32> = [bos].into_iter().chain(ids.iter().copied()).collect();
        let pieces = read.iter().map(|&id| tokenizer.piece(id)).collect();
        let precision = precision.unwrap_or_else(|| generator.compute());
        let text = Inspected::new(
            model,
            BatchLayout::Lines,
            (Vec::new(), ids.to_vec()),
            vec![(pieces, read, tokenizer.size())],
            ClassNames::Tokens(tokenizer),
            precision,
        );
        let next = if generator.ends_texts() {
            eos
        } else {
            argmax(&text.log_probabilities(&mut text.pass(), 1, &[ids.len()])?[0]) as u32
        };
        Ok(text.predicting(ids.iter().copied().chain([next])))
    }

    /// A text in a classifier. The prediction is `label`, or the most probable one.
    pub fn of_class(
        classifier: &'m Classifier,
        ids: &[u32],
        label: Option<u32>,
        precision: Option<Precision>,
    ) -> Result<Inspected<'m>> {
        let model = classifier.model().as_inspect().ok_or_else(unsupported)?;
        let (inputs, example) = (surrounded(classifier.tokenizer(), ids, model)?, (ids.to_vec(), vec![0]));
        let precision = precision.unwrap_or_else(|| classifier.compute());
        let names = ClassNames::Labels(classifier.labels());
        let text = Inspected::new(model, BatchLayout::Labels, example, inputs, names, precision)
            .with_readout(Readout::Pooled(classifier.model().config().pooling));
        let label = match label {
            Some(label) => label,
            None => argmax(&text.log_probabilities(&mut text.pass(), 1, &[0])?[0]) as u32,
        };
        Ok(text.predicting([label]))
    }

    /// A text with gaps in a masked language model.
    pub fn of_gaps(filler: &'m Filler, ids: &[u32], precision: Option<Precision>) -> Result<Inspected<'m>> {
        let model = filler.model();
        let inputs = surrounded(filler.tokenizer(), ids, model)?;
        let gaps = ids.iter().filter(|&&id| id == filler.mask()).count();
        if gaps == 0 {
            return Err(Error::new("the text has no <mask>: write one for each token to predict"));
        }
        let precision = precision.unwrap_or_else(|| filler.compute());
        let names = ClassNames::Tokens(filler.tokenizer());
        let example = (ids.to_vec(), Vec::new());
        let before = usize::from(model.special_tokens().text_first.is_some());
        let rows = (0..ids.len()).filter(|&at| ids[at] == filler.mask()).map(|at| at + before);
        let text = Inspected::new(model, BatchLayout::Texts, example, inputs, names, precision)
            .with_readout(Readout::Rows(rows.collect()));
        let all: Vec<usize> = (0..gaps).collect();
        let mut rows = text.log_probabilities(&mut text.pass(), 1, &all)?;
        let not_text = model.special_tokens().not_text();
        for row in &mut rows {
            not_text.iter().for_each(|&token| row[token as usize] = f64::NEG_INFINITY);
        }
        Ok(text.predicting(rows.iter().map(|row| argmax(row) as u32)))
    }

    pub(super) fn new(
        model: &'m dyn Inspect,
        layout: BatchLayout,
        example: (Vec<u32>, Vec<u32>),
        inputs: Vec<Read>,
        names: ClassNames<'m>,
        precision: Precision,
    ) -> Inspected<'m> {
        let special = model.special_tokens();
        let stacks = model.stacks().into_iter().zip(inputs);
        let inputs: Vec<StackInputs> = stacks
            .map(|((stack, blocks), (pieces, ids, vocabulary))| StackInputs {
                stack,
                blocks,
                ids,
                pieces,
                vocabulary,
            })
            .collect();
        let positions = inputs.last().map_or(0, |inputs| inputs.ids.len());
        Inspected {
            model,
            layout,
            example,
            ends: [special.bos, special.eos],
            inputs,
            predictions: Vec::new(),
            names,
            precision,
            readout: Readout::Rows((0..positions).collect()),
            words: None,
        }
    }

    pub(super) fn with_readout(self, readout: Readout) -> Inspected<'m> {
        Inspected { readout, ..self }
    }

    /// The same text with these predictions.
    pub(super) fn predicting(mut self, classes: impl IntoIterator<Item = u32>) -> Inspected<'m> {
        let prediction = |class| Prediction { class, piece: self.piece(class) };
        let predictions = classes.into_iter().map(prediction).collect();
        self.predictions = predictions;
        self
    }
}

/// The tokens of a text for an encoder, with the special tokens that the model adds around it.
fn surrounded(tokenizer: &Tokenizer, ids: &[u32], model: &dyn Inspect) -> Result<Vec<Read>> {
    if ids.is_empty() {
        return Err(blank());
    }
    let special = model.special_tokens();
    let read = special.surrounded(ids);
    let piece = |&id: &u32| if id == special.mask { "<mask>".to_owned() } else { tokenizer.piece(id) };
    Ok(vec![(read.iter().map(piece).collect(), read, tokenizer.size())])
}
