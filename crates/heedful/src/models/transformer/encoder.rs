//! ```text
//! z = LayerNorm(x + SelfAttention(x))
//! y = LayerNorm(z + FFN(z))                 N times (post-norm; see `Residual` for pre-norm)
//! ```
//!
//! A decoder without a source is the same stack with eyes for the past alone.

use heedful_tensor::ops::Mask;
use heedful_tensor::{Params, Ragged, Tensor};

use super::attention::SelfAttention;
use super::config::TransformerConfig;
use super::feed_forward::FeedForward;
use super::incremental::Seen;
use super::{final_norm, residual};
use crate::layers::{Kind, LayerNorm, Pass, Place, Residual};

/// What a token of a stack sees of its sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// All of it: parameters `encoder.…`.
    Everything,
    /// Itself and what came before: parameters `decoder.…`.
    Past,
}

/// The stack of encoder layers.
pub struct Encoder {
    layers: Vec<EncoderLayer>,
    /// Post-norm layers end in a norm; a pre-norm stack needs one of its own.
    norm: Option<LayerNorm>,
}

/// One layer: self attention, feed-forward.
pub struct EncoderLayer {
    self_attention: SelfAttention,
    self_attention_residual: Residual,
    feed_forward: FeedForward,
    feed_forward_residual: Residual,
}

impl Encoder {
    /// Announces the parameters `encoder.…`.
    pub fn new(params: &Params, config: &TransformerConfig) -> Encoder {
        Encoder::seeing(Sight::Everything, params, config)
    }

    /// A stack with this sight, as deep as the configuration's encoder or decoder.
    pub fn seeing(sight: Sight, params: &Params, config: &TransformerConfig) -> Encoder {
        let (name, depth) = match sight {
            Sight::Everything => ("encoder", config.encoder_layers),
            Sight::Past => ("decoder", config.decoder_layers),
        };
        Encoder {
            layers: (0..depth).map(|i| EncoderLayer::new(params, sight, i, config)).collect(),
            norm: final_norm(params, name, config),
        }
    }

    /// From embedded source tokens to what the decoder reads.
    pub fn forward(&self, source: Tensor, sequences: &Ragged, pass: &mut Pass) -> Tensor {
        let states = self.layers.iter().fold(source, |x, layer| layer.forward(&x, sequences, pass));
        self.normed(states, pass)
    }

    /// As [`Encoder::forward`] for the newest token of every row, in a stack that sees the past alone. `seen` gives each
    /// layer, named by its number, what is stored of the rows' past.
    pub(crate) fn step<'a>(
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

impl EncoderLayer {
    fn new(params: &Params, sight: Sight, layer: usize, config: &TransformerConfig) -> EncoderLayer {
        let (stack, kind, mask) = match sight {
            Sight::Everything => ("encoder", Kind::EncoderSelf, Mask::full()),
            Sight::Past => ("decoder", Kind::DecoderSelf, Mask::full().causal()),
        };
        let name = format!("{stack}.{layer}");
        let place = Place::new(&format!("{name}.self_attention"), layer, kind);
        EncoderLayer {
            self_attention: SelfAttention::new(params, place, mask, config),
            self_attention_residual: residual(params, &format!("{name}.self_attention_norm"), config),
            feed_forward: FeedForward::new(params, &format!("{name}.feed_forward"), config),
            feed_forward_residual: residual(params, &format!("{name}.feed_forward_norm"), config),
        }
    }

    /// The two lines above.
    pub fn forward(&self, x: &Tensor, sequences: &Ragged, pass: &mut Pass) -> Tensor {
        let z = self
            .self_attention_residual
            .around(x, pass, |x, pass| self.self_attention.forward(x, sequences, pass));
        self.feed_forward_residual.around(&z, pass, |z, pass| self.feed_forward.forward(z, pass))
    }

    fn step(&self, x: &Tensor, mut seen: Seen<'_>, pass: &mut Pass) -> Tensor {
        let z = self
            .self_attention_residual
            .around(x, pass, |x, pass| self.self_attention.step(x, &mut seen, pass));
        self.feed_forward_residual.around(&z, pass, |z, pass| self.feed_forward.forward(z, pass))
    }
}
