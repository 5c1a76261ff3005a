//! `PE(pos, 2i) = sin(pos / 10000^{2i/d})`, `PE(pos, 2i+1) = cos(pos / 10000^{2i/d})`.
//!
//! Each pair `(sin, cos)` is a hand of a clock, and a later position is the same hand turned further:
//!
//! ```text
//! PE(pos + k) = R_k PE(pos),   R_k turns pair i by the angle k / 10000^{2i/d}
//! ```
//!
//! `R_k` does not depend on `pos`, so "k words back" is one fixed linear map, which attention can learn. Learned
//! positions have a table instead, and end where the table ends.

use heedful_tensor::{Init, Param, Params, ops};
use serde::{Deserialize, Serialize};

/// Which positions a model uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Positions {
    /// The paper's sines and cosines: any length, nothing to learn.
    Sinusoidal,
    /// One learned vector for each position.
    Learned {
        /// How many there are: no sentence may be longer.
        max_length: usize,
    },
    /// None: without recurrence or positions the order of words is invisible.
    None,
}

impl Positions {
    /// The longest sequence that these positions can tell apart; `None` if there is no limit.
    pub fn longest(self) -> Option<usize> {
        match self {
            Positions::Learned { max_length } => Some(max_length),
            Positions::Sinusoidal | Positions::None => None,
        }
    }
}

/// What is added to the embeddings of one side of a model.
#[derive(Clone)]
pub enum Position {
    /// Computed.
    Sinusoidal,
    /// Looked up.
    Learned(Param),
    /// Nothing.
    None,
}

impl Position {
    /// The positions that `positions` asks for, of width `d`; learned ones are the parameter `<name>.weight`.
    pub fn new(params: &Params, name: &str, positions: Positions, d: usize) -> Position {
        match positions {
            Positions::Sinusoidal => Position::Sinusoidal,
            Positions::Learned { max_length } => {
                // Once scaled by √d the embeddings have unit deviation; positions start well below that.
                let init = Init::Normal((d as f32).powf(-0.5));
                Position::Learned(params.add(&format!("{name}.weight"), max_length, d, init))
            }
            Positions::None => Position::None,
        }
    }

    /// As the embedding operation wants it.
    pub fn for_operation(&self) -> ops::Positions<'_> {
        match self {
            Position::Sinusoidal => ops::Positions::Sinusoidal,
            Position::Learned(table) => ops::Positions::Learned(table),
            Position::None => ops::Positions::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shift_is_a_fixed_rotation() {
        let d = 64;
        let row = |position: usize| {
            let mut row = vec![0.0; d];
            ops::sinusoid(position, &mut row);
            row
        };
        for shift in [1, 2, 7, 50] {
            for position in [0, 1, 13, 100] {
                let (now, later) = (row(position), row(position + shift));
                for i in 0..d / 2 {
                    let angle = shift as f64 / 10000_f64.powf(2.0 * i as f64 / d as f64);
                    let (sin, cos) = (f64::from(now[2 * i]), f64::from(now[2 * i + 1]));
                    let turned =
                        [sin * angle.cos() + cos * angle.sin(), cos * angle.cos() - sin * angle.sin()];
                    for (turned, &later) in turned.iter().zip(&later[2 * i..2 * i + 2]) {
                        let difference = (turned - f64::from(later)).abs();
                        assert!(
                            difference < 1e-4,
                            "PE({position} + {shift}), pair {i}: {turned} and {later}"
                        );
                    }
                }
            }
        }
    }
}
