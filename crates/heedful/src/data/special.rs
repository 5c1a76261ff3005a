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
