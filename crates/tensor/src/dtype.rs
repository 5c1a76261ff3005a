//! Element types.

use std::fmt;

/// The type of an array's elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DType {
    /// IEEE single precision.
    #[default]
    F32,
    /// bfloat16, the upper half of an f32: its range with 8 bits of precision. Sums over it are accumulated
    /// in f32.
    Bf16,
}

impl DType {
    /// Bytes of one element.
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
