//! The top k of a row and its normalizer (log-sum-exp).

use heedful_tensor::ops::{Projection, TopK, project_f32_out};
use heedful_tensor::random::Stream;
use heedful_tensor::{Compute, DType, Device, Init, Params, Rounding, Tensor, tape};

use super::random_values;

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn top_k_is_the_head_of_the_sorted_row() {
    let stream = Stream::new(3, 4, 5);
    let sizes = [
        (1, 1, 9),
        (5, 9, 9),
        (64, 3, 400),
        (300, 64, 7),
        (1000, 1, 400),
        (8003, 7, 400),
        (8192, 64, 400),
        (8193, 25, 1 << 20),
        (32000, 5, 1 << 20),
        (32000, 10, 1 << 20),
        (50257, 24, 1 << 20),
        (20000, 64, 3),
        (9000, 10, 1),
        (500, 0, 9),
    ];
    for (width, count, values) in sizes {
        // Few distinct values: many ties.
        let scores: Vec<f32> = (0..3 * width as u32)
            .map(|i| (stream.bits(i) % values) as f32 * (8.0 / values as f32) - 1.0)
            .collect();
        let mut found = TopK::default();
        let extra = [(2, 0), (0, width as u32 - 1)];
        let on_gpu = Tensor::from_f32_on(Device::Cuda, 3, width, &scores);
        found.find_with_extra(&on_gpu, count, &extra, Rounding::Fused);
        for (row, scores) in scores.chunks_exact(width).enumerate() {
            let mut order: Vec<usize> = (0..width).collect();
            order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
            order.truncate(count);
            let best: Vec<usize> = found.best(row).iter().map(|best| best.index as usize).collect();
            assert_eq!(best, order, "{count} of {width}");
            assert!(found.best(row).iter().all(|best| best.score == scores[best.index as usize]));
            let exact = scores.iter().map(|&x| f64::from(x).exp()).sum::<f64>().ln();
            let off = (found.normalizer(row) - exact).abs();
            assert!(off < 1e-5, "{count} of {width}: the normalizer is {off:e} off");
        }
        for (row, column) in extra {
            assert_eq!(found.extra(row, column), Some(scores[row * width + column as usize]));
        }
    }
    let mut found = TopK::default();
    let bad = [f32::NEG_INFINITY, 2.0, f32::NEG_INFINITY, 0.0, f32::NAN, 1.0, 0.0, f32::INFINITY, 1.0];
    found.find(&Tensor::from_f32_on(Device::Cuda, 3, 3, &bad), 2, Rounding::Fused);
    assert_eq!((found.best(0)[0].index, found.normalizer(0)), (1, 2.0));
    assert!((1..3).all(|row| !found.normalizer(row).is_finite()));
    // NaN sorts last, also in a row of NaN only.
    for (scores, expected) in [(vec![f32::NAN, 1.0, 2.0], [2, 1, 0]), (vec![f32::NAN; 64], [0, 1, 2])] {
        found.find(&Tensor::from_f32_on(Device::Cuda, 1, scores.len(), &scores), 3, Rounding::Fused);
        assert_eq!(found.best(0).iter().map(|best| best.index).collect::<Vec<_>>(), expected);
        assert!(!found.normalizer(0).is_finite());
    }
    // A row whose only finite score is far from its beginning.
    let mut scores = vec![f32::NEG_INFINITY; 20_000];
    scores[15_000] = -3.0;
    found.find(&Tensor::from_f32_on(Device::Cuda, 1, 20_000, &scores), 4, Rounding::Fused);
    assert_eq!(found.best(0).iter().map(|best| best.index).collect::<Vec<_>>(), [15_000, 0, 1, 2]);
    assert_eq!(found.normalizer(0), -3.0);
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn a_row_has_the_same_top_k_and_normalizer_alone_and_in_a_batch() {
    let on_gpu = |width, scores: &[f32]| {
        let mut found = TopK::default();
        let scores = Tensor::from_f32_on(Device::Cuda, scores.len() / width, width, scores);
        found.find(&scores, 5, Rounding::Fused);
        found
    };
    for width in [40, 8003, 32_000] {
        let scores = random_values(70 * width, 6);
        let all = on_gpu(width, &scores);
        for rows in [0..1, 13..14, 5..14, 3..67, 69..70] {
            let found = on_gpu(width, &scores[rows.start * width..rows.end * width]);
            for (number, row) in rows.enumerate() {
                assert_eq!(found.best(number), all.best(row), "row {row} of {width}");
                let bits = [found.normalizer(number), all.normalizer(row)].map(f64::to_bits);
                assert_eq!(bits[0], bits[1], "row {row} of {width}");
            }
        }
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn top_k_of_a_product_equals_top_k_of_its_scores() {
    // The last width is not supported by the sm90 GEMM.
    for (inputs, width) in [(64, 8000), (40, 8003), (512, 1000), (72, 30), (33, 500)] {
        let params = Params::new(4);
        let weight = params.add("weight", width, inputs, Init::Normal(0.3));
        let bias = params.add("bias", 1, width, Init::Normal(1.0));
        params.move_to(Device::Cuda).expect("it fits");
        for (compute, rows) in [DType::F32, DType::Bf16]
            .into_iter()
            .flat_map(|compute| [1, 7, 65, 200, 700, 2000, 5000].map(|rows| (compute, rows)))
        {
            let compute = Compute::inference(compute);
            let projection = Projection { weight: &weight, bias: (inputs % 16 == 0).then_some(&bias) };
            let extra = [(0, width as u32 - 1), (rows - 1, 3)];
            let (mut found, mut expected) = (TopK::default(), TopK::default());
            tape::no_grad(|| {
                let x = Tensor::from_f32_on(Device::Cuda, rows, inputs, &random_values(rows * inputs, 9));
                assert!(found.find_in_product(&x, projection, compute, 6, &extra));
                expected.find_with_extra(
                    &project_f32_out(&x, projection, compute),
                    6,
                    &extra,
                    Rounding::Fused,
                );
            });
            for row in 0..rows {
                let name = || format!("row {row} of {rows}, {inputs} to {width} in {compute:?}");
                assert_eq!(found.best(row), expected.best(row), "{}", name());
                let bits = [&found, &expected].map(|found| found.normalizer(row).to_bits());
                assert_eq!(bits[0], bits[1], "{}", name());
            }
            assert!(
                extra.iter().all(|&(row, column)| found.extra(row, column) == expected.extra(row, column))
            );
        }
    }
}
