//! Sinusoidal positional encodings: pair `i` of a row rotates by `1 / 10000^{2i/d}` with each position.
//!
//! ```text
//! interleaved       PE(pos, 2i) = sin(pos / 10000^{2i/d})             PE(pos, 2i+1) = cos(…)        the paper
//! halves            PE(pos, i)  = sin(pos / 10000^{2i/d})             PE(pos, d/2+i) = cos(…)       Hugging Face MarianMT
//! halves inclusive  PE(pos, i)  = sin(pos / 10000^{i/(d/2−1)})        PE(pos, d/2+i) = cos(…)       Marian, OpenNMT
//! ```
//!
//! A step of k positions rotates every pair by a fixed angle, so `PE(pos + k)` is a linear function of
//! `PE(pos)` that does not depend on `pos`: a head can learn to attend k tokens back.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

/// The order of sines and cosines in a row, and their frequencies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SinusoidLayout {
    /// Sine and cosine alternate; exponents 2i/d, which stay below 1.
    #[default]
    Interleaved,
    /// All sines before all cosines, with the same frequencies.
    Halves,
    /// All sines before all cosines; exponents i/(d/2 − 1), including 1.
    HalvesInclusive,
}

impl SinusoidLayout {
    /// The angle of pair `i` of a row of `width` elements.
    fn angle(self, position: usize, i: usize, width: usize) -> f64 {
        let exponent = match self {
            SinusoidLayout::Interleaved | SinusoidLayout::Halves => (2 * i) as f64 / width as f64,
            SinusoidLayout::HalvesInclusive => i as f64 / (width / 2 - 1) as f64,
        };
        position as f64 / 10_000_f64.powf(exponent)
    }

    /// The smallest width of a row.
    pub fn min_width(self) -> usize {
        match self {
            SinusoidLayout::Interleaved | SinusoidLayout::Halves => 2,
            SinusoidLayout::HalvesInclusive => 4,
        }
    }
}

/// One row of the sinusoidal table of the paper: `PE(pos, 2i) = sin(pos / 10000^{2i/d})`,
/// `PE(pos, 2i+1) = cos(…)`.
///
/// # Panics
/// If the row has an odd length.
pub fn sinusoid(position: usize, out: &mut [f32]) {
    sinusoid_row(SinusoidLayout::Interleaved, position, out);
}

/// One row of a sinusoidal table.
///
/// # Panics
/// If the row has an odd length or is [too short](SinusoidLayout::min_width).
pub fn sinusoid_row(layout: SinusoidLayout, position: usize, out: &mut [f32]) {
    let width = out.len();
    assert!(width.is_multiple_of(2), "sinusoid: the width must be even, not {width}");
    assert!(
        width == 0 || width >= layout.min_width(),
        "sinusoid: {layout:?} needs a width of at least {}, not {width}",
        layout.min_width()
    );
    for i in 0..width / 2 {
        let angle = layout.angle(position, i, width);
        let [sine, cosine] = match layout {
            SinusoidLayout::Interleaved => [2 * i, 2 * i + 1],
            SinusoidLayout::Halves | SinusoidLayout::HalvesInclusive => [i, width / 2 + i],
        };
        (out[sine], out[cosine]) = (angle.sin() as f32, angle.cos() as f32);
    }
}

/// At least `rows` rows of the table, which is cached and grows with the longest sequence.
pub(super) fn table(layout: SinusoidLayout, width: usize, rows: usize) -> Arc<[f32]> {
    /// By layout and width.
    type Tables = HashMap<(SinusoidLayout, usize), Arc<[f32]>>;
    static TABLES: OnceLock<Mutex<Tables>> = OnceLock::new();
    let mut tables = TABLES.get_or_init(Mutex::default).lock().expect("sinusoid lock");
    let table = tables.entry((layout, width)).or_default();
    if table.len() < rows * width {
        let mut longer = vec![0.0; rows.next_power_of_two().max(256) * width];
        for (position, row) in longer.chunks_exact_mut(width).enumerate() {
            sinusoid_row(layout, position, row);
        }
        *table = longer.into();
    }
    table.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_follow_the_formula() {
        let mut row = [0.0; 4];
        sinusoid(3, &mut row);
        let expected = [3_f32.sin(), 3_f32.cos(), 0.03_f32.sin(), 0.03_f32.cos()];
        assert!(row.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6), "{row:?}");
        assert_eq!(table(SinusoidLayout::Interleaved, 4, 4)[12..16], row);
        assert_eq!(table(SinusoidLayout::Interleaved, 4, 5000)[12..16], row);
    }

    #[test]
    fn halves_have_the_sines_first_and_inclusive_ones_end_at_one_ten_thousandth() {
        let row = |layout, position| {
            let mut row = [0.0; 6];
            sinusoid_row(layout, position, &mut row);
            row
        };
        let pairs = row(SinusoidLayout::Interleaved, 7);
        let [a, b, c, d, e, f] = pairs;
        assert_eq!(row(SinusoidLayout::Halves, 7), [a, c, e, b, d, f]);
        let inclusive = row(SinusoidLayout::HalvesInclusive, 7);
        let angles = [7.0_f64, 7.0 / 100.0, 7.0 / 10_000.0];
        for (i, angle) in angles.into_iter().enumerate() {
            assert!((f64::from(inclusive[i]) - angle.sin()).abs() < 1e-7, "{inclusive:?}");
            assert!((f64::from(inclusive[3 + i]) - angle.cos()).abs() < 1e-7, "{inclusive:?}");
        }
        // The tables of the layouts are not mixed up.
        assert_eq!(table(SinusoidLayout::Halves, 6, 8)[42..48], row(SinusoidLayout::Halves, 7));
        assert_eq!(table(SinusoidLayout::HalvesInclusive, 6, 8)[42..48], inclusive);
    }

    #[test]
    #[should_panic(expected = "sinusoid: HalvesInclusive needs a width of at least 4, not 2")]
    fn inclusive_halves_of_one_pair_are_refused() {
        sinusoid_row(SinusoidLayout::HalvesInclusive, 0, &mut [0.0; 2]);
    }

    #[test]
    fn a_shift_is_a_rotation_that_does_not_depend_on_the_position() {
        let width = 64;
        let row = |position| {
            let mut row = vec![0.0; width];
            sinusoid(position, &mut row);
            row
        };
        for shift in [1, 5, 100] {
            // The rotation, read off PE(shift): position 0 is (0, 1) in every pair.
            let rotation = row(shift);
            for position in [0, 1, 17, 400, 3000] {
                let (here, there) = (row(position), row(position + shift));
                for i in (0..width).step_by(2) {
                    let (sine, cosine) = (rotation[i], rotation[i + 1]);
                    let rotated =
                        [here[i] * cosine + here[i + 1] * sine, here[i + 1] * cosine - here[i] * sine];
                    assert!((rotated[0] - there[i]).abs() < 1e-6 && (rotated[1] - there[i + 1]).abs() < 1e-6);
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "sinusoid: the width must be even, not 3")]
    fn an_odd_width_is_refused() {
        sinusoid(0, &mut [0.0; 3]);
    }
}
