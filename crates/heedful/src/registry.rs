//! The families and the tasks, one line each: a new one is a folder and its line here.
//!
//! Each list is handed to the macros that make types of it: the names that a recipe may use, the configurations by name,
//! and what belongs to each. A family's folder has the types `EncoderDecoder` and `Encoder` with their traits
//! (`models/family.rs`), a task's folder `Config` and `Definition` (`tasks/mod.rs`).

macro_rules! for_each_family {
    ($make:ident) => {
        $make! {
            /// Self attention, feed-forward, and attention between encoder and decoder.
            transformer: Transformer = "transformer",
            /// Recurrent networks, with or without attention between them.
            recurrent: Recurrent = "recurrent",
            /// Gated convolutions, with attention in every decoder layer.
            convolution: Convolutional = "convolutional",
        }
    };
}

macro_rules! for_each_task {
    ($make:ident) => {
        $make! {
            /// From a sentence to its translation.
            translate: Translate = "translate",
            /// From a text to its label.
            classify: Classify = "classify",
            /// From the beginning of a text to the rest: a language model.
            language: Language = "lm",
            /// From a text with masked tokens to what stood there: a masked language model.
            masked: Masked = "mlm",
        }
    };
}

pub(crate) use {for_each_family, for_each_task};
