//! The order of the features between layers.
//!
//! A Transformer does not care in which order its features stand, as long as every matrix, norm and bias that touches the residual
//! stream agrees; only sinusoids have a fixed place. Ours stand in pairs, those of Marian and Pegasus in halves, with the same angles.
//! So the same model has sines in halves once its features are put into another order:
//!
//! ```text
//! pairs     sin_0 cos_0 sin_1 cos_1 …
//! halves    sin_0 sin_1 … cos_0 cos_1 …
//! ```
//!
//! Numbers only move: the way back gives every bit.

use crate::store::weights::Weights;

/// Where the waves of positions stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaveOrder {
    Pairs,
    Halves,
}

/// The weights of a translator with its features in another order.
pub(super) fn reordered(weights: &Weights, d_model: usize, to: WaveOrder) -> Weights {
    let half = d_model / 2;
    // The feature that comes to a place.
    let from = |place: usize| match to {
        WaveOrder::Halves => 2 * (place % half) + place / half,
        WaveOrder::Pairs => place / 2 + half * (place % 2),
    };
    let mut values = Vec::new();
    for (name, [rows, width], numbers) in weights.iter() {
        match touching(name) {
            Touching::None => values.extend(numbers),
            Touching::Inputs => {
                values.extend((0..rows).flat_map(|row| &numbers[from(row) * width..][..width]));
            }
            Touching::Outputs => {
                let moved = |row: usize| (0..width).map(move |column| numbers[row * width + from(column)]);
                values.extend((0..rows).flat_map(moved));
            }
        }
    }
    Weights::from_matrices(weights.iter().map(|(name, shape, _)| (name.to_owned(), shape)), values)
}

/// Which side of a parameter has the features of the residual stream.
enum Touching {
    /// Its rows: it reads the stream.
    Inputs,
    /// Its columns: it writes to the stream, or has a number for each feature.
    Outputs,
    /// Neither.
    None,
}

fn touching(name: &str) -> Touching {
    let reads = ["qkv", "query", "key_value", "inner"].map(|layer| format!(".{layer}."));
    match reads.iter().any(|layer| name.contains(layer)) {
        true if name.ends_with(".weight") => Touching::Inputs,
        true => Touching::None,
        // A number for each token.
        false if name == "output.bias" => Touching::None,
        false => Touching::Outputs,
    }
}

#[cfg(test)]
mod tests {
    use heedful_tensor::DType;
    use heedful_tensor::ops::{Waves, waves};

    use super::*;
    use crate::data::batch::Batch;
    use crate::layers::{Halves, Norm, Pass, Positions, Tying};
    use crate::models::Model;
    use crate::models::transformer::{Transformer, TransformerConfig};

    #[test]
    fn a_reordered_model_with_halves_computes_the_same_and_the_way_back_gives_every_bit() {
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
            let moved = reordered(&weights, config.d_model, WaveOrder::Halves);
            moved.install(other.params()).expect("the same shapes");
            let batch = Batch::new(&[(vec![5, 6, 7, 9], vec![8, 9])], 1, 2).expect("a good batch");
            let logits =
                |model: &Transformer| model.logits(&batch, &mut Pass::inference(DType::F32)).to_vec();
            let far =
                logits(&model).iter().zip(logits(&other)).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(far < 1e-5, "{far}");
            let back = reordered(&moved, config.d_model, WaveOrder::Pairs);
            for (name, _, numbers) in weights.iter() {
                assert_eq!(back.get(name), Some(numbers), "{name}");
            }
        }
    }

    #[test]
    fn the_order_is_that_of_the_waves() {
        let mut rows = [[0.0; 8]; 2];
        for (row, kind) in rows.iter_mut().zip([Waves::Pairs, Waves::Halves]) {
            waves(kind, 5, row);
        }
        let table = |row: [f32; 8]| {
            Weights::from_matrices([("position.weight".to_owned(), [1, 8])].into_iter(), row.to_vec())
        };
        let moved = reordered(&table(rows[0]), 8, WaveOrder::Halves);
        assert_eq!(moved.get("position.weight"), Some(&rows[1][..]));
    }
}
