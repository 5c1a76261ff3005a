//! Conversions between f32 and bf16.

use half::bf16;

use crate::cpu::math::to_bf16_bits;

kernel! {
    /// f32 → bf16, rounded to nearest even.
    pub(crate) fn narrow(from: &[f32], to: &mut [bf16]) {
        for (to, &from) in to.iter_mut().zip(from) {
            *to = bf16::from_bits(to_bf16_bits(from));
        }
    }
}

kernel! {
    /// bf16 → f32, exact.
    pub(crate) fn widen(from: &[bf16], to: &mut [f32]) {
        for (to, &from) in to.iter_mut().zip(from) {
            *to = crate::cpu::math::from_bf16_bits(from.to_bits());
        }
    }
}
