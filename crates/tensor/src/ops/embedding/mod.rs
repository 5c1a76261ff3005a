//! Token vectors, scaled, with positions and dropout.
//!
//! ```text
//! y_t = dropout(scale · table[id_t] + PE(pos_t))
//! ```
//!
//! Gradient, with `g_t = dy_t · dropout factor`:
//!
//! ```text
//! dtable[v] = scale · Σ_{t: id_t = v} g_t        dpositions[p] = Σ_{t: pos_t = p} g_t
//! ```
//!
//! A token without a row ([`NO_TOKEN`]) has the vector 0 in the place of `table[id_t]`, and no gradient there.
//!
//! Shapes: `table` is `vocabulary × d`, a learned position table `positions × d`, y is `tokens × d`, f32.
//! Kept for backward: the ids and the positions. Tokens are added in order, and a task owns some columns of the
//! table for all of them: no two tasks meet and the sums do not depend on the number of threads.

mod cpu;
pub(crate) mod cuda;
mod sinusoid;

pub use sinusoid::{Waves, sinusoid, waves};

use std::sync::Arc;

use crate::random::Dropout;
use crate::{Compute, Device, Param, Ragged, Tensor};

/// The id of a token that has no row in the table: its vector is 0, for decoders that begin with none.
pub const NO_TOKEN: u32 = u32::MAX;

/// What is added to a token's vector to tell where it stands.
#[derive(Clone, Copy)]
pub enum Positions<'a> {
    /// Nothing.
    None,
    /// Sines and cosines of `pos`.
    Sinusoidal(Waves),
    /// Row `pos` of a learned table.
    Learned(&'a Param),
}

/// The choices of [`embedding`].
#[derive(Clone, Copy)]
pub struct EmbeddingOptions<'a> {
    /// The table's rows are multiplied by this (√d_model).
    pub scale: f32,
    /// Added afterwards.
    pub positions: Positions<'a>,
    /// Position of the first token of every sequence: 0, or how many tokens were decoded before.
    pub first_position: usize,
    /// Applied to the sum.
    pub dropout: Dropout,
    /// As in [`super::NormOptions`].
    pub compute: Compute,
}

/// `y_t = dropout(scale · table[id_t] + PE(pos_t))`, f32.
///
/// # Panics
/// If there are not as many ids as tokens, an id but [`NO_TOKEN`] or a position is beyond its table, the widths differ, or a
/// sinusoidal width is odd or too narrow.
pub fn embedding(ids: &[u32], sequences: &Ragged, table: &Param, options: EmbeddingOptions<'_>) -> Tensor {
    assert!(
        ids.len() == sequences.tokens(),
        "embedding: {} ids for sequences of {} tokens",
        ids.len(),
        sequences.tokens()
    );
    let first = options.first_position;
    embedded(ids, sequences.positions().map(|position| first + position).collect(), table, options)
}

/// As [`embedding`] for tokens that stand at any positions, counted from `first_position`: the newest tokens of
/// sentences that are decoded side by side.
pub fn embedding_at(
    ids: &[u32],
    positions: &[usize],
    table: &Param,
    options: EmbeddingOptions<'_>,
) -> Tensor {
    assert!(ids.len() == positions.len(), "embedding: {} ids at {} positions", ids.len(), positions.len());
    let first = options.first_position;
    embedded(ids, positions.iter().map(|position| first + position).collect(), table, options)
}

fn embedded(ids: &[u32], positions: Vec<usize>, table: &Param, options: EmbeddingOptions<'_>) -> Tensor {
    check(ids, &positions, table, options);
    let (y, narrow) = match table.device() {
        Device::Cpu => cpu::forward(ids, &positions, table, options),
        Device::Cuda => cuda::forward(ids, &positions, table, options),
    };

    let ids = ids.to_vec();
    let (table, scale, dropout) = (table.clone(), options.scale, options.dropout);
    let learned = match options.positions {
        Positions::Learned(param) => Some(param.clone()),
        _ => None,
    };
    Tensor::from_parameters(y, move |g, _| {
        // y_t = dropout(scale · table[id_t] + PE(pos_t))
        let (g, rows) = (Arc::new(g), ids.iter().map(|&id| id as usize).collect::<Vec<_>>());
        match g.device() {
            Device::Cpu => cpu::scatter(&g, &rows, scale, dropout, &table),
            Device::Cuda => cuda::scatter(&g, &rows, scale, dropout, &table),
        }
        if let Some(learned) = learned {
            match g.device() {
                Device::Cpu => cpu::scatter(&g, &positions, 1.0, dropout, &learned),
                Device::Cuda => cuda::scatter(&g, &positions, 1.0, dropout, &learned),
            }
        }
    })
    .with_narrow(narrow)
}

