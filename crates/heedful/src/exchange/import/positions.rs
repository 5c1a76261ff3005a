//! Detects the kind of positions in a stored table: sinusoids (of unlimited length), learned, or none.

use heedful_tensor::ops::{SinusoidLayout, sinusoid_row};

use super::importer::ParamImporter;
use crate::layers::{Halves, Positions};

/// Tolerance for sinusoids that other libraries computed in f32.
const TOLERANCE: f32 = 2e-3;
/// Tolerance for sinusoids that may have been rounded to bf16, where the format allows no other positions.
const ROUNDED: f32 = 1e-2;

/// The positions of a table of `length × width`; a learned table is imported as the parameter `ours`.
pub(super) fn take(from: &mut ParamImporter<'_>, ours: &str, table: &[f32], width: usize) -> Positions {
    let positions = of_table(table, width);
    if let Positions::Learned { max_length } = positions {
        from.add(ours, [max_length, width], table);
    }
    positions
}

/// The positions of a table of `length × width`.
pub(super) fn of_table(table: &[f32], width: usize) -> Positions {
    let formulas = [
        (Positions::Sinusoidal, SinusoidLayout::Interleaved, 0),
        (Positions::Halves(Halves::MarianMt), Halves::MarianMt.waves(), Halves::MarianMt.first()),
        (Positions::Halves(Halves::Marian), Halves::Marian.waves(), Halves::Marian.first()),
        (Positions::Halves(Halves::OpenNmt), Halves::OpenNmt.waves(), Halves::OpenNmt.first()),
    ];
    if table.iter().all(|&value| value == 0.0) {
        return Positions::None;
    }
    let matching =
        formulas.iter().find(|(_, kind, first)| is_close_to(table, width, (*kind, *first), TOLERANCE));
    let learned = Positions::Learned { max_length: table.len() / width.max(1) };
    matching.map_or(learned, |(positions, ..)| *positions)
}

/// Whether a table has the sinusoids of its format, which heedful computes itself.
pub(super) fn are_sinusoids(halves: Halves, table: &[f32], width: usize) -> bool {
    is_close_to(table, width, (halves.waves(), halves.first()), ROUNDED)
}

fn is_close_to(table: &[f32], width: usize, (kind, first): (SinusoidLayout, usize), tolerance: f32) -> bool {
    if width == 0 || !width.is_multiple_of(2) || width < kind.min_width() {
        return false;
    }
    let mut row = vec![0.0; width];
    table.chunks_exact(width).enumerate().all(|(position, stored)| {
        sinusoid_row(kind, position + first, &mut row);
        row.iter().zip(stored).all(|(a, b)| (a - b).abs() < tolerance)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sinusoids_are_detected_and_other_tables_are_learned() {
        let width = 8;
        let table = |kind, first: usize| -> Vec<f32> {
            let mut table = vec![0.0; 40 * width];
            for (position, row) in table.chunks_exact_mut(width).enumerate() {
                sinusoid_row(kind, position + first, row);
            }
            table
        };
        assert_eq!(of_table(&table(SinusoidLayout::Interleaved, 0), width), Positions::Sinusoidal);
        assert_eq!(of_table(&table(SinusoidLayout::Halves, 0), width), Positions::Halves(Halves::MarianMt));
        assert_eq!(
            of_table(&table(SinusoidLayout::HalvesInclusive, 0), width),
            Positions::Halves(Halves::Marian)
        );
        assert_eq!(
            of_table(&table(SinusoidLayout::HalvesInclusive, 1), width),
            Positions::Halves(Halves::OpenNmt)
        );
        assert_eq!(
            of_table(&table(SinusoidLayout::Interleaved, 1), width),
            Positions::Learned { max_length: 40 }
        );
        assert_eq!(of_table(&[0.5; 15], 5), Positions::Learned { max_length: 3 });
        assert_eq!(of_table(&[0.0; 15], 5), Positions::None);
    }
}
