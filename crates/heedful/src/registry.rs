//! The lists of model families and tasks. To add one, add its folder and a line here.
//!
//! Macros generate types from each list: the names in recipes, the configuration enums, and the dispatch. The
//! folder of a family defines the types `EncoderDecoder` and `Encoder` with their traits
//! (`models/family.rs`); the folder of a task defines `Config` and `Definition` (`tasks/mod.rs`).

macro_rules! for_each_family {
    ($make:ident) => {
        $make! {
            /// Self attention, cross attention and feed-forward layers.
            transformer: Transformer = "transformer",
            /// Recurrent networks, with or without attention to the source.
            recurrent: Recurrent = "recurrent",
            /// Gated convolutions, with cross attention in every decoder layer.
            convolution: Convolutional = "convolutional",
        }
    };
}

macro_rules! for_each_task {
    ($make:ident) => {
        $make! {
            /// Translation: source sentence to target sentence.
            translate: Translate = "translate",
            /// Classification: text to label.
            classify: Classify = "classify",
            /// Language modelling: prompt to continuation.
            language: Language = "lm",
            /// Masked language modelling: predicts the masked tokens of a text.
            masked: Masked = "mlm",
        }
    };
}

pub(crate) use {for_each_family, for_each_task};
