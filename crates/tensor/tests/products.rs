//! Matrix products on every instruction set, against sums in f64.

use half::bf16;
use heedful_tensor::cpu::gemm::{Finish, Matrix, Output, Packed, Rectifier, multiply, multiply_transposed};
use heedful_tensor::cpu::isa;
use heedful_tensor::random::{Dropout, Stream};
use heedful_tensor::{Array, DType, Rows};

const SHAPES: [[usize; 3]; 19] = [
    [1, 1, 1],
    [1, 512, 96],
    [2, 7, 33],
    [3, 33, 7],
    [4, 100, 100],
    [13, 31, 65],
    [16, 64, 32],
    [17, 32, 31],
    [33, 96, 64],
    [40, 1, 70],
    [64, 64, 64],
    [225, 40, 50],
    [300, 33, 129],
    [5, 0, 9],
    [0, 1100, 40],
    // Sums so long that they are split in two and in three.
    [7, 544, 40],
    [40, 1100, 70],
    [50, 1536, 600],
    // The same with several tasks of rows.
    [530, 1100, 40],
];

fn random_values(n: usize, operation: u64) -> Vec<f32> {
    let stream = Stream::new(11, 0, operation);
    (0..n as u32).map(|i| stream.uniform(i) * 2.0 - 1.0).collect()
}

fn rounded(x: f32, dtype: DType) -> f64 {
    f64::from(if dtype == DType::Bf16 { bf16::from_f32(x).to_f32() } else { x })
}

fn close(ours: f32, exact: f64, size: f64, case: &str) {
    let error = (f64::from(ours) - exact).abs();
    assert!(error <= 2e-6 * size + 1e-6, "{case}: {ours} instead of {exact}");
}

#[test]
fn products_match_f64_sums() {
    isa::with_each(|isa| {
        for dtype in [DType::F32, DType::Bf16] {
            for [m, k, n] in SHAPES {
                let case = format!("{isa} {dtype} {m}×{k}×{n}");
                let (a, b) = (random_values(m * k, 1), random_values(k * n, 2));
                let left = Array::from_f32(m, k, &a).to(dtype);
                let exact: Vec<f64> = (0..m * n)
                    .map(|i| {
                        (0..k)
                            .map(|j| rounded(a[i / n * k + j], dtype) * rounded(b[j * n + i % n], dtype))
                            .sum()
                    })
                    .collect();
                let mut b_t = vec![0.0; k * n];
                for (i, &x) in b.iter().enumerate() {
                    b_t[i % n * k + i / n] = x;
                }
                let sources = [Matrix::f32(&b, k, n), Matrix::f32(&b_t, n, k).transposed()];
                let packed = |rows| sources.map(|source| Packed::new(source, dtype, rows));
                for right in [Rows::Few, Rows::Many].map(packed).into_iter().flatten() {
                    let mut out = vec![0.5; m * n];
                    multiply(Matrix::of(&left), &right, Output::F32(&mut out), Finish::NONE);
                    out.iter().zip(&exact).for_each(|(&x, &y)| close(x, y, k as f64, &case));
                    multiply(Matrix::of(&left), &right, Output::AddF32(&mut out), Finish::NONE);
                    out.iter().zip(&exact).for_each(|(&x, &y)| close(x, 2.0 * y, k as f64, &case));
                    // A bf16 product rounds its f32 rows.
                    let mut again = vec![0.0; m * n];
                    multiply(Matrix::f32(&a, m, k), &right, Output::F32(&mut again), Finish::NONE);
                    again.iter().zip(&exact).for_each(|(&x, &y)| close(x, y, k as f64, &case));
                }
                // aᵀ as the left operand, which is stored as t × m.
                let (t, left_t) = (k, Array::from_f32(k, m, &transposed(&a, m, k)).to(dtype));
                let right_t = Array::from_f32(t, n, &b).to(dtype);
                // Once into aligned memory (streaming stores), once into unaligned memory; the sums start at
                // 1.
                let mut aligned = Array::scratch(DType::F32, m, n);
                let mut sums = vec![1.0; n];
                for out in [aligned.f32_mut(), &mut vec![0.5; m * n + 1][1..]] {
                    let (left, right) = (Matrix::of(&left_t), Matrix::of(&right_t));
                    multiply_transposed(left, right, dtype, Output::F32(out), Some(&mut sums));
                    out.iter()
                        .zip(&exact)
                        .for_each(|(&x, &y)| close(x, y, k as f64, &format!("{case} transposed")));
                }
                for (column, &sum) in sums.iter().enumerate() {
                    let exact: f64 = (0..t).map(|row| rounded(b[row * n + column], dtype)).sum();
                    close(sum, 1.0 + 2.0 * exact, t as f64, &format!("{case} sum of column {column}"));
                }
            }
        }
    });
}

