//! int8 products: they match their definition, with the same bits on every instruction set.

use heedful_tensor::cpu::gemm::Int8Matrix;
use heedful_tensor::cpu::{isa, threads};
use heedful_tensor::ops::{
    Activation, EmbeddingOptions, LinearOptions, Positions, embedding_at, linear, matmul_f32_out,
    project_f32_out,
};
use heedful_tensor::random::{Dropout, Stream};
use heedful_tensor::{Channels, Compute, Init, Param, Params, Precision, Tensor};

/// Widths that are multiples of a tile and widths that are not.
const SHAPES: [(usize, usize); 7] = [(64, 32), (512, 96), (1, 1), (3, 5), (70, 33), (130, 64), (200, 257)];
const ROWS: [usize; 9] = [1, 2, 3, 5, 7, 16, 17, 33, 70];

fn values(seed: u64, n: usize) -> Vec<f32> {
    let stream = Stream::new(seed, 0, 0);
    (0..n as u32).map(|i| stream.normal(i)).collect()
}

fn weight(seed: u64, rows: usize, width: usize) -> Param {
    let param = Params::new(seed).add("weight", rows, width, Init::Constant(0.0));
    param.set(&values(seed, rows * width));
    param
}

/// The int8 values and the scale of `values`.
fn rounded(values: &[f32]) -> (Vec<i64>, f32) {
    let largest = values.iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
    let inverse = if largest > 0.0 { 127.0 / largest } else { 0.0 };
    let integers = values.iter().map(|x| (x * inverse).round_ties_even() as i64).collect();
    (integers, largest / 127.0)
}

/// The int8 weights and the scale of a column: of some maxima, the one with the smallest error; pairs that would
/// sum to more than 128 are moved to the nearest pair that does not.
fn rounded_column(values: &[f32]) -> (Vec<i64>, f32) {
    let top = values.iter().fold(0.0_f32, |top, x| top.max(x.abs()));
    if top == 0.0 {
        return (vec![0; values.len()], 0.0);
    }
    let pairs = || values.chunks(2).map(|pair| (pair[0], pair.get(1).copied().unwrap_or(0.0)));
    let mut best = (f32::INFINITY, 127.0);
    for largest in [127.0_f32, 115.0, 104.0, 95.0, 86.0, 78.0, 71.0, 64.0] {
        let excess = |(a, b): (f32, f32)| (((a + b) * (1.0 / top)).abs() - 128.0 / largest).max(0.0);
        let clipped = pairs().map(excess).fold(0.0, |sum, excess| sum + excess * excess);
        let error = values.len() as f32 / (12.0 * largest * largest) + 0.5 * clipped;
        if error < best.0 {
            best = (error, largest);
        }
    }
    let factor = best.1 / top;
    let mut integers = Vec::new();
    for (a, b) in pairs().map(|(a, b)| (a * factor, b * factor)) {
        let rounded = [a, b].map(|x| x.round_ties_even() as i64);
        let sum = rounded[0] + rounded[1];
        integers.extend(if sum.abs() <= 128 {
            rounded
        } else {
            let first = ((128.0_f32.copysign(sum as f32) + (a - b)) * 0.5).round_ties_even() as i64;
            [first, 128 * sum.signum() - first]
        });
    }
    integers.truncate(values.len());
    (integers, top / best.1)
}

/// The definition of the int8 product, element by element.
fn reference(x: &[f32], weight: &[f32], [rows, k, n]: [usize; 3]) -> Vec<f32> {
    let columns: Vec<_> = (0..n)
        .map(|column| rounded_column(&(0..k).map(|row| weight[row * n + column]).collect::<Vec<_>>()))
        .collect();
    let mut out = Vec::new();
    for row in x.chunks_exact(k).take(rows) {
        let (integers, scale) = rounded(row);
        out.extend(columns.iter().map(|(column, column_scale)| {
            let sum: i64 = integers.iter().zip(column).map(|(a, b)| a * b).sum();
            sum as f32 * (scale * column_scale)
        }));
    }
    out
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|x| x.to_bits()).collect()
}

const INT8: fn() -> Compute = || Compute::inference(Precision::Int8);

