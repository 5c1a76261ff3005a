//! Upper limits of the numbers in a recipe. Most only prevent overflows and endless loops: whether a model
//! fits into the memory of the machine is checked when a run begins (`train/run/memory.rs`).

use super::{Literal, Recipe, RecipeError, find_key};

const UPPER_LIMITS: [(&str, i64); 19] = [
    ("data.block", 1_000_000),
    ("vocabulary.size", 10_000_000),
    ("model.d_model", 1_000_000),
    ("model.d_ff", 1_000_000),
    ("model.heads", 1_000_000),
    ("model.encoder_layers", 1_000),
    ("model.decoder_layers", 1_000),
    ("model.key_width", 1_000_000),
    ("model.value_width", 1_000_000),
    ("model.d_encoder", 1_000_000),
    ("model.max_positions", 10_000_000),
    ("model.score_width", 1_000_000),
    ("model.kernel_size", 1_001),
    ("model.dilation", 1_000_000),
    ("training.batch_tokens", 100_000_000),
    ("training.accumulate", 1_000_000),
    ("search.beam", 1_000),
    ("search.beyond_source", 100_000),
    ("validation.bleu_pairs", 100_000_000),
];

impl Recipe {
    /// Checks that no number exceeds its limit.
    pub(crate) fn check_limits(&self) -> Result<(), RecipeError> {
        for (path, most) in UPPER_LIMITS {
            let key = find_key(path).expect("a test finds every key of the list");
            if let Literal::Integer(value) = key.value(self)
                && value > most
            {
                return Err(RecipeError::Conflict(format!("{path} is {value}: it may be at most {most}")));
            }
        }
        let coverage = self.vocabulary.coverage;
        if coverage > 1.0 {
            return Err(RecipeError::Conflict(format!(
                "vocabulary.coverage is {coverage}: it is a share, at most 1"
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_names_a_key_and_rejects_larger_values() {
        for (path, most) in UPPER_LIMITS {
            let key = find_key(path).expect("a key");
            let mut recipe = Recipe::default();
            (key.set)(&mut recipe, &Literal::Integer(most)).expect("a whole number");
            assert!(recipe.check_limits().is_ok(), "{path}");
            (key.set)(&mut recipe, &Literal::Integer(most + 1)).expect("a whole number");
            let message = recipe.check_limits().expect_err(path).to_string();
            assert_eq!(message, format!("{path} is {}: it may be at most {most}", most + 1));
        }
    }
}
