//! Checks, before allocating, whether a run can fit into the memory of the machine.
//!
//! ```text
//! model   parameters × (value, Adam's first and second moment) × 4 bytes
//! batch   tokens × d_model × layers × 2 bytes       the input of each layer, saved for backward
//! ```
//!
//! These are lower bounds: a rejected run could not have fitted.

use crate::models::Model;
use crate::recipe::Recipe;
use crate::system;
use crate::{Error, Result};

/// Assumed if the system does not report its memory: more than any machine has.
const UNKNOWN_MEMORY: u64 = 1 << 44;

/// Rejects a recipe whose model, with these vocabulary sizes and this number of labels, cannot fit.
pub(super) fn check(recipe: &Recipe, vocabularies: [usize; 2], labels: usize) -> Result<()> {
    check_within(system::memory().unwrap_or(UNKNOWN_MEMORY), recipe, vocabularies, labels)
}

fn check_within(memory: u64, recipe: &Recipe, vocabularies: [usize; 2], labels: usize) -> Result<()> {
    let config = recipe.model_config(vocabularies, labels)?;
    // Parameters are allocated on first use.
    let model = config.build(0)?;
    let parameters = model.params().registered_elements() as u64;
    let bytes = parameters.saturating_mul(3 * 4);
    if bytes > memory {
        let (bytes, memory) = (gigabytes(bytes), gigabytes(memory));
        return Err(Error::new(format!(
            "a model of {parameters} parameters takes at least {bytes} of memory, and the machine has {memory}: choose smaller sizes"
        )));
    }
    let layers = recipe.model.encoder_layers.max(recipe.model.decoder_layers);
    let bytes_per_token = (2 * recipe.model.d_model as u64).saturating_mul(layers as u64);
    let tokens = recipe.training.batch_tokens;
    let bytes = bytes_per_token.saturating_mul(tokens as u64);
    if bytes > memory {
        let (bytes, memory) = (gigabytes(bytes), gigabytes(memory));
        return Err(Error::new(format!(
            "a batch of {tokens} tokens takes at least {bytes} of memory, and the machine has {memory}: make \
             training.batch_tokens smaller"
        )));
    }
    Ok(())
}

/// Formats a size in GB.
fn gigabytes(bytes: u64) -> String {
    format!("{:.1} GB", bytes as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_cannot_fit_are_rejected_before_allocation() {
        let mut recipe = Recipe::default();
        let check = |recipe: &Recipe| {
            check_within(16_000_000_000, recipe, [8000; 2], 2).map_err(|error| error.to_string())
        };
        assert_eq!(check(&recipe), Ok(()));
        recipe.training.batch_tokens = 100_000_000;
        let error = check(&recipe).expect_err("153.6 GB");
        assert!(
            error.contains("100000000 tokens takes at least 153.6 GB of memory, and the machine has 16.0 GB"),
            "{error}"
        );
        recipe.model.d_model = 1_000_000;
        recipe.model.heads = 1;
        let error = check(&recipe).expect_err("terabytes");
        assert!(error.contains("parameters takes at least") && error.contains("16.0 GB"), "{error}");
    }
}
