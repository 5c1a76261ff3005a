//! The special tokens that every vocabulary begins with. Encoding a text never yields one of them: `<eos>` in a line is
//! five ordinary characters.

/// Padding, reserved for other programs; no model here ever reads it.
pub const PAD: u32 = 0;
/// Begin of sequence: what the decoder reads first.
pub const BOS: u32 = 1;
/// End of sequence: what the decoder generates last.
pub const EOS: u32 = 2;
/// Unknown token, reserved for other programs: here unknown characters are encoded as bytes.
pub const UNK: u32 = 3;

/// Their names, in the order of their ids.
pub const NAMES: [&str; 4] = ["<pad>", "<bos>", "<eos>", "<unk>"];

/// The tokens that a model's targets begin and end with. They are part of the model, so that no caller can forget them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpecialTokens {
    /// What the decoder reads first.
    pub bos: u32,
    /// What the decoder generates last.
    pub eos: u32,
}

impl Default for SpecialTokens {
    /// The tokens of every vocabulary that this crate learns.
    fn default() -> SpecialTokens {
        SpecialTokens { bos: BOS, eos: EOS }
    }
}
