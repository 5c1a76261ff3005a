//! Scalar functions that vectorise: no branches, no calls, plain arithmetic.

/// `e^x` to about one unit in the last place; 0 for very negative x (exactly 0 for −∞), ∞ for large x.
///
/// `x = n ln 2 + r` with `|r| ≤ ln 2 / 2`; a polynomial gives `e^r`, the exponent field gives `2^n`.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    const LOG2_E: f32 = std::f32::consts::LOG2_E;
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    // Adding and subtracting 1.5 · 2²³ rounds to the nearest integer without a rounding instruction.
    const ROUND: f32 = 12_582_912.0;

    let clamped = if x > 88.0 { 88.0 } else { x };
    let clamped = if clamped < -87.0 { -87.0 } else { clamped };
    let shifted = clamped * LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = clamped - n * LN2_HIGH - n * LN2_LOW;
    let mut p = 1.987_569_1e-4;
    p = p * r + 1.398_2e-3;
    p = p * r + 8.333_452e-3;
    p = p * r + 4.166_579_6e-2;
    p = p * r + 1.666_666_6e-1;
    p = p * r + 0.5;
    let e_r = p * r * r + r + 1.0;
    // The low bits of `shifted` are n itself: no conversion to an integer is needed.
    let two_n = f32::from_bits((shifted.to_bits() << 23).wrapping_add(127 << 23));
    let value = e_r * two_n;
    let value = if x < -87.0 { 0.0 } else { value };
    if x > 88.0 { f32::INFINITY } else { value }
}

/// `e^x` in fewer instructions than [`exp`], for `x` up to 88: relative error below `2e-7 + 6e-8 |x|`, exactly 1
/// for 0 and exactly 0 for −∞. Differences from a maximum, where a large error goes with a small result.
///
/// `x log₂ e = n + r` with `|r| ≤ ½`; a polynomial gives `2^r`, and `n` is added to its exponent field.
#[inline(always)]
pub(crate) fn exp_bounded(x: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0;
    let y = x * std::f32::consts::LOG2_E;
    // 2^-127 has the bits of 0. NaN stays NaN.
    let y = if y < -127.0 { -127.0 } else { y };
    let shifted = y + ROUND;
    let r = y - (shifted - ROUND);
    let mut p = 1.326_474e-3;
    p = p * r + 9.671_513e-3;
    p = p * r + 5.550_733_6e-2;
    p = p * r + 2.402_224_2e-1;
    #[expect(clippy::approx_constant, reason = "not ln 2, for the least maximum error")]
    const LINEAR: f32 = 6.931_47e-1;
    p = p * r + LINEAR;
    p = p * r + 1.0;
    f32::from_bits(p.to_bits().wrapping_add(shifted.to_bits() << 23))
}

/// `log x` to about one unit in the last place, in plain arithmetic, because math libraries differ between
/// machines. For x that is not positive or not finite, the library's result.
pub(crate) fn ln(x: f64) -> f64 {
    if !(x.is_normal() && x > 0.0) {
        return x.ln();
    }
    // x = m · 2^e with √½ ≤ m < √2, and log m = 2 (s + s³/3 + s⁵/5 + …) with s = (m − 1) / (m + 1).
    const MANTISSA: u64 = (1 << 52) - 1;
    let bits = x.to_bits();
    let (mut m, mut e) = (f64::from_bits(bits & MANTISSA | 1023 << 52), (bits >> 52) as i64 - 1023);
    if m > std::f64::consts::SQRT_2 {
        m *= 0.5;
        e += 1;
    }
    let s = (m - 1.0) / (m + 1.0);
    let square = s * s;
    let series = (1..=11).rev().fold(0.0, |sum, i| (sum + 1.0 / f64::from(2 * i + 1)) * square);
    e as f64 * std::f64::consts::LN_2 + 2.0 * s * (1.0 + series)
}

/// The error function, absolute error below 2e-7 (Abramowitz & Stegun 7.1.26 refitted is not enough near
/// zero, so small arguments take the Taylor series).
#[inline(always)]
pub(crate) fn erf(x: f32) -> f32 {
    let a = x.abs();
    let t = 1.0 / (1.0 + 0.327_591_1 * a);
    let poly =
        t * (0.254_829_6 + t * (-0.284_496_74 + t * (1.421_413_7 + t * (-1.453_152 + t * 1.061_405_4))));
    let tail = 1.0 - poly * exp(-a * a);
    let a2 = a * a;
    let series = a
        * std::f32::consts::FRAC_2_SQRT_PI
        * (1.0 + a2 * (-0.333_333_34 + a2 * (0.1 + a2 * (-0.023_809_524 + a2 * 0.004_629_63))));
    let magnitude = if a < 0.5 { series } else { tail };
    if x < 0.0 { -magnitude } else { magnitude }
}

