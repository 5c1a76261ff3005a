//! Random tokens, written twice, in the same model.

use heedful_tensor::random::Stream;

use super::{Inspected, StackInputs};
use crate::data::batch::BatchLayout;
use crate::layers::{AttentionRole, StackSide};

impl<'m> Inspected<'m> {
    /// The same model with `count` random tokens, written twice, in place of the text; a translator gets them
    /// as source and as target.
    pub(in super::super) fn repeated(&self, count: usize, stream: Stream) -> Inspected<'m> {
        let special = self.model.special_tokens();
        let twice = |inputs: &StackInputs| {
            let not_text = special.not_text();
            let is_text = |id: &u32| !special.contains(*id) && not_text.binary_search(id).is_err();
            let mut tokens: Vec<u32> = (0..inputs.vocabulary as u32).filter(is_text).collect();
            tokens.sort_by_key(|&id| stream.bits(id));
            let drawn: Vec<u32> = tokens.iter().copied().cycle().take(count).collect();
            drawn.repeat(2)
        };
        let drawn: Vec<Vec<u32>> = self.inputs.iter().map(twice).collect();
        let example = match self.layout {
            BatchLayout::Pairs => (special.source(drawn[0].clone()), drawn[1].clone()),
            BatchLayout::Lines | BatchLayout::Blocks => (Vec::new(), drawn[0].clone()),
            BatchLayout::Labels => (drawn[0].clone(), vec![0]),
            // A masked language model predicts a gap.
            BatchLayout::Texts => ([&drawn[0][..], &[special.mask]].concat(), Vec::new()),
        };
        Inspected {
            model: self.model,
            layout: self.layout,
            example,
            ends: self.ends,
            inputs: self.inputs.clone(),
            predictions: self.predictions.clone(),
            names: self.names,
            precision: self.precision,
            readout: self.readout.clone(),
            words: None,
        }
    }

    /// The position of the first random token among the queries of a kind of attention.
    pub(in super::super) fn first_random(&self, role: AttentionRole) -> usize {
        let special = self.model.special_tokens();
        let last = self.last_stack().stack;
        match role {
            AttentionRole::DecoderSelf => 1,
            AttentionRole::EncoderSelf if last == StackSide::Encoder => {
                usize::from(special.text_first.is_some())
            }
            _ => 0,
        }
    }
}
