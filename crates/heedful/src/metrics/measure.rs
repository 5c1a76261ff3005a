//! The values that a training run records, by name.

use std::fmt;

macro_rules! measures {
    ($($(#[$doc:meta])* $Name:ident = $key:literal,)+) => {
        /// A value that is recorded during training.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Measure {
            $($(#[$doc])* $Name,)+
        }

        impl Measure {
            /// Its name in `metrics.jsonl` and in TensorBoard.
            pub fn key(self) -> &'static str {
                match self { $(Measure::$Name => $key,)+ }
            }

            /// The measure with this name.
            pub fn from_key(key: &str) -> Option<Measure> {
                match key {
                    $($key => Some(Measure::$Name),)+
                    _ => None,
                }
            }
        }
    };
}

measures! {
    /// Training loss per prediction, without label smoothing.
    Loss = "loss",
    /// Share of training predictions that were correct.
    Accuracy = "accuracy",
    /// Learning rate of the last update.
    LearningRate = "learning_rate",
    /// Gradient norm of the last update, before clipping.
    GradientNorm = "gradient_norm",
    /// Training speed in tokens per second.
    TokensPerSecond = "tokens_per_second",
    /// Floating point operations of the run so far: three times those of the forward passes
    /// (`heedful_tensor::flops`).
    Flops = "flops",
    /// Loss on the validation set.
    ValidLoss = "valid_loss",
    /// Perplexity on the validation set: the exponential of its loss.
    ValidPerplexity = "valid_perplexity",
    /// Share of correct predictions on the validation set.
    ValidAccuracy = "valid_accuracy",
    /// BLEU of the validation set's translations.
    ValidBleu = "valid_bleu",
    /// Macro F1 of the validation set's labels.
    ValidMacroF1 = "valid_macro_f1",
    /// Perplexity per word, which is comparable between vocabularies.
    ValidWordPerplexity = "valid_word_perplexity",
    /// Perplexity per byte.
    ValidBytePerplexity = "valid_byte_perplexity",
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_survive_a_round_trip() {
        for measure in [Measure::Loss, Measure::ValidBleu, Measure::ValidBytePerplexity] {
            assert_eq!(Measure::from_key(measure.key()), Some(measure));
        }
        assert_eq!(Measure::from_key("norm"), None);
    }
}