/// `x Φ(x)`: the exact GELU, not its tanh approximation.
#[inline(always)]
pub(crate) fn gelu(x: f32) -> f32 {
    0.5 * x * (1.0 + erf(x * std::f32::consts::FRAC_1_SQRT_2))
}

/// `Φ(x) + x φ(x)`, the derivative of [`gelu`].
#[inline(always)]
pub(crate) fn gelu_slope(x: f32) -> f32 {
    const INV_SQRT_2PI: f32 = 0.398_942_3;
    0.5 * (1.0 + erf(x * std::f32::consts::FRAC_1_SQRT_2)) + x * INV_SQRT_2PI * exp(-0.5 * x * x)
}

/// `√(2/π) (x + 0.044715 x³)`: the argument of the tanh in [`gelu_tanh`].
#[inline(always)]
fn gelu_tanh_inner(x: f32) -> f32 {
    SQRT_2_PI * (x + CUBIC * x * x * x)
}

const SQRT_2_PI: f32 = 0.797_884_6;
const CUBIC: f32 = 0.044_715;

/// `x (1 + tanh √(2/π) (x + 0.044715 x³)) / 2`: the approximation of [`gelu`] that GPT and BERT were trained
/// with.
#[inline(always)]
pub(crate) fn gelu_tanh(x: f32) -> f32 {
    0.5 * x * (1.0 + tanh(gelu_tanh_inner(x)))
}

/// `(1 + t) / 2 + x (1 − t²) √(2/π) (1 + 3 · 0.044715 x²) / 2` with `t` the tanh: the derivative of
/// [`gelu_tanh`].
#[inline(always)]
pub(crate) fn gelu_tanh_slope(x: f32) -> f32 {
    let t = tanh(gelu_tanh_inner(x));
    // For large |x| 1 − t² is 0 while x² is unbounded: their product must not become ∞ · 0.
    let near = if x * x < 100.0 { x } else { 0.0 };
    0.5 * (1.0 + t) + 0.5 * near * (1.0 - t * t) * SQRT_2_PI * (1.0 + 3.0 * CUBIC * near * near)
}

/// `x σ(x)`.
#[inline(always)]
pub(crate) fn silu(x: f32) -> f32 {
    x * sigmoid(x)
}

/// `σ(x) (1 + x σ(−x))`, the derivative of [`silu`].
#[inline(always)]
pub(crate) fn silu_slope(x: f32) -> f32 {
    sigmoid(x) * (1.0 + x * sigmoid(-x))
}

/// `1 / (1 + e^{−x})`.
#[inline(always)]
pub(crate) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// `1 − 2 / (e^{2x} + 1)`; near zero, where that loses digits, a Taylor series.
#[inline(always)]
pub(crate) fn tanh(x: f32) -> f32 {
    let far = 1.0 - 2.0 / (exp(2.0 * x) + 1.0);
    let x2 = x * x;
    let near =
        x * (1.0 + x2 * (-1.0 / 3.0 + x2 * (2.0 / 15.0 + x2 * (-17.0 / 315.0 + x2 * (62.0 / 2835.0)))));
    if x2 < 0.09 { near } else { far }
}

/// Rounds to bf16, to nearest and ties to even; a NaN stays a NaN.
#[inline(always)]
pub(crate) fn to_bf16_bits(x: f32) -> u16 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
    let nan = (bits >> 16) | 0x40;
    (if x.is_nan() { nan } else { rounded }) as u16
}

