//! Sinusoidal positions: pair `i` of a row is a hand of a clock that turns by `1 / 10000^{2i/d}` with each position.
//!
//! A step of k positions turns every hand by a fixed angle, so `PE(pos + k)` is a linear function of `PE(pos)` that
//! does not depend on `pos`: a head can learn to attend k tokens back.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

/// One row of the sinusoidal table: `PE(pos, 2i) = sin(pos / 10000^{2i/d})`, `PE(pos, 2i+1) = cos(…)`.
///
/// # Panics
/// If the row has an odd length: sine and cosine come in pairs.
pub fn sinusoid(position: usize, out: &mut [f32]) {
    let width = out.len();
    assert!(width.is_multiple_of(2), "sinusoid: the width must be even, not {width}");
    for (i, [sine, cosine]) in out.as_chunks_mut::<2>().0.iter_mut().enumerate() {
        let angle = position as f64 / 10_000_f64.powf((2 * i) as f64 / width as f64);
        (*sine, *cosine) = (angle.sin() as f32, angle.cos() as f32);
    }
}

/// At least `rows` rows of the table, which is kept and grows when a longer sequence comes.
pub(super) fn table(width: usize, rows: usize) -> Arc<[f32]> {
    static TABLES: OnceLock<Mutex<HashMap<usize, Arc<[f32]>>>> = OnceLock::new();
    let mut tables = TABLES.get_or_init(Mutex::default).lock().expect("sinusoid lock");
    let table = tables.entry(width).or_default();
    if table.len() < rows * width {
        let mut longer = vec![0.0; rows.next_power_of_two().max(256) * width];
        for (position, row) in longer.chunks_exact_mut(width).enumerate() {
            sinusoid(position, row);
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
        assert_eq!(table(4, 4)[12..16], row);
        assert_eq!(table(4, 5000)[12..16], row);
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
