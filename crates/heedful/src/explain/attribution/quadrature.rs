//! Gauss-Legendre quadrature on [0, 1].

use std::f64::consts::PI;

/// The nodes and weights of `n` points, in ascending order.
pub(super) fn gauss_legendre(n: usize) -> Vec<(f64, f64)> {
    let node = |i: usize| {
        // Newton's method from the classical approximation of the i-th root, largest first.
        let mut x = (PI * (i as f64 + 0.75) / (n as f64 + 0.5)).cos();
        let mut slope = 1.0;
        for _ in 0..100 {
            let (value, derivative) = legendre(n, x);
            slope = derivative;
            let step = value / derivative;
            x -= step;
            if step.abs() < 1e-15 {
                break;
            }
        }
        let weight = 2.0 / ((1.0 - x * x) * slope * slope);
        ((x + 1.0) / 2.0, weight / 2.0)
    };
    (0..n).rev().map(node).collect()
}

/// `P_n(x)` and its derivative.
fn legendre(n: usize, x: f64) -> (f64, f64) {
    let (mut before, mut value) = (1.0, x);
    for k in 2..=n {
        let k = k as f64;
        (before, value) = (value, ((2.0 * k - 1.0) * x * value - (k - 1.0) * before) / k);
    }
    let n = n as f64;
    (value, n * (x * value - before) / (x * x - 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polynomials_of_degree_2n_minus_1_are_integrated_exactly() {
        for n in [1, 2, 5, 64, 300] {
            let points = gauss_legendre(n);
            assert!(points.is_sorted_by(|a, b| a.0 < b.0));
            for degree in (0..2 * n).take(40) {
                let sum: f64 = points.iter().map(|(x, weight)| weight * x.powi(degree as i32)).sum();
                assert!((sum - 1.0 / (degree as f64 + 1.0)).abs() < 1e-12, "{n} points, degree {degree}");
            }
        }
    }
}