fn transposed(a: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    (0..columns * rows).map(|i| a[i % rows * columns + i / rows]).collect()
}

#[test]
fn the_epilogue_applies_bias_activation_dropout_and_rounding() {
    isa::with_each(|isa| {
        for dtype in [DType::F32, DType::Bf16] {
            let [m, k, n] = [37, 45, 70];
            let (a, b, bias) = (random_values(m * k, 1), random_values(k * n, 2), random_values(n, 3));
            let left = Array::from_f32(m, k, &a).to(dtype);
            let right = Packed::new(Matrix::f32(&b, k, n), dtype, Rows::Many);
            let mut plain = vec![0.0; m * n];
            multiply(Matrix::of(&left), &right, Output::F32(&mut plain), Finish::NONE);
            let dropout = Dropout::new(0.25, Stream::new(5, 6, 7));
            let finish = Finish { bias: Some(&bias), rectifier: Rectifier::Relu, dropout };
            let mut finished = Array::scratch(DType::Bf16, m, n);
            multiply(Matrix::of(&left), &right, Output::over(&mut finished), finish);
            for i in 0..m * n {
                let expected = bf16::from_f32((plain[i] + bias[i % n]).max(0.0) * dropout.factor(i));
                assert_eq!(finished.bf16()[i], expected, "{isa} {dtype} element {i}");
            }
        }
    });
}

#[test]
fn a_row_has_the_same_bits_alone_and_in_a_batch() {
    isa::with_each(|isa| {
        for (dtype, rows_kind) in
            [(DType::F32, Rows::Few), (DType::F32, Rows::Many), (DType::Bf16, Rows::Many)]
        {
            let [m, k, n] = [61, 100, 96];
            let left = Array::from_f32(m, k, &random_values(m * k, 1)).to(dtype);
            let right = Packed::new(Matrix::f32(&random_values(k * n, 2), k, n), dtype, rows_kind);
            let mut all = vec![0.0; m * n];
            multiply(Matrix::of(&left), &right, Output::F32(&mut all), Finish::NONE);
            for row in 0..m {
                let mut alone = vec![0.0; n];
                let rows = Matrix::of(&left).rows(row..row + 1);
                multiply(rows, &right, Output::F32(&mut alone), Finish::NONE);
                assert_eq!(alone, all[row * n..(row + 1) * n], "{isa} {dtype} {rows_kind:?} row {row}");
            }
        }
    });
}

#[test]
#[should_panic(expected = "multiply: 2×3 by 4×5")]
fn mismatched_shapes_are_named() {
    let right = Packed::new(Matrix::f32(&[0.0; 20], 4, 5), DType::F32, Rows::Few);
    multiply(Matrix::f32(&[0.0; 6], 2, 3), &right, Output::F32(&mut [0.0; 10]), Finish::NONE);
}

#[test]
fn f32_weights_packed_for_many_rows_are_as_accurate_as_for_few() {
    isa::with_each(|isa| {
        for k in [32, 512, 2048] {
            let [m, n] = [48, 40];
            let (a, b) = (random_values(m * k, 1), random_values(k * n, 2));
            let error = |rows| {
                let mut out = vec![0.0; m * n];
                let right = Packed::new(Matrix::f32(&b, k, n), DType::F32, rows);
                multiply(Matrix::f32(&a, m, k), &right, Output::F32(&mut out), Finish::NONE);
                let exact = |i: usize| -> f64 {
                    (0..k).map(|j| f64::from(a[i / n * k + j]) * f64::from(b[j * n + i % n])).sum()
                };
                let squares = out.iter().enumerate().map(|(i, &x)| (f64::from(x) - exact(i)).powi(2));
                (squares.sum::<f64>() / out.len() as f64).sqrt()
            };
            let (few, many) = (error(Rows::Few), error(Rows::Many));
            assert!(many <= 1.5 * few, "{isa}, sums of {k}: {many:.2e} for many rows, {few:.2e} for few");
        }
    });
}
