//! ```text
//! h = ActivatedConvolution(x)                                 causal
//! c = Attention((h W_q + b + g) √½, keys, values) W_o + b     g: the embedded target
//! y = (x + (h + c) √½) √½                                     N times (see `Balanced` for the form with a norm)
//! ```

use heedful_tensor::ops::{
    self, AttentionOptions, CachedAttentionOptions, ColumnView, KvView, Mask, Padding,
};
use heedful_tensor::{Params, Ragged, Tensor};

use super::config::{ConvolutionalConfig, dilation_of};
use super::layers::{ActivatedConvolution, Balanced, ConvolutionShape};
use crate::layers::{AttentionMap, AttentionRole, AttentionSite, Linear, Pass};

/// The keys and values of the sources, which all decoder layers attend to.
#[derive(Clone)]
pub struct ConvolutionalMemory {
    /// Keys and values side by side, one row for each source token, in the compute dtype.
    pub key_value: Tensor,
    /// Where the sources begin and end.
    pub sequences: Ragged,
}

/// The stack of decoder layers.
pub(crate) struct ConvolutionalDecoder {
    layers: Vec<ConvolutionalDecoderLayer>,
    dropout: f32,
}

/// One layer: a causal convolution and cross attention.
pub(crate) struct ConvolutionalDecoderLayer {
    convolution: ActivatedConvolution,
    query: Linear,
    output: Linear,
    balanced: Balanced,
    d_model: usize,
    scale: f32,
    site: AttentionSite,
}

/// The rows of one decoding step.
pub(super) struct StepRows<'a> {
    /// For each row, its parent among the rows of the previous step.
    pub(super) parents: &'a [Option<usize>],
    /// Number of tokens of the longest row.
    pub(super) longest: usize,
    /// The keys and values that each row attends to.
    pub(super) sources: KvView<'a>,
}

impl ConvolutionalDecoder {
    /// Registers the parameters `decoder.…`.
    pub(crate) fn new(params: &Params, config: &ConvolutionalConfig) -> ConvolutionalDecoder {
        let layer = |i| ConvolutionalDecoderLayer::new(params, i, config);
        ConvolutionalDecoder {
            layers: (0..config.decoder_layers).map(layer).collect(),
            dropout: config.dropout,
        }
    }

    /// One vector for each embedded target token, from which the next token is predicted.
    pub(crate) fn forward(
        &self,
        embedded: &Tensor,
        sequences: &Ragged,
        memory: &ConvolutionalMemory,
        pass: &mut Pass,
    ) -> Tensor {
        let layers = self.layers.iter();
        let states =
            layers.fold(embedded.clone(), |x, layer| layer.forward([&x, embedded], sequences, memory, pass));
        ops::dropout(&states, pass.dropout(self.dropout))
    }

    /// As [`ConvolutionalDecoder::forward`] for the newest token of every row. `windows` holds each layer's
    /// input windows of the previous step, and is updated to those of this step.
    pub(super) fn step(
        &self,
        embedded: &Tensor,
        rows: &StepRows<'_>,
        windows: &mut [Option<Tensor>],
        pass: &mut Pass,
    ) -> Tensor {
        let layers = self.layers.iter().zip(windows);
        layers.fold(embedded.clone(), |x, (layer, windows)| layer.step([&x, embedded], rows, windows, pass))
    }
}

impl ConvolutionalDecoderLayer {
    fn new(params: &Params, layer: usize, config: &ConvolutionalConfig) -> ConvolutionalDecoderLayer {
        let (d, name) = (config.d_model, format!("decoder.{layer}"));
        let site = AttentionSite::new(&format!("{name}.cross_attention"), layer, AttentionRole::Cross);
        let (taps, dilation) = (config.decoder_taps, dilation_of(config.dilation, layer));
        let window = ConvolutionShape { input: d, output: d, taps, dilation, padding: Padding::Causal };
        let score = config.score.scale(d);
        let convolution = format!("{name}.convolution");
        ConvolutionalDecoderLayer {
            convolution: ActivatedConvolution::new(params, &convolution, window, config.kind, config.dropout),
            query: Linear::new(params, &format!("{}.query", site.prefix), d, d),
            output: Linear::new(params, &format!("{}.output", site.prefix), d, d),
            balanced: Balanced::new(params, &format!("{name}.norm"), config.balance, d, config.norm_epsilon),
            d_model: d,
            // Includes the factor √½ of the query.
            scale: score * std::f32::consts::FRAC_1_SQRT_2,
            site,
        }
    }

    /// The three lines above, for `x` and the embedded target.
    pub(crate) fn forward(
        &self,
        [x, embedded]: [&Tensor; 2],
        sequences: &Ragged,
        memory: &ConvolutionalMemory,
        pass: &mut Pass,
    ) -> Tensor {
        let h = self.convolution.forward(x, sequences, pass);
        let queries = ColumnView::whole(self.query(&h, embedded, pass));
        let part = |columns| ColumnView { tensor: memory.key_value.clone(), columns };
        let (keys, values) = (part(0..self.d_model), part(self.d_model..2 * self.d_model));
        let options = AttentionOptions {
            heads: 1,
            scale: self.scale,
            mask: pass.mask(self.site.role, &Mask::full(), sequences, &memory.sequences),
            dropout: pass.dropout(0.0),
            weights: pass.weights(self.site.role, 1, sequences, &memory.sequences),
            rounding: pass.compute().precision.rounding(),
        };
        let attended = ops::attention(queries, keys, values, sequences, &memory.sequences, &options);
        if let Some(weights) = attended.weights {
            let (queries, keys) = (sequences.clone(), memory.sequences.clone());
            let (site, scores) = (self.site.clone(), attended.scores);
            pass.record(AttentionMap { site, queries, keys, weights, scores });
        }
        self.residual_sum(x, &h, &attended.context, pass)
    }

    fn step(
        &self,
        [x, embedded]: [&Tensor; 2],
        rows: &StepRows<'_>,
        windows: &mut Option<Tensor>,
        pass: &Pass,
    ) -> Tensor {
        let h = self.convolution.step(x, windows, rows.parents, rows.longest, pass);
        let queries = ColumnView::whole(self.query(&h, embedded, pass));
        let options = CachedAttentionOptions {
            heads: 1,
            key_width: self.d_model,
            scale: self.scale,
            rounding: pass.compute().precision.rounding(),
        };
        let context = ops::cached_attention(&queries, &rows.sources, options);
        self.residual_sum(x, &h, &context, pass)
    }

    /// `h W_q + b + g`; the factor √½ is part of the attention's scale.
    fn query(&self, h: &Tensor, embedded: &Tensor, pass: &Pass) -> Tensor {
        ops::cast(&ops::add(&self.query.forward(h, pass), embedded), pass.compute().dtype())
    }

    /// The last line above.
    fn residual_sum(&self, x: &Tensor, h: &Tensor, context: &Tensor, pass: &Pass) -> Tensor {
        let c = self.output.forward(context, pass);
        self.balanced.sum(x, &self.balanced.parts(h, &c), pass)
    }
}