#[test]
fn int8_products_match_their_definition_bit_for_bit() {
    isa::with_each(|isa| {
        for (k, n) in SHAPES {
            let weight = weight(7, k, n);
            for rows in ROWS {
                let x = values(rows as u64, rows * k);
                let found = matmul_f32_out(&Tensor::from_f32(rows, k, &x), &weight, INT8()).to_vec();
                let expected = reference(&x, &weight.to_vec(), [rows, k, n]);
                assert_eq!(bits(&found), bits(&expected), "{isa}: {rows}×{k} by {k}×{n}");
            }
        }
    });
}

/// Weights of `k × 64` with the largest pairs: up to `pair` in the first columns, random ones in the last.
fn extreme_weights(k: usize, pair: i64) -> Int8Matrix {
    let mut integers = vec![0_u8; Int8Matrix::byte_count([k, 64])];
    for (place, integer) in integers.iter_mut().enumerate() {
        let (column, k_within) = (place / 4 % 16, place % 4);
        let (first, sign) = (pair - pair / 2, if column % 2 == 0 { 1 } else { -1 });
        let value = match column {
            0 | 1 => [first, pair / 2],
            2 | 3 => [127, pair - 127],
            4 | 5 => [pair - 127, 127],
            _ => [place as i64 * 37 % 64, place as i64 * 23 % 64],
        }[k_within % 2];
        *integer = (sign * value) as i8 as u8;
    }
    Int8Matrix::from_bytes([k, 64], &integers, &[1.0; 64]).expect("the lengths match")
}

#[test]
fn products_of_the_largest_integers_are_exact() {
    let k = 192;
    for pair in [128, 254] {
        let matrix = extreme_weights(k, pair);
        let params = Params::new(1);
        let param = params.add_weight("weight", [k, 64], Init::Constant(0.0), Channels::Columns);
        param.set_int8(matrix);
        let weights = param.to_vec();
        isa::with_each(|isa| {
            for rows in ROWS {
                let x: Vec<f32> = (0..rows * k)
                    .map(|i| match i / k % 4 {
                        0 => 127.0,
                        1 => -127.0,
                        2 => (i * 31 % 255) as f32 - 127.0,
                        _ => (i * 29 % 128) as f32,
                    })
                    .collect();
                let found = matmul_f32_out(&Tensor::from_f32(rows, k, &x), &param, INT8()).to_vec();
                let mut expected = Vec::new();
                for row in x.chunks_exact(k) {
                    let (integers, scale) = rounded(row);
                    expected.extend((0..64).map(|column| {
                        let products =
                            integers.iter().enumerate().map(|(k, &q)| q * weights[k * 64 + column] as i64);
                        products.sum::<i64>() as f32 * scale
                    }));
                }
                assert_eq!(bits(&found), bits(&expected), "{isa}: {rows} rows, pairs of {pair}");
            }
        });
    }
}

#[test]
fn a_row_has_the_same_bits_in_any_batch_and_with_any_number_of_threads() {
    let (k, n) = (192, 520);
    let weight = weight(3, n, k);
    let x = values(9, 40 * k);
    let all = project_f32_out(&Tensor::from_f32(40, k, &x), &weight, INT8()).to_vec();
    for count in [1, 2, 5] {
        threads::set_thread_count(count);
        for (first, rows) in [(0, 1), (3, 2), (7, 12), (0, 40), (21, 19)] {
            let part = Tensor::from_f32(rows, k, &x[first * k..(first + rows) * k]);
            let found = project_f32_out(&part, &weight, INT8()).to_vec();
            assert_eq!(
                bits(&found),
                bits(&all[first * n..(first + rows) * n]),
                "{rows} rows, {count} threads"
            );
        }
    }
}

#[test]
fn bias_and_activation_are_applied_after_the_int8_sums() {
    let (rows, k, n) = (5, 70, 40);
    let params = Params::new(1);
    let (weight, bias) =
        (params.add("w", k, n, Init::Constant(0.0)), params.add("b", 1, n, Init::Constant(0.0)));
    weight.set(&values(4, k * n));
    bias.set(&values(5, n));
    let x = values(6, rows * k);
    let sums = reference(&x, &weight.to_vec(), [rows, k, n]);
    let expected: Vec<f32> = sums
        .chunks(n)
        .flat_map(|row| row.iter().zip(bias.to_vec()).map(|(x, b)| (x + b).max(0.0)).collect::<Vec<_>>())
        .collect();
    isa::with_each(|isa| {
        let options = LinearOptions { activation: Activation::Relu, dropout: Dropout::NONE, compute: INT8() };
        let found = linear(&Tensor::from_f32(rows, k, &x), &weight, Some(&bias), options).to_vec();
        assert_eq!(bits(&found), bits(&expected), "{isa}");
    });
}

