//! How numbers are stored.

use std::fmt;

/// How one number is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DType {
    /// IEEE single precision.
    #[default]
    F32,
    /// The upper half of a single: its range with 8 bits of precision. Sums over it are still kept in f32.
    Bf16,
}

impl DType {
    /// Bytes of one number.
    #[inline]
    pub const fn bytes(self) -> usize {
        match self {
            DType::F32 => 4,
            DType::Bf16 => 2,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DType::F32 => "f32",
            DType::Bf16 => "bf16",
        })
    }
}
