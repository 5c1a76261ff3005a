//! Paired measurement: heedful and the peer alternate in rounds.
//!
//! A shared machine has fast and slow phases that last longer than a round. Two runs at different times would
//! compare the phases; the ratio within a round compares the programs, and its median is reported.

use std::thread::sleep;
use std::time::Duration;

use anyhow::Result;

/// OpenMP threads spin for a while after their last work; a turn that starts earlier shares its cores with
/// them.
const REST: Duration = Duration::from_millis(30);

/// Seconds of both sides, round by round.
#[derive(Clone, Debug, Default)]
pub struct Paired {
    /// Our seconds.
    pub ours: Vec<f64>,
    /// The peer's seconds in the same rounds.
    pub peer: Vec<f64>,
}

/// One side of a race: does its work once and returns its seconds.
pub type Turn<'a> = Box<dyn FnMut() -> Result<f64> + 'a>;

/// Runs `rounds` rounds in which every side has one turn, and returns each side's seconds.
///
/// The order alternates from round to round, so that no side always inherits the caches and the clock
/// frequency of another. The caller warms up all sides first.
pub fn take_turns(rounds: usize, sides: &mut [Turn<'_>]) -> Result<Vec<Vec<f64>>> {
    let mut seconds = vec![Vec::with_capacity(rounds); sides.len()];
    for round in 0..rounds {
        let mut order: Vec<usize> = (0..sides.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for side in order {
            sleep(REST);
            seconds[side].push(sides[side]()?);
        }
    }
    Ok(seconds)
}

/// [`take_turns`] with two sides.
pub fn race(
    rounds: usize,
    ours: impl FnMut() -> Result<f64>,
    peer: impl FnMut() -> Result<f64>,
) -> Result<Paired> {
    let mut seconds = take_turns(rounds, &mut [Box::new(ours), Box::new(peer)])?.into_iter();
    let mut next = || seconds.next().unwrap_or_default();
    Ok(Paired { ours: next(), peer: next() })
}

impl Paired {
    /// The speed of heedful relative to the peer, per round.
    pub fn ratios(&self) -> Vec<f64> {
        self.ours.iter().zip(&self.peer).map(|(ours, peer)| peer / ours).collect()
    }
}

/// The quartiles and the range of a set of measurements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quartiles {
    /// The minimum.
    pub min: f64,
    /// The 25th percentile.
    pub p25: f64,
    /// The median.
    pub median: f64,
    /// The 75th percentile.
    pub p75: f64,
    /// The maximum.
    pub max: f64,
}

impl Quartiles {
    /// Interpolates between adjacent values. Panics on an empty set.
    pub fn of(values: &[f64]) -> Self {
        let at = |share| quantile(values, share);
        Self { min: at(0.0), p25: at(0.25), median: at(0.5), p75: at(0.75), max: at(1.0) }
    }
}

/// A quantile of the values (`share` in `[0, 1]`), interpolated between adjacent values. Panics on an empty
/// set.
pub fn quantile(values: &[f64], share: f64) -> f64 {
    assert!(!values.is_empty(), "a quantile of no measurements");
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let position = share * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[position.floor() as usize], sorted[position.ceil() as usize]);
    below + (above - below) * position.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_interpolate() {
        let quartiles = Quartiles::of(&[4.0, 1.0, 3.0, 2.0]);
        let expected = Quartiles { min: 1.0, p25: 1.75, median: 2.5, p75: 3.25, max: 4.0 };
        assert_eq!(quartiles, expected);
        assert_eq!(Quartiles::of(&[7.0]).p75, 7.0);
    }

    #[test]
    fn a_race_alternates_which_side_starts() {
        let order = std::cell::RefCell::new(String::new());
        let turn = |name: char, seconds: f64| {
            order.borrow_mut().push(name);
            Ok(seconds)
        };
        let paired = race(3, || turn('o', 1.0), || turn('p', 2.0)).unwrap();
        assert_eq!(*order.borrow(), "oppoop");
        assert_eq!(paired.ratios(), [2.0; 3]);
    }
}