#[test]
fn smooth_activations_have_the_same_bits_on_every_instruction_set() {
    let (rows, k, n) = (5, 70, 40);
    let (weight, x) = (weight(4, k, n), values(6, rows * k));
    let sums = reference(&x, &weight.to_vec(), [rows, k, n]);
    let gelu_tanh =
        |x: f64| 0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).tanh());
    let silu = |x: f64| x / (1.0 + (-x).exp());
    let functions: [(Activation, &dyn Fn(f64) -> f64); 2] =
        [(Activation::GeluTanh, &gelu_tanh), (Activation::Silu, &silu)];
    for (activation, exact) in functions {
        let first: std::cell::OnceCell<Vec<u32>> = std::cell::OnceCell::new();
        isa::with_each(|isa| {
            let options = LinearOptions { activation, dropout: Dropout::NONE, compute: INT8() };
            let found = linear(&Tensor::from_f32(rows, k, &x), &weight, None, options).to_vec();
            for (found, &sum) in found.iter().zip(&sums) {
                let exact = exact(f64::from(sum));
                assert!(
                    (f64::from(*found) - exact).abs() < 1e-5,
                    "{isa}, {activation:?}: {found}, not {exact}"
                );
            }
            let expected = first.get_or_init(|| bits(&found));
            assert_eq!(&bits(&found), expected, "{isa}, {activation:?}");
        });
    }
}

#[test]
fn embedding_lookup_dequantizes_the_int8_weights() {
    let (vocabulary, d) = (45, 70);
    let table = weight(8, vocabulary, d);
    let options = EmbeddingOptions {
        scale: 2.0,
        positions: Positions::None,
        first_position: 0,
        dropout: Dropout::NONE,
        compute: INT8(),
    };
    let found = embedding_at(&[44, 0, 17], &[0, 1, 2], &table, options).to_vec();
    for (found, id) in found.chunks_exact(d).zip([44, 0, 17]) {
        let (integers, scale) = rounded_column(&table.to_vec()[id * d..(id + 1) * d]);
        let expected: Vec<f32> = integers.iter().map(|&integer| integer as f32 * (scale * 2.0)).collect();
        assert_eq!(bits(found), bits(&expected), "{id}");
    }
}

#[test]
fn zeros_stay_zero_and_nan_or_infinity_propagates() {
    let weight = weight(2, 64, 32);
    let broken = [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
    isa::with_each(|isa| {
        let zeros = matmul_f32_out(&Tensor::from_f32(2, 64, &[0.0; 128]), &weight, INT8()).to_vec();
        assert!(zeros.iter().all(|&x| x == 0.0), "{isa}");
        for broken in broken {
            let mut x = values(1, 64);
            x[40] = broken;
            let found = matmul_f32_out(&Tensor::from_f32(1, 64, &x), &weight, INT8()).to_vec();
            assert!(found.iter().all(|x| !x.is_finite()), "{isa}: {broken}");
        }
    });
}

#[test]
fn a_weight_that_is_not_finite_makes_its_column_not_finite() {
    for broken in [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut values = values(2, 64 * 32);
        values[5 * 32 + 7] = broken;
        values[4 * 32 + 7] = broken;
        let weight = weight(2, 64, 32);
        weight.set(&values);
        let found = matmul_f32_out(&Tensor::from_f32(1, 64, &[1.0; 64]), &weight, INT8()).to_vec();
        assert!(found.iter().enumerate().all(|(column, x)| x.is_finite() == (column != 7)), "{broken}");
    }
}

#[test]
fn int8_weights_are_requantized_when_the_weights_change() {
    let weight = weight(2, 64, 32);
    let x = Tensor::from_f32(1, 64, &values(1, 64));
    let before = matmul_f32_out(&x, &weight, INT8()).to_vec();
    weight.set(&values(30, 64 * 32));
    let after = matmul_f32_out(&x, &weight, INT8()).to_vec();
    assert_ne!(bits(&before), bits(&after));
    assert_eq!(bits(&after), bits(&reference(&values(1, 64), &weight.to_vec(), [1, 64, 32])));
}
