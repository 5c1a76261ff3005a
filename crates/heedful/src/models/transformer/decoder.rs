//! ```text
//! z = LayerNorm(x + SelfAttention(x))               no token sees a later one
//! c = LayerNorm(z + CrossAttention(z, memory))
//! y = LayerNorm(c + FFN(c))                         N times (post-norm; see `Residual` for pre-norm)
//! ```

use heedful_tensor::ops::Mask;
use heedful_tensor::{Params, Ragged, Tensor};

use super::attention::{CrossAttention, Memory, SelfAttention};
use super::config::TransformerConfig;
use super::feed_forward::FeedForward;
use super::incremental::Seen;
use super::{final_norm, residual};
use crate::layers::{Kind, LayerNorm, Pass, Place, Residual};

/// The stack of decoder layers.
pub struct Decoder {
    layers: Vec<DecoderLayer>,
    /// As in the encoder: pre-norm only.
    norm: Option<LayerNorm>,
}

/// One layer: masked self attention, cross attention, feed-forward.
pub struct DecoderLayer {
    self_attention: SelfAttention,
    self_attention_residual: Residual,
    cross_attention: CrossAttention,
    cross_attention_residual: Residual,
    feed_forward: FeedForward,
    feed_forward_residual: Residual,
}

impl Decoder {
    /// Announces the parameters `decoder.…`.
    pub fn new(params: &Params, config: &TransformerConfig) -> Decoder {
        Decoder {
            layers: (0..config.decoder_layers).map(|i| DecoderLayer::new(params, i, config)).collect(),
            norm: final_norm(params, "decoder", config),
        }
    }

    /// From embedded target tokens to one vector for each, which tells the next token.
    pub fn forward(&self, target: Tensor, sequences: &Ragged, memory: &Memory, pass: &mut Pass) -> Tensor {
        let states = self.layers.iter().fold(target, |x, layer| layer.forward(&x, sequences, memory, pass));
        self.normed(states, pass)
    }

    /// What the cross attention of each layer needs of a memory.
    pub(super) fn memory_key_values(&self, memory: &Memory, pass: &Pass) -> Vec<Tensor> {
        self.layers.iter().map(|layer| layer.cross_attention.memory_key_values(memory, pass)).collect()
    }

    /// As [`Decoder::forward`] for the newest token of every row. `seen` gives each layer, named by its number, what is
    /// stored of the rows' past.
    pub(super) fn step<'a>(
        &self,
        newest: Tensor,
        mut seen: impl FnMut(usize) -> Seen<'a>,
        pass: &mut Pass,
    ) -> Tensor {
        let layers = self.layers.iter().enumerate();
        let states = layers.fold(newest, |x, (number, layer)| layer.step(&x, seen(number), pass));
        self.normed(states, pass)
    }

    fn normed(&self, states: Tensor, pass: &Pass) -> Tensor {
        match &self.norm {
            Some(norm) => norm.forward(&states, pass),
            None => states,
        }
    }
}

impl DecoderLayer {
    fn new(params: &Params, layer: usize, config: &TransformerConfig) -> DecoderLayer {
        let name = format!("decoder.{layer}");
        let place = |sublayer, kind| Place::new(&format!("{name}.{sublayer}"), layer, kind);
        let residual = |sublayer| residual(params, &format!("{name}.{sublayer}_norm"), config);
        let own = place("self_attention", Kind::DecoderSelf);
        DecoderLayer {
            self_attention: SelfAttention::new(params, own, Mask::full().causal(), config),
            self_attention_residual: residual("self_attention"),
            cross_attention: CrossAttention::new(params, place("cross_attention", Kind::Cross), config),
            cross_attention_residual: residual("cross_attention"),
            feed_forward: FeedForward::new(params, &format!("{name}.feed_forward"), config),
            feed_forward_residual: residual("feed_forward"),
        }
    }

    /// The three lines above.
    pub fn forward(&self, x: &Tensor, sequences: &Ragged, memory: &Memory, pass: &mut Pass) -> Tensor {
        let z = self
            .self_attention_residual
            .around(x, pass, |x, pass| self.self_attention.forward(x, sequences, pass));
        let c = self
            .cross_attention_residual
            .around(&z, pass, |z, pass| self.cross_attention.forward(z, sequences, memory, pass));
        self.feed_forward_residual.around(&c, pass, |c, pass| self.feed_forward.forward(c, pass))
    }

    fn step(&self, x: &Tensor, mut seen: Seen<'_>, pass: &mut Pass) -> Tensor {
        let z = self
            .self_attention_residual
            .around(x, pass, |x, pass| self.self_attention.step(x, &mut seen, pass));
        let c = self
            .cross_attention_residual
            .around(&z, pass, |z, pass| self.cross_attention.step(z, &seen.memory, pass));
        self.feed_forward_residual.around(&c, pass, |c, pass| self.feed_forward.forward(c, pass))
    }
}
