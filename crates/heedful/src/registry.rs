//! The families and the tasks, one line each: a new one is a folder and its line here.
//!
//! Each list is passed to the macros that generate types from it: the names in recipes, the configuration enums, and the
//! dispatch to each. A family's folder has the types `EncoderDecoder` and `Encoder` with their traits
//! (`models/family.rs`), a task's folder `Config` and `Definition` (`tasks/mod.rs`).

macro_rules! for_each_family {
    ($make:ident) => {
        $make! {
            /// Self attention, cross attention and feed-forward layers.
            transformer: Transformer = "transformer",
            /// Recurrent networks, with or without attention to the source.
            recurrent: Recurrent = "recurrent",
            /// Gated convolutions, with attention in every decoder layer.
            convolution: Convolutional = "convolutional",
        }
    };
}

macro_rules! for_each_task {
    ($make:ident) => {
        $make! {
            /// Translation: from a source sentence to a target sentence.
            translate: Translate = "translate",
            /// Classification: from a text to its label.
            classify: Classify = "classify",
            /// Language modelling: from a prompt to its continuation.
            language: Language = "lm",
            /// Masked language modelling: from a text with masked tokens to those tokens.
            masked: Masked = "mlm",
        }
    };
}

pub(crate) use {for_each_family, for_each_task};
