//! Checks that several configurations share.

use heedful_tensor::ops::ScoreForm;

use super::ConfigError;
use crate::data::{SpecialTokens, UNK};
use crate::layers::{AttentionScore, Positions, Tying};

/// Maximum depth, in recipes too: a deeper model would only run out of memory.
const MAX_LAYERS: usize = 1_000;
/// Maximum of any other size: the product of two is far from overflowing.
const MAX_SIZE: usize = 10_000_000;

/// Checks that no size is 0 or unreasonably large.
pub(crate) fn sizes(sizes: &[(&'static str, usize)]) -> Result<(), ConfigError> {
    for &(what, size) in sizes {
        let most = if what.ends_with("layers") { MAX_LAYERS } else { MAX_SIZE };
        match size {
            0 => return Err(ConfigError::Zero { what }),
            _ if size > most => return Err(ConfigError::Large { what, size, most }),
            _ => {}
        }
    }
    Ok(())
}

/// Checks that a vocabulary has at least two tokens.
pub(crate) fn vocabulary(what: &'static str, size: usize) -> Result<(), ConfigError> {
    if size < 2 { Err(ConfigError::SmallVocabulary { what, size }) } else { sizes(&[(what, size)]) }
}

/// Checks that special tokens, unless they are the defaults of heedful's own vocabularies, are in their
/// vocabularies (source, target).
pub(crate) fn special_tokens(
    special: &SpecialTokens,
    [source, target]: [usize; 2],
) -> Result<(), ConfigError> {
    if special.are_default() {
        return Ok(());
    }
    let single = [
        ("special.bos", Some(special.bos), target),
        ("special.eos", Some(special.eos), target),
        ("special.source_eos", special.source_eos, source),
        ("special.text_first", special.text_first, source),
        ("special.text_last", special.text_last, source),
        ("special.mask", Some(special.mask).filter(|&mask| mask != UNK), source),
    ];
    let suppressed = special.suppressed.iter().map(|&id| ("special.suppressed", Some(id), target));
    for (what, id, vocabulary) in single.into_iter().chain(suppressed) {
        if let Some(id) = id.filter(|&id| id as usize >= vocabulary) {
            return Err(ConfigError::SpecialToken { what, id, vocabulary });
        }
    }
    if !special.suppressed.is_sorted_by(|a, b| a < b) || special.suppressed.contains(&special.eos) {
        return Err(ConfigError::Suppressed { eos: special.eos });
    }
    Ok(())
}

/// Checks both vocabularies, and that they have the same size if their embeddings are tied.
pub(crate) fn vocabularies(source: usize, target: usize, tying: Tying) -> Result<(), ConfigError> {
    vocabulary("source_vocabulary", source)?;
    vocabulary("target_vocabulary", target)?;
    if matches!(tying, Tying::All | Tying::SourceTarget) && source != target {
        let (source_vocabulary, target_vocabulary) = (source, target);
        return Err(ConfigError::TiedVocabularies { source_vocabulary, target_vocabulary });
    }
    Ok(())
}

/// Checks that every rate is at least 0 and below 1.
pub(crate) fn rates(rates: &[(&'static str, f32)]) -> Result<(), ConfigError> {
    match rates.iter().find(|(_, rate)| !(0.0..1.0).contains(rate)) {
        Some(&(what, rate)) => Err(ConfigError::Rate { what, rate }),
        None => Ok(()),
    }
}

/// Checks that a value is finite and not negative.
pub(crate) fn not_negative(what: &'static str, value: f32) -> Result<(), ConfigError> {
    if value.is_finite() && value >= 0.0 { Ok(()) } else { Err(ConfigError::Negative { what, value }) }
}

/// Checks that the ε of the layer norms is positive and finite.
pub(crate) fn epsilon(epsilon: f32) -> Result<(), ConfigError> {
    if epsilon > 0.0 && epsilon.is_finite() { Ok(()) } else { Err(ConfigError::Epsilon { epsilon }) }
}

/// Checks that sinusoidal positions have an even width, and that a table of learned positions is not empty.
pub(crate) fn positions(positions: Positions, d_model: usize) -> Result<(), ConfigError> {
    match positions {
        Positions::Sinusoidal | Positions::Halves(_) if !d_model.is_multiple_of(2) => {
            Err(ConfigError::OddSinusoidalWidth { d_model })
        }
        Positions::Halves(halves) if d_model < halves.waves().min_width() => {
            Err(ConfigError::NarrowHalves { d_model, narrowest: halves.waves().min_width() })
        }
        Positions::Learned { max_length } => sizes(&[("max_length of the learned positions", max_length)]),
        Positions::Sinusoidal | Positions::Halves(_) | Positions::None => Ok(()),
    }
}

/// Checks that the score is a dot product, which multi-head attention requires.
pub(crate) fn score_of_heads(score: AttentionScore) -> Result<(), ConfigError> {
    if score.form() == ScoreForm::Product { Ok(()) } else { Err(ConfigError::HeadScore) }
}

/// Checks that a kernel can be centred on its token.
pub(crate) fn odd_kernel(what: &'static str, taps: usize) -> Result<(), ConfigError> {
    if taps.is_multiple_of(2) { Err(ConfigError::EvenTaps { what, taps }) } else { Ok(()) }
}
