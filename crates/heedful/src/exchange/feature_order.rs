//! Reordering of the features of the residual stream.
//!
//! A Transformer is invariant to a permutation of its features, provided that it is applied to every matrix,
//! norm and bias on the residual stream; only sinusoidal positions have a fixed order. heedful interleaves
//! sines and cosines, Marian and Pegasus store all sines before all cosines, with the same angles. So
//! permuting the features converts a model from one order to the other:
//!
//! ```text
//! pairs     sin_0 cos_0 sin_1 cos_1 …
//! halves    sin_0 sin_1 … cos_0 cos_1 …
//! ```
//!
//! Values are only moved, so the inverse permutation restores every bit.

use crate::store::weights::Weights;

/// The order of sines and cosines in the sinusoidal positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FeatureOrder {
    Pairs,
    Halves,
}

/// Permutes the features of a translator's weights.
pub(super) fn reorder_features(weights: &Weights, d_model: usize, to: FeatureOrder) -> Weights {
    let half = d_model / 2;
    // The old index of the feature at a new index.
    let old_index = |new: usize| match to {
        FeatureOrder::Halves => 2 * (new % half) + new / half,
        FeatureOrder::Pairs => new / 2 + half * (new % 2),
    };
    let mut values = Vec::new();
    for (name, [rows, width], matrix) in weights.iter() {
        match stream_axis(name) {
            StreamAxis::None => values.extend(matrix),
            StreamAxis::Rows => {
                values.extend((0..rows).flat_map(|row| &matrix[old_index(row) * width..][..width]));
            }
            StreamAxis::Columns => {
                let permuted =
                    |row: usize| (0..width).map(move |column| matrix[row * width + old_index(column)]);
                values.extend((0..rows).flat_map(permuted));
            }
        }
    }
    Weights::from_matrices(weights.iter().map(|(name, shape, _)| (name.to_owned(), shape)), values)
}

/// The axis of a parameter that is indexed by features of the residual stream.
enum StreamAxis {
    /// Rows: the parameter reads the stream.
    Rows,
    /// Columns: the parameter writes to the stream, or has a value for each feature.
    Columns,
    /// Neither.
    None,
}

fn stream_axis(name: &str) -> StreamAxis {
    let reads = ["qkv", "query", "key_value", "inner"].map(|layer| format!(".{layer}."));
    match reads.iter().any(|layer| name.contains(layer)) {
        true if name.ends_with(".weight") => StreamAxis::Rows,
        true => StreamAxis::None,
        // One value for each token.
        false if name == "output.bias" => StreamAxis::None,
        false => StreamAxis::Columns,
    }
}

#[cfg(test)]
mod tests {
    use heedful_tensor::DType;
    use heedful_tensor::ops::{SinusoidLayout, sinusoid_row};

    use super::*;
    use crate::data::batch::Batch;
    use crate::layers::{Halves, Norm, Pass, Positions, Tying};
    use crate::models::Model;
    use crate::models::transformer::{Transformer, TransformerConfig};

    #[test]
    fn reordering_keeps_the_logits_and_the_inverse_restores_every_bit() {
        for (norm, tying) in [(Norm::Post, Tying::All), (Norm::Pre, Tying::None)] {
            let config = TransformerConfig {
                norm,
                tying,
                output_bias: true,
                decoder_layers: 2,
                ..TransformerConfig::tiny(30)
            };
            let halves =
                TransformerConfig { positions: Positions::Halves(Halves::MarianMt), ..config.clone() };
            let model = Transformer::new(config.clone(), 3).expect("a good configuration");
            let other = Transformer::new(halves, 4).expect("a good configuration");
            let weights = Weights::of(model.params());
            let moved = reorder_features(&weights, config.d_model, FeatureOrder::Halves);
            moved.install(other.params()).expect("the same shapes");
            let batch = Batch::new(&[(vec![5, 6, 7, 9], vec![8, 9])], 1, 2).expect("a good batch");
            let logits =
                |model: &Transformer| model.logits(&batch, &mut Pass::inference(DType::F32)).to_vec();
            let far =
                logits(&model).iter().zip(logits(&other)).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(far < 1e-5, "{far}");
            let restored = reorder_features(&moved, config.d_model, FeatureOrder::Pairs);
            for (name, _, values) in weights.iter() {
                assert_eq!(restored.get(name), Some(values), "{name}");
            }
        }
    }

    #[test]
    fn the_order_matches_the_sinusoids_of_the_tensor_crate() {
        let mut rows = [[0.0; 8]; 2];
        for (row, kind) in rows.iter_mut().zip([SinusoidLayout::Interleaved, SinusoidLayout::Halves]) {
            sinusoid_row(kind, 5, row);
        }
        let table = |row: [f32; 8]| {
            Weights::from_matrices([("position.weight".to_owned(), [1, 8])].into_iter(), row.to_vec())
        };
        let moved = reorder_features(&table(rows[0]), 8, FeatureOrder::Halves);
        assert_eq!(moved.get("position.weight"), Some(&rows[1][..]));
    }
}
