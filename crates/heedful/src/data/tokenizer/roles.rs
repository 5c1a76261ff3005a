//! The roles of special tokens, and their usual names in other projects.

/// The role of a special token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpecialRole {
    /// Pads batches.
    Pad,
    /// Begins a sequence.
    Bos,
    /// Ends a sequence.
    Eos,
    /// Represents text that the vocabulary does not cover.
    Unk,
    /// Begins a text; classifiers read its vector.
    Cls,
    /// Separates texts, and follows the last one.
    Sep,
    /// Replaces a token that the model must predict.
    Mask,
}

impl SpecialRole {
    /// The usual names of such a token, the most common first.
    pub(super) fn names(self) -> &'static [&'static str] {
        match self {
            SpecialRole::Pad => &["<pad>", "[PAD]", "<blank>", "<|pad|>"],
            SpecialRole::Bos => &["<s>", "<bos>", "[BOS]", "<|startoftext|>", "<|endoftext|>"],
            SpecialRole::Eos => &["</s>", "<eos>", "[EOS]", "<|endoftext|>"],
            SpecialRole::Unk => &["<unk>", "[UNK]", "<|unk|>"],
            SpecialRole::Cls => &["[CLS]", "<cls>"],
            SpecialRole::Sep => &["[SEP]", "<sep>"],
            SpecialRole::Mask => &["[MASK]", "<mask>"],
        }
    }
}