/// Panics with a sentence if something does not fit.
fn check(ids: &[u32], positions: &[usize], table: &Param, options: EmbeddingOptions<'_>) {
    let [vocabulary, width] = table.shape();
    if let Some(id) = ids.iter().find(|&&id| id != NO_TOKEN && id as usize >= vocabulary) {
        panic!("embedding: id {id} is beyond the table's {vocabulary} rows");
    }
    let end = positions.iter().max().map_or(0, |last| last + 1);
    match options.positions {
        Positions::None => {}
        Positions::Sinusoidal(waves) => {
            assert!(
                width.is_multiple_of(2) && width >= waves.narrowest(),
                "embedding: sinusoidal positions ({waves:?}) need an even width from {}, not {width}",
                waves.narrowest()
            );
        }
        Positions::Learned(param) => {
            let [rows, position_width] = param.shape();
            assert!(
                position_width == width,
                "embedding: the table is {:?} but the positions are {:?}",
                table.shape(),
                param.shape()
            );
            let last = end.saturating_sub(1);
            assert!(end <= rows, "embedding: position {last} is beyond the learned table's {rows} rows");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;
    use crate::{Array, DType};
    use crate::{Init, Params, tape};

    fn options(positions: Positions<'_>) -> EmbeddingOptions<'_> {
        EmbeddingOptions {
            scale: 2.0,
            positions,
            first_position: 0,
            dropout: Dropout::NONE,
            compute: Compute::training(DType::F32),
        }
    }

    #[test]
    fn rows_are_looked_up_scaled_and_placed() {
        let params = Params::new(1);
        let table = params.add("table", 3, 2, Init::Constant(0.0));
        let places = params.add("places", 4, 2, Init::Constant(0.0));
        table.set(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        places.set(&[10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0]);
        let sequences = Ragged::from_lengths([1, 2]);
        let plain = embedding(&[2, 0, 2], &sequences, &table, options(Positions::None));
        assert_eq!(plain.to_vec(), [10.0, 12.0, 2.0, 4.0, 10.0, 12.0]);
        let later = EmbeddingOptions { first_position: 1, ..options(Positions::Learned(&places)) };
        let placed = embedding(&[2, 0, 2], &sequences, &table, later);
        assert_eq!(placed.to_vec(), [40.0, 52.0, 32.0, 44.0, 60.0, 72.0]);

        tape::backward_from(&placed, Array::from_f32(3, 2, &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0]));
        assert_eq!(table.gradient(), [8.0, 16.0, 0.0, 0.0, 34.0, 68.0]);
        assert_eq!(places.gradient(), [0.0, 0.0, 5.0, 10.0, 16.0, 32.0, 0.0, 0.0]);
        tape::backward_from(&plain, Array::from_f32(3, 2, &[1.0; 6]));
        assert_eq!(table.gradient(), [10.0, 18.0, 0.0, 0.0, 38.0, 72.0]);
    }

    #[test]
    fn dropout_drops_the_same_elements_both_ways() {
        let params = Params::new(1);
        let width = 50;
        let table = params.add("table", 1, width, Init::Constant(1.0));
        let dropout = Dropout::new(0.5, Stream::new(4, 5, 6));
        let options = EmbeddingOptions { scale: 1.0, dropout, ..options(Positions::None) };
        let y = embedding(&[0], &Ragged::from_lengths([1]), &table, options);
        assert!(y.to_vec().contains(&0.0) && y.to_vec().contains(&2.0));
        tape::backward_from(&y, Array::from_f32(1, width, &vec![1.0; width]));
        assert_eq!(table.gradient(), y.to_vec());
    }

    #[test]
    #[should_panic(expected = "embedding: id 3 is beyond the table's 3 rows")]
    fn an_unknown_id_is_named() {
        let table = Params::new(1).add("table", 3, 2, Init::Constant(0.0));
        embedding(&[0, 3], &Ragged::from_lengths([2]), &table, options(Positions::None));
    }

    #[test]
    #[should_panic(expected = "embedding: position 2 is beyond the learned table's 2 rows")]
    fn a_position_beyond_the_table_is_named() {
        let params = Params::new(1);
        let table = params.add("table", 3, 2, Init::Constant(0.0));
        let places = params.add("places", 2, 2, Init::Constant(0.0));
        embedding(&[0, 1, 2], &Ragged::from_lengths([3]), &table, options(Positions::Learned(&places)));
    }
}
