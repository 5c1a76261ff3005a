//! Checks that every family makes of its configuration.

use heedful_tensor::ops::ScoreForm;

use super::ConfigError;
use crate::layers::{Positions, Score, Tying};

/// No size is 0.
pub(crate) fn sizes(sizes: &[(&'static str, usize)]) -> Result<(), ConfigError> {
    match sizes.iter().find(|&&(_, size)| size == 0) {
        Some(&(what, _)) => Err(ConfigError::Zero { what }),
        None => Ok(()),
    }
}

/// There is something to choose from.
pub(crate) fn vocabulary(what: &'static str, size: usize) -> Result<(), ConfigError> {
    if size < 2 { Err(ConfigError::SmallVocabulary { what, size }) } else { Ok(()) }
}

/// The same on both sides, and embeddings that are one matrix have as many rows on both.
pub(crate) fn vocabularies(source: usize, target: usize, tying: Tying) -> Result<(), ConfigError> {
    vocabulary("source_vocabulary", source)?;
    vocabulary("target_vocabulary", target)?;
    if matches!(tying, Tying::All | Tying::SourceTarget) && source != target {
        let (source_vocabulary, target_vocabulary) = (source, target);
        return Err(ConfigError::TiedVocabularies { source_vocabulary, target_vocabulary });
    }
    Ok(())
}

/// Every rate or share leaves something.
pub(crate) fn rates(rates: &[(&'static str, f32)]) -> Result<(), ConfigError> {
    match rates.iter().find(|(_, rate)| !(0.0..1.0).contains(rate)) {
        Some(&(what, rate)) => Err(ConfigError::Rate { what, rate }),
        None => Ok(()),
    }
}

/// A number, and not below 0.
pub(crate) fn not_negative(what: &'static str, value: f32) -> Result<(), ConfigError> {
    if value.is_finite() && value >= 0.0 { Ok(()) } else { Err(ConfigError::Negative { what, value }) }
}

/// ε of the norms.
pub(crate) fn epsilon(epsilon: f32) -> Result<(), ConfigError> {
    if epsilon > 0.0 && epsilon.is_finite() { Ok(()) } else { Err(ConfigError::Epsilon { epsilon }) }
}

/// Sines and cosines come in pairs, and a table of learned positions has rows.
pub(crate) fn positions(positions: Positions, d_model: usize) -> Result<(), ConfigError> {
    match positions {
        Positions::Sinusoidal if !d_model.is_multiple_of(2) => {
            Err(ConfigError::OddSinusoidalWidth { d_model })
        }
        Positions::Learned { max_length } => sizes(&[("max_length of the learned positions", max_length)]),
        Positions::Sinusoidal | Positions::None => Ok(()),
    }
}

/// Heads multiply queries and keys.
pub(crate) fn score_of_heads(score: Score) -> Result<(), ConfigError> {
    if score.form() == ScoreForm::Product { Ok(()) } else { Err(ConfigError::HeadScore) }
}

/// A window has its token in the middle.
pub(crate) fn odd_taps(what: &'static str, taps: usize) -> Result<(), ConfigError> {
    if taps.is_multiple_of(2) { Err(ConfigError::EvenTaps { what, taps }) } else { Ok(()) }
}