/// The value of a bf16.
#[inline(always)]
pub(crate) fn from_bf16_bits(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// `x` rounded to bf16.
#[inline(always)]
pub(crate) fn round_to_bf16(x: f32) -> f32 {
    from_bf16_bits(to_bf16_bits(x))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_accurate_and_has_the_right_limits() {
        let mut x = -86.0_f32;
        while x < 87.5 {
            let (ours, exact) = (f64::from(exp(x)), f64::from(x).exp());
            assert!((ours - exact).abs() <= 2e-7 * exact, "exp({x}) = {ours}, not {exact}");
            x += 0.0173;
        }
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp(-1e30), 0.0);
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(1e30), f32::INFINITY);
    }

    #[test]
    fn exp_bounded_is_accurate_and_has_the_right_limits() {
        let mut x = 87.0_f32;
        while x > -87.0 {
            let (ours, exact) = (f64::from(exp_bounded(x)), f64::from(x).exp());
            // log2 e and the product with it are rounded.
            let bound = 2e-7 + 8e-8 * f64::from(x.abs());
            assert!((ours - exact).abs() <= bound * exact, "exp_bounded({x}) = {ours}, not {exact}");
            x -= 0.0013;
        }
        assert_eq!([f32::NEG_INFINITY, -1e30, -89.0, 0.0].map(exp_bounded), [0.0, 0.0, 0.0, 1.0]);
        assert!(exp_bounded(f32::NAN).is_nan());
        // From the least normal result down to 0, results are small and not negative.
        assert!((0..2000).map(|i| exp_bounded(-87.0 - i as f32 * 1e-3)).all(|y| (0.0..2e-38).contains(&y)));
    }

    #[test]
    fn ln_is_accurate() {
        let mut x = 1e-300_f64;
        while x < 1e300 {
            let (ours, exact) = (ln(x), x.ln());
            assert!((ours - exact).abs() <= 4e-16 * exact.abs().max(0.5), "ln({x}) = {ours}, not {exact}");
            x *= 1.0371;
        }
        assert_eq!([ln(1.0), ln(f64::INFINITY), ln(0.0)], [0.0, f64::INFINITY, f64::NEG_INFINITY]);
        assert!(ln(f64::NAN).is_nan() && ln(-1.0).is_nan());
    }

    #[test]
    fn gelu_slope_is_the_derivative_of_gelu() {
        for i in -60..=60 {
            let x = i as f32 * 0.1;
            let h = 1e-2;
            let numeric = (f64::from(gelu(x + h)) - f64::from(gelu(x - h))) / (2.0 * f64::from(h));
            assert!((numeric - f64::from(gelu_slope(x))).abs() < 1e-4, "at {x}: {numeric} {}", gelu_slope(x));
        }
        assert!((gelu(1.0) - 0.841_344_8).abs() < 1e-6);
        assert!((erf(0.3) - 0.328_626_75).abs() < 1e-6 && (erf(-2.0) + 0.995_322_3).abs() < 1e-6);
    }

    #[test]
    fn gelu_by_tanh_and_silu_are_accurate_and_have_the_right_limits() {
        let exact_gelu = |x: f64| {
            0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).tanh())
        };
        let exact_silu = |x: f64| x / (1.0 + (-x).exp());
        let slope = |f: &dyn Fn(f64) -> f64, x: f64| (f(x + 1e-5) - f(x - 1e-5)) / 2e-5;
        for i in -2000..=2000 {
            let x = i as f32 * 0.005;
            let wide = f64::from(x);
            let near = |ours: f32, exact: f64, name| {
                assert!((f64::from(ours) - exact).abs() < 2e-6, "{name}({x}) = {ours}, not {exact}");
            };
            near(gelu_tanh(x), exact_gelu(wide), "gelu_tanh");
            near(gelu_tanh_slope(x), slope(&exact_gelu, wide), "gelu_tanh_slope");
            near(silu(x), exact_silu(wide), "silu");
            near(silu_slope(x), slope(&exact_silu, wide), "silu_slope");
        }
        assert_eq!([gelu_tanh(1e10), gelu_tanh(-1e10), silu(1e30), silu(-1e30)], [1e10, 0.0, 1e30, 0.0]);
        assert_eq!([gelu_tanh_slope(1e30), gelu_tanh_slope(-1e30), silu_slope(-1e30)], [1.0, 0.0, 0.0]);
    }

    #[test]
    fn tanh_and_sigmoid_are_accurate_and_have_the_right_limits() {
        for i in -2000..=2000 {
            let x = i as f32 * 0.005;
            let exact = f64::from(x).tanh();
            assert!((f64::from(tanh(x)) - exact).abs() <= 1e-7 + 4e-7 * exact.abs(), "tanh({x})");
            let exact = 1.0 / (1.0 + (-f64::from(x)).exp());
            assert!((f64::from(sigmoid(x)) - exact).abs() <= 3e-7 * exact, "sigmoid({x})");
        }
        assert_eq!([tanh(1e30), tanh(-1e30), sigmoid(1e30), sigmoid(-1e30)], [1.0, -1.0, 1.0, 0.0]);
        assert!((tanh(1e-4) / 1e-4 - 1.0).abs() < 1e-7);
    }

    #[test]
    fn bf16_rounds_to_nearest_even() {
        for x in [0.0_f32, 1.0, -1.0, 1.003_906_2, 1.011_718_8, 3.0e38, 1e-40, f32::INFINITY, -0.1] {
            assert_eq!(to_bf16_bits(x), half::bf16::from_f32(x).to_bits(), "{x}");
        }
        assert!(round_to_bf16(f32::NAN).is_nan());
    }
}
