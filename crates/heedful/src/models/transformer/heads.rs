//! The attention heads of a Transformer.

use super::TransformerConfig;
use crate::layers::{AttentionRole, HeadError, HeadName};
use crate::recipe::DecoderLayer;

impl TransformerConfig {
    /// Every head, layer by layer: encoder self attention, decoder self attention (if the decoder has any),
    /// cross attention.
    pub fn heads(&self) -> Vec<HeadName> {
        let own = if self.decoder_layer.is_attention() { self.decoder_layers } else { 0 };
        let stacks = [
            (AttentionRole::EncoderSelf, self.encoder_layers),
            (AttentionRole::DecoderSelf, own),
            (AttentionRole::Cross, self.decoder_layers),
        ];
        let layers = stacks.into_iter().flat_map(|(role, depth)| (0..depth).map(move |layer| (role, layer)));
        layers
            .flat_map(|(role, layer)| (0..self.heads).map(move |head| HeadName { role, layer, head }))
            .collect()
    }

    /// Checks that the model has all of these heads.
    pub fn check_heads(&self, heads: &[HeadName]) -> Result<(), HeadError> {
        let all = self.heads();
        match heads.iter().find(|head| !all.contains(head)) {
            Some(&name) => Err(HeadError::Unknown { name, known: self.heads_summary() }),
            None => Ok(()),
        }
    }

    fn heads_summary(&self) -> String {
        let range = |count: usize| if count == 1 { "0".to_owned() } else { format!("0…{}", count - 1) };
        let heads = range(self.heads);
        let (encoder, decoder) = (range(self.encoder_layers), range(self.decoder_layers));
        let own = match self.decoder_layer {
            DecoderLayer::Attention => format!(", decoder.{{{decoder}}}.self.{{{heads}}}"),
            DecoderLayer::Ssru => String::new(),
        };
        format!("encoder.{{{encoder}}}.self.{{{heads}}}{own} and decoder.{{{decoder}}}.cross.{{{heads}}}")
    }
}

#[cfg(test)]
mod tests {
    use heedful_tensor::DType;

    use super::*;
    use crate::data::batch::Batch;
    use crate::layers::Pass;
    use crate::models::transformer::Transformer;
    use crate::models::{Generate, Model};

    fn config() -> TransformerConfig {
        TransformerConfig {
            heads: 4,
            value_width: Some(32),
            encoder_layers: 2,
            decoder_layers: 2,
            ..TransformerConfig::tiny(30)
        }
    }

    fn logits(model: &Transformer) -> Vec<f32> {
        logits_in(model, &mut Pass::inference(DType::F32))
    }

    fn logits_in(model: &Transformer, pass: &mut Pass) -> Vec<f32> {
        let batch = Batch::new(&[(vec![5, 6, 7], vec![8, 9]), (vec![4], vec![3, 3, 3])], 1, 2);
        model.logits(&batch.expect("a good batch"), pass).to_vec()
    }

    /// The model with a head pruned in its output weights:
    ///
    /// ```text
    /// Concat(head_1 … head_h) W_o = Σ_i head_i W_o[rows of i]
    /// ```
    fn without_outputs(model: Transformer, name: HeadName) -> Transformer {
        let rows = config().layer().value_width() / config().heads;
        let weight = model.params().get(&format!("{}.output.weight", name.prefix())).expect("it is there");
        let [_, width] = weight.shape();
        let mut values = weight.to_vec();
        values[name.head * rows * width..(name.head + 1) * rows * width].fill(0.0);
        weight.set(&values);
        model
    }

    /// The model with the context of a head set to zero through the columns of its values.
    fn without_values(model: Transformer, name: HeadName) -> Transformer {
        let (d_k, d_v) = (config().layer().key_width(), config().layer().value_width());
        let rows = d_v / config().heads;
        let (weight, values_begin) = match name.role {
            AttentionRole::Cross => ("key_value", d_k),
            _ => ("qkv", 2 * d_k),
        };
        for part in ["weight", "bias"] {
            let param =
                model.params().get(&format!("{}.{weight}.{part}", name.prefix())).expect("it is there");
            let [_, width] = param.shape();
            let mut values = param.to_vec();
            let columns = values_begin + name.head * rows..values_begin + (name.head + 1) * rows;
            values.chunks_mut(width).for_each(|row| row[columns.clone()].fill(0.0));
            param.set(&values);
        }
        model
    }

    #[test]
    fn masking_a_head_equals_pruning_its_weights() {
        let whole = || Transformer::new(config(), 7).expect("a good configuration");
        for names in [&["enc.0.1"][..], &["dec.1.0"], &["cross.1.2"], &["cross.0.0", "cross.0.3", "enc.1.2"]]
        {
            let heads: Vec<HeadName> =
                names.iter().map(|name| name.parse().expect("a head's name")).collect();
            let mut pass = Pass::inference(DType::F32).without_heads(&heads).recording();
            let found = logits_in(&whole(), &mut pass);
            for prune in [without_outputs, without_values] {
                assert_eq!(found, logits(&heads.iter().copied().fold(whole(), prune)), "{names:?}");
            }
            assert_ne!(found, logits(&whole()), "{names:?}");
            // The attention of the masked head is still recorded.
            let maps = pass.take_attention().expect("few weights");
            assert!(maps.iter().all(|map| map.heads() == config().heads));
        }
        assert_eq!(
            logits_in(&whole(), &mut Pass::inference(DType::F32).without_heads(&[])),
            logits(&whole())
        );
    }

    #[test]
    fn the_error_for_an_unknown_head_lists_the_known_heads() {
        let model = Transformer::new(config(), 7).expect("a good configuration");
        let heads = ["enc.0.0", "cross.0.9"].map(|name| name.parse().expect("a head's name"));
        let error = model.check_heads(&heads).expect_err("there is no tenth head");
        let TransformerConfig { encoder_layers, decoder_layers, heads, .. } = config();
        let known = format!(
            "encoder.{{0…{e}}}.self.{{0…{h}}}, decoder.{{0…{d}}}.self.{{0…{h}}} and decoder.{{0…{d}}}.cross.{{0…{h}}}",
            e = encoder_layers - 1,
            d = decoder_layers - 1,
            h = heads - 1
        );
        assert_eq!(error.to_string(), format!("the model has no head decoder.0.cross.9: it has {known}"));
    }

    #[test]
    fn head_names_survive_a_round_trip_through_text() {
        let all = config().heads();
        assert_eq!(all.len(), (config().encoder_layers + 2 * config().decoder_layers) * config().heads);
        for name in &all {
            assert_eq!(name.to_string().parse(), Ok(*name));
        }
        for bad in ["enc.3", "mid.0.0", "enc.0.0.0", "enc.x.0", "enc.-1.0", ""] {
            assert!(bad.parse::<HeadName>().is_err(), "{bad}");
        }
    }
}
