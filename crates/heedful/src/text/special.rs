//! The tokens that every vocabulary begins with. None of them ever comes out of a text: `<eos>` in a line is five
//! characters like any others.

/// Fills up rows in file formats of others; never seen by a model here.
pub const PAD: u32 = 0;
/// What the decoder reads first.
pub const BOS: u32 = 1;
/// What the decoder says last.
pub const EOS: u32 = 2;
/// Kept for other programs: unknown characters are spelled in bytes here.
pub const UNK: u32 = 3;

/// Their names, in the order of their ids.
pub const NAMES: [&str; 4] = ["<pad>", "<bos>", "<eos>", "<unk>"];

/// The tokens that the targets of a model begin and end with. They come with the model, so that no caller can forget them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpecialTokens {
    /// What the decoder reads first.
    pub bos: u32,
    /// What ends an output.
    pub eos: u32,
}

impl Default for SpecialTokens {
    /// Those of every vocabulary that is learned here.
    fn default() -> SpecialTokens {
        SpecialTokens { bos: BOS, eos: EOS }
    }
}
