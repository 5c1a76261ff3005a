//! The error of an invalid model configuration, and the checks that configurations share. Each family's
//! folder defines its own configuration.

pub(crate) mod check;

/// Why a model cannot be built, and what to change.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// A size is 0.
    #[error("{what} is 0: set it to at least 1")]
    Zero {
        /// The field.
        what: &'static str,
    },
    /// A size is unreasonably large.
    #[error("{what} is {size}: it may be at most {most}")]
    Large {
        /// The field.
        what: &'static str,
        /// Its value.
        size: usize,
        /// The largest value.
        most: usize,
    },
    /// A vocabulary has fewer than two tokens.
    #[error("{what} is {size}: a vocabulary needs at least 2 tokens")]
    SmallVocabulary {
        /// The field.
        what: &'static str,
        /// Its value.
        size: usize,
    },
    /// The width of all heads together is not a multiple of the number of heads.
    #[error(
        "{heads} heads do not divide {what} {width}: choose heads that divide it, or a {what} that is a multiple of \
         {heads} (for instance {})",
        width.next_multiple_of(*heads)
    )]
    HeadsDoNotDivide {
        /// Number of heads.
        heads: usize,
        /// The field.
        what: &'static str,
        /// Its value.
        width: usize,
    },
    /// Sinusoidal positions have an odd width; sines and cosines come in pairs.
    #[error(
        "sinusoidal positions need an even d_model, not {d_model}: use {} or learned positions",
        d_model + 1
    )]
    OddSinusoidalWidth {
        /// The width.
        d_model: usize,
    },
    /// d_model is too small for positions in halves (sines, then cosines).
    #[error(
        "these positions need a d_model of at least {narrowest}, not {d_model}: use a larger d_model, or other positions"
    )]
    NarrowHalves {
        /// The width.
        d_model: usize,
        /// The smallest width.
        narrowest: usize,
    },
    /// A kernel that must be centred on its token has an even size.
    #[error("{what} is {taps}: a kernel that is centred on its token has an odd size, use {} or {}", taps - 1, taps + 1)]
    EvenTaps {
        /// The field.
        what: &'static str,
        /// Its value.
        taps: usize,
    },
    /// A rate is not at least 0 and below 1.
    #[error("{what} is {rate}: it must be at least 0 and below 1")]
    Rate {
        /// The field.
        what: &'static str,
        /// Its value.
        rate: f32,
    },
    /// A classifier has fewer than two labels.
    #[error("a classifier of {labels} labels: it needs at least two to decide between")]
    FewLabels {
        /// Number of labels.
        labels: usize,
    },
    /// Multi-head attention does not support the score.
    #[error("the score of this model must be scaled-dot or dot: the other scores are for recurrent models")]
    HeadScore,
    /// A dot-product score compares vectors of different widths.
    #[error(
        "the score {score} multiplies a state of the decoder ({query} wide) with one of the encoder ({key} wide): make \
         them equal, or use the score additive or general"
    )]
    ScoreWidths {
        /// The score.
        score: &'static str,
        /// Width of a decoder state.
        query: usize,
        /// Width of an encoder output.
        key: usize,
    },
    /// The width of a convolutional encoder differs from that of its embeddings.
    #[error("the convolutional encoder is {encoder} wide and d_model is {d_model}: make them equal")]
    EncoderWidth {
        /// Width of the encoder.
        encoder: usize,
        /// Width of the embeddings.
        d_model: usize,
    },
    /// A value is negative or not finite.
    #[error("{what} is {value}: it must be finite and at least 0")]
    Negative {
        /// The field.
        what: &'static str,
        /// Its value.
        value: f32,
    },
    /// The ε of the layer norms is not positive and finite.
    #[error("norm_epsilon is {epsilon}: it must be a small positive number such as 1e-5")]
    Epsilon {
        /// Its value.
        epsilon: f32,
    },
    /// A special token is not in its vocabulary.
    #[error("{what} is {id}, but the vocabulary has {vocabulary} tokens: give the id of one of them")]
    SpecialToken {
        /// The field.
        what: &'static str,
        /// Its value.
        id: u32,
        /// Size of the vocabulary.
        vocabulary: usize,
    },
    /// The suppressed tokens are not sorted, or include the token that ends outputs.
    #[error(
        "special.suppressed must have ids in ascending order, each once, and not {eos}, which ends outputs"
    )]
    Suppressed {
        /// The token that ends outputs.
        eos: u32,
    },
    /// Embeddings are tied, but the vocabularies have different sizes.
    #[error(
        "source and target embeddings are tied, but the vocabularies have {source_vocabulary} and {target_vocabulary} \
         tokens: use one joint vocabulary, or turn that tie off with Tying::TargetOutput or Tying::None"
    )]
    TiedVocabularies {
        /// Source tokens.
        source_vocabulary: usize,
        /// Target tokens.
        target_vocabulary: usize,
    },
}

impl crate::error::Cause for ConfigError {}
