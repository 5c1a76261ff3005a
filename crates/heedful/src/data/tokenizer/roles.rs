//! What special tokens are for, by the names that projects give them.

/// The purpose of a special token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpecialRole {
    /// Fills up batches.
    Pad,
    /// Begins a sequence.
    Bos,
    /// Ends a sequence.
    Eos,
    /// Stands for what the vocabulary does not have.
    Unk,
    /// Begins a text whose class is read there.
    Cls,
    /// Stands between texts, and after the last.
    Sep,
    /// Stands for a token that is to be guessed.
    Mask,
}

impl SpecialRole {
    /// The names that such a token has, the most usual first.
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
