//! Sinusoidal positions: pair `i` of a row is a hand of a clock that turns by `1 / 10000^{2i/d}` with each position.
//!
//! ```text
//! pairs          PE(pos, 2i) = sin(pos / 10000^{2i/d})             PE(pos, 2i+1) = cos(…)        the paper's
//! halves         PE(pos, i)  = sin(pos / 10000^{2i/d})             PE(pos, d/2+i) = cos(…)       Hugging Face's MarianMT
//! closed halves  PE(pos, i)  = sin(pos / 10000^{i/(d/2−1)})        PE(pos, d/2+i) = cos(…)       Marian's, OpenNMT's
//! ```
//!
//! A step of k positions turns every hand by a fixed angle, so `PE(pos + k)` is a linear function of `PE(pos)` that
//! does not depend on `pos`: a head can learn to attend k tokens back.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

/// Where the sines and cosines of a row stand, and how the slowest of them turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Waves {
    /// Sine and cosine in turn; exponents 2i/d, which do not reach 1.
    #[default]
    Pairs,
    /// All sines before all cosines, at the same angles.
    Halves,
    /// All sines before all cosines; exponents i/(d/2 − 1), the last of which is 1.
    ClosedHalves,
}

impl Waves {
    /// The angle of pair `i` of a row of `width` numbers.
    fn angle(self, position: usize, i: usize, width: usize) -> f64 {
        let exponent = match self {
            Waves::Pairs | Waves::Halves => (2 * i) as f64 / width as f64,
            Waves::ClosedHalves => i as f64 / (width / 2 - 1) as f64,
        };
        position as f64 / 10_000_f64.powf(exponent)
    }

    /// The smallest width of a row.
    pub fn narrowest(self) -> usize {
        match self {
            Waves::Pairs | Waves::Halves => 2,
            Waves::ClosedHalves => 4,
        }
    }
}

/// One row of the sinusoidal table of the paper: `PE(pos, 2i) = sin(pos / 10000^{2i/d})`, `PE(pos, 2i+1) = cos(…)`.
///
/// # Panics
/// If the row has an odd length: sine and cosine come in pairs.
pub fn sinusoid(position: usize, out: &mut [f32]) {
    waves(Waves::Pairs, position, out);
}

/// One row of a sinusoidal table.
///
/// # Panics
/// If the row has an odd length or is [too narrow](Waves::narrowest).
pub fn waves(kind: Waves, position: usize, out: &mut [f32]) {
    let width = out.len();
    assert!(width.is_multiple_of(2), "sinusoid: the width must be even, not {width}");
    assert!(width == 0 || width >= kind.narrowest(), "sinusoid: {kind:?} are wider than {width}");
    for i in 0..width / 2 {
        let angle = kind.angle(position, i, width);
        let [sine, cosine] = match kind {
            Waves::Pairs => [2 * i, 2 * i + 1],
            Waves::Halves | Waves::ClosedHalves => [i, width / 2 + i],
        };
        (out[sine], out[cosine]) = (angle.sin() as f32, angle.cos() as f32);
    }
}

/// At least `rows` rows of the table, which is kept and grows when a longer sequence comes.
pub(super) fn table(kind: Waves, width: usize, rows: usize) -> Arc<[f32]> {
    /// By kind and width.
    type Tables = HashMap<(Waves, usize), Arc<[f32]>>;
    static TABLES: OnceLock<Mutex<Tables>> = OnceLock::new();
    let mut tables = TABLES.get_or_init(Mutex::default).lock().expect("sinusoid lock");
    let table = tables.entry((kind, width)).or_default();
    if table.len() < rows * width {
        let mut longer = vec![0.0; rows.next_power_of_two().max(256) * width];
        for (position, row) in longer.chunks_exact_mut(width).enumerate() {
            waves(kind, position, row);
        }
        *table = longer.into();
    }
    table.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_formula() {
        let mut row = [0.0; 4];
        sinusoid(3, &mut row);
        let expected = [3_f32.sin(), 3_f32.cos(), 0.03_f32.sin(), 0.03_f32.cos()];
        assert!(row.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6), "{row:?}");
        assert_eq!(table(Waves::Pairs, 4, 4)[12..16], row);
        assert_eq!(table(Waves::Pairs, 4, 5000)[12..16], row);
    }

    #[test]
    fn halves_have_the_sines_first_and_closed_ones_end_at_one_ten_thousandth() {
        let row = |kind, position| {
            let mut row = [0.0; 6];
            waves(kind, position, &mut row);
            row
        };
        let pairs = row(Waves::Pairs, 7);
        let [a, b, c, d, e, f] = pairs;
        assert_eq!(row(Waves::Halves, 7), [a, c, e, b, d, f]);
        let closed = row(Waves::ClosedHalves, 7);
        let angles = [7.0_f64, 7.0 / 100.0, 7.0 / 10_000.0];
        for (i, angle) in angles.into_iter().enumerate() {
            assert!((f64::from(closed[i]) - angle.sin()).abs() < 1e-7, "{closed:?}");
            assert!((f64::from(closed[3 + i]) - angle.cos()).abs() < 1e-7, "{closed:?}");
        }
        // The tables of the kinds are not mixed up.
        assert_eq!(table(Waves::Halves, 6, 8)[42..48], row(Waves::Halves, 7));
        assert_eq!(table(Waves::ClosedHalves, 6, 8)[42..48], closed);
    }

    #[test]
    #[should_panic(expected = "sinusoid: ClosedHalves are wider than 2")]
    fn closed_halves_of_one_pair_are_refused() {
        waves(Waves::ClosedHalves, 0, &mut [0.0; 2]);
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
            let turn = row(shift);
            for position in [0, 1, 17, 400, 3000] {
                let (here, there) = (row(position), row(position + shift));
                for i in (0..width).step_by(2) {
                    let (sine, cosine) = (turn[i], turn[i + 1]);
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
