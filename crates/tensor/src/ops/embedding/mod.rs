//! Token embeddings: scaled, plus positional encodings, with dropout.
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
//! For a token without a row ([`NO_TOKEN`]), `table[id_t]` is 0 and has no gradient.
//!
//! Shapes: `table` is `vocabulary × d`, a learned position table `positions × d`, y is `tokens × d`, f32.
//! Saved for backward: the ids and the positions. Tokens are added in order, and each task owns some columns
//! of the table for all tokens: tasks do not conflict, and the sums do not depend on the number of threads.

mod cpu;
pub(crate) mod cuda;
mod sinusoid;

pub use sinusoid::{SinusoidLayout, sinusoid, sinusoid_row};

use std::sync::Arc;

use crate::random::Dropout;
use crate::{Compute, Device, Param, Ragged, Tensor};

/// The id of a token without a row in the table: its embedding is 0. For decoders that begin without a token.
pub const NO_TOKEN: u32 = u32::MAX;

/// The positional encodings that are added to the embeddings.
#[derive(Clone, Copy)]
pub enum Positions<'a> {
    /// No encodings.
    None,
    /// Sines and cosines of `pos`.
    Sinusoidal(SinusoidLayout),
    /// Row `pos` of a learned table.
    Learned(&'a Param),
}

/// The options of [`embedding`].
#[derive(Clone, Copy)]
pub struct EmbeddingOptions<'a> {
    /// The table's rows are multiplied by this (√d_model).
    pub scale: f32,
    /// Added after scaling.
    pub positions: Positions<'a>,
    /// Position of the first token of every sequence: 0, or the number of tokens decoded before.
    pub first_position: usize,
    /// Applied to the sum.
    pub dropout: Dropout,
    /// As in [`super::NormOptions`].
    pub compute: Compute,
}

/// `y_t = dropout(scale · table[id_t] + PE(pos_t))`, f32.
///
/// # Panics
/// If the numbers of ids and tokens differ, an id other than [`NO_TOKEN`] or a position is out of range, the
/// widths differ, or the width is odd or too small for sinusoidal positions.
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

/// As [`embedding`] with one position for each token, relative to `first_position`: for the newest tokens of
/// sentences that are decoded in one batch.
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
    .with_bf16(narrow)
}

/// Panics if the inputs do not fit.
fn check(ids: &[u32], positions: &[usize], table: &Param, options: EmbeddingOptions<'_>) {
    let [vocabulary, width] = table.shape();
    if let Some(id) = ids.iter().find(|&&id| id != NO_TOKEN && id as usize >= vocabulary) {
        panic!("embedding: id {id} is beyond the table's {vocabulary} rows");
    }
    let end = positions.iter().max().map_or(0, |last| last + 1);
    match options.positions {
        Positions::None => {}
        Positions::Sinusoidal(layout) => {
            assert!(
                width.is_multiple_of(2) && width >= layout.min_width(),
                "embedding: sinusoidal positions ({layout:?}) need an even width of at least {}, not {width}",
                layout.min_width()
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
    fn rows_are_looked_up_scaled_and_get_positions() {
        let params = Params::new(1);
        let table = params.add("table", 3, 2, Init::Constant(0.0));
        let position_table = params.add("positions", 4, 2, Init::Constant(0.0));
        table.set(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        position_table.set(&[10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0]);
        let sequences = Ragged::from_lengths([1, 2]);
        let plain = embedding(&[2, 0, 2], &sequences, &table, options(Positions::None));
        assert_eq!(plain.to_vec(), [10.0, 12.0, 2.0, 4.0, 10.0, 12.0]);
        let later = EmbeddingOptions { first_position: 1, ..options(Positions::Learned(&position_table)) };
        let placed = embedding(&[2, 0, 2], &sequences, &table, later);
        assert_eq!(placed.to_vec(), [40.0, 52.0, 32.0, 44.0, 60.0, 72.0]);

        tape::backward_from(&placed, Array::from_f32(3, 2, &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0]));
        assert_eq!(table.gradient(), [8.0, 16.0, 0.0, 0.0, 34.0, 68.0]);
        assert_eq!(position_table.gradient(), [0.0, 0.0, 5.0, 10.0, 16.0, 32.0, 0.0, 0.0]);
        tape::backward_from(&plain, Array::from_f32(3, 2, &[1.0; 6]));
        assert_eq!(table.gradient(), [10.0, 18.0, 0.0, 0.0, 38.0, 72.0]);
    }

    #[test]
    fn dropout_drops_the_same_elements_forward_and_backward() {
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
    fn an_id_out_of_range_is_reported() {
        let table = Params::new(1).add("table", 3, 2, Init::Constant(0.0));
        embedding(&[0, 3], &Ragged::from_lengths([2]), &table, options(Positions::None));
    }

    #[test]
    #[should_panic(expected = "embedding: position 2 is beyond the learned table's 2 rows")]
    fn a_position_out_of_range_is_reported() {
        let params = Params::new(1);
        let table = params.add("table", 3, 2, Init::Constant(0.0));
        let position_table = params.add("positions", 2, 2, Init::Constant(0.0));
        embedding(
            &[0, 1, 2],
            &Ragged::from_lengths([3]),
            &table,
            options(Positions::Learned(&position_table)),
        );
    }
}
