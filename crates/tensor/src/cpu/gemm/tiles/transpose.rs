//! Transposition of 16 × 16 dwords.

use std::arch::x86_64::*;

/// Sixteen vectors of sixteen dwords.
pub(crate) type Tile = [__m512i; 16];

/// Transposes.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn transpose(r: Tile) -> Tile {
    // Neighbours, then pairs of neighbours, inside each quarter of a register …
    let mut t = r;
    for i in (0..16).step_by(2) {
        t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    }
    let mut u = t;
    for i in (0..16).step_by(4) {
        u[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        u[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        u[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        u[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    // … then the quarters among the registers.
    let mut out = u;
    for i in 0..4 {
        let low = _mm512_shuffle_i32x4::<0x88>(u[i], u[i + 4]);
        let low_odd = _mm512_shuffle_i32x4::<0xdd>(u[i], u[i + 4]);
        let high = _mm512_shuffle_i32x4::<0x88>(u[i + 8], u[i + 12]);
        let high_odd = _mm512_shuffle_i32x4::<0xdd>(u[i + 8], u[i + 12]);
        out[i] = _mm512_shuffle_i32x4::<0x88>(low, high);
        out[i + 4] = _mm512_shuffle_i32x4::<0x88>(low_odd, high_odd);
        out[i + 8] = _mm512_shuffle_i32x4::<0xdd>(low, high);
        out[i + 12] = _mm512_shuffle_i32x4::<0xdd>(low_odd, high_odd);
    }
    out
}
