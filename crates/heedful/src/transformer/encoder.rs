//! ```text
//! z = LayerNorm(x + SelfAttention(x))
//! y = LayerNorm(z + FFN(z))                 N times (post-norm; see `Residual` for pre-norm)
//! ```

use heedful_tensor::ops::Mask;
use heedful_tensor::{Params, Ragged, Tensor};

use super::attention::SelfAttention;
use super::config::TransformerConfig;
use super::feed_forward::FeedForward;
use super::{final_norm, residual};
use crate::layers::{Kind, LayerNorm, Pass, Place, Residual};

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
        Encoder {
            layers: (0..config.encoder_layers).map(|i| EncoderLayer::new(params, i, config)).collect(),
            norm: final_norm(params, "encoder", config),
        }
    }

    /// From embedded source tokens to what the decoder reads.
    pub fn forward(&self, source: Tensor, sequences: &Ragged, pass: &mut Pass) -> Tensor {
        let states = self.layers.iter().fold(source, |x, layer| layer.forward(&x, sequences, pass));
        match &self.norm {
            Some(norm) => norm.forward(&states, pass),
            None => states,
        }
    }
}

impl EncoderLayer {
    fn new(params: &Params, layer: usize, config: &TransformerConfig) -> EncoderLayer {
        let name = format!("encoder.{layer}");
        let place = Place::new(&format!("{name}.self_attention"), layer, Kind::EncoderSelf);
        EncoderLayer {
            self_attention: SelfAttention::new(params, place, Mask::full(), config),
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
}
