//! What decoding needs on a card, beside the processor: and a row has the same bits alone and among others. Without a card nothing is
//! tested and a line says why; `HEEDFUL_REQUIRE_CUDA=1` makes that a failure.

#[path = "support/card.rs"]
mod found;

use std::f64::consts::{FRAC_2_SQRT_PI, SQRT_2};

use heedful_tensor::ops::{
    self, Activation, CachedAttentionOptions, KeyLists, KeyValueRows, KeyValueStore, LinearOptions, Part,
    Projection, Seen, TopK,
};
use heedful_tensor::random::{Dropout, Stream};
use heedful_tensor::{Array, Compute, DType, Device, Init, Params, Rounding, Tensor, tape};

use found::has_card;

fn numbers(count: usize, stream: u64) -> Vec<f32> {
    let stream = Stream::new(1, 2, stream);
    (0..count as u32).map(|i| 2.0 * stream.uniform(i) - 1.0).collect()
}

fn distance(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len());
    let apart: f64 = a.iter().zip(b).map(|(&a, &b)| f64::from(a - b).powi(2)).sum();
    let length: f64 = b.iter().map(|&b| f64::from(b).powi(2)).sum();
    (apart / length.max(1e-30)).sqrt()
}

/// Lists of rows, laid end to end.
fn listed(lists: &[&[u32]]) -> KeyLists {
    let mut end = 0;
    let range = |list: &&[u32]| {
        end += list.len();
        end - list.len()..end
    };
    KeyLists::of_slots(&lists.concat(), lists.iter().map(range))
}

const ACTIVATIONS: [Activation; 5] =
    [Activation::Identity, Activation::Relu, Activation::Gelu, Activation::GeluTanh, Activation::Silu];

/// Rows that take every size of tile, with several on each side.
const ROWS: [usize; 6] = [1, 5, 17, 130, 700, 5000];

#[test]
fn products_are_those_of_the_processor_and_rows_do_not_know_each_other() {
    if !has_card() {
        return;
    }
    for (number, [inputs, outputs]) in
        [[512, 512], [64, 200], [33, 47], [2048, 128], [40, 8003]].into_iter().enumerate()
    {
        let params = Params::new(3);
        let weight = params.add("weight", inputs, outputs, Init::Normal(0.1));
        let turned = params.add("turned", outputs, inputs, Init::Normal(0.1));
        let bias = params.add("bias", 1, outputs, Init::Normal(1.0));
        let activation = ACTIVATIONS[number];
        for (compute, tolerance) in [(DType::F32, 1e-5), (DType::Bf16, 1e-2)] {
            let compute = Compute::inference(compute);
            let run = |device: Device, values: &[f32]| -> [Vec<f32>; 2] {
                params.move_to(device);
                tape::paused(|| {
                    let x = Tensor::from_f32_on(device, values.len() / inputs, inputs, values);
                    let options = LinearOptions { activation, dropout: Dropout::NONE, compute };
                    let projection = Projection { weight: &turned, bias: (number % 2 == 0).then_some(&bias) };
                    let y = ops::linear(&x, &weight, Some(&bias), options);
                    [y.to_vec(), ops::project_wide(&x, projection, compute).to_vec()]
                })
            };
            let all = numbers(ROWS[ROWS.len() - 1] * inputs, 1);
            let exact = run(Device::Cpu, &all[..130 * inputs]);
            let most = run(Device::Cuda, &all);
            for rows in ROWS {
                let found = run(Device::Cuda, &all[..rows * inputs]);
                for (kind, (found, most)) in found.iter().zip(&most).enumerate() {
                    assert!(
                        found[..] == most[..found.len()],
                        "{inputs} to {outputs} in {compute:?}, kind {kind}: {rows} rows and {} differ",
                        ROWS[ROWS.len() - 1]
                    );
                }
            }
            for (found, exact) in most.iter().zip(&exact) {
                let off = distance(&found[..exact.len()], exact);
                assert!(off < tolerance, "{inputs} to {outputs} in {compute:?} {activation:?}: {off:e} off");
            }
        }
    }
}

/// Rows that take every tile of Hopper's products, and end in the middle of one.
const ROWS_OF_TILES: [usize; 12] = [1, 5, 8, 63, 64, 65, 300, 450, 1000, 2000, 5000, 10_000];

#[test]
fn a_row_has_the_same_bits_in_every_tile_and_at_every_place_in_it() {
    if !has_card() {
        return;
    }
    let compute = Compute::inference(DType::Bf16);
    let shapes = [
        ([512, 512], 10_000),
        ([8, 24], 10_000),
        ([72, 1000], 10_000),
        ([40, 8003], 450),
        ([2048, 512], 1000),
    ];
    for (number, ([inputs, outputs], most)) in shapes.into_iter().enumerate() {
        let params = Params::new(7);
        let weight = params.add("weight", inputs, outputs, Init::Normal(0.1));
        let turned = params.add("turned", outputs, inputs, Init::Normal(0.1));
        let bias = params.add("bias", 1, outputs, Init::Normal(1.0));
        let [as_it_is, as_turned, added] = [&weight, &turned, &bias].map(|param| param.to_vec());
        params.move_to(Device::Cuda);
        let activation = ACTIVATIONS[number];
        let options = LinearOptions { activation, dropout: Dropout::NONE, compute };
        let projection = Projection { weight: &turned, bias: Some(&bias) };
        // Both ways in which W can lie, with both types of results.
        let run = |values: &[f32]| -> [Vec<f32>; 4] {
            tape::paused(|| {
                let x = Tensor::from_f32_on(Device::Cuda, values.len() / inputs, inputs, values);
                [
                    ops::linear(&x, &weight, Some(&bias), options).to_vec(),
                    ops::times(&x, &weight, compute).to_vec(),
                    ops::project(&x, projection, compute).to_vec(),
                    ops::project_wide(&x, projection, compute).to_vec(),
                ]
            })
        };
        let values = numbers(most * inputs, 3);
        let all = run(&values);
        for rows in ROWS_OF_TILES.into_iter().filter(|&rows| rows <= most) {
            for first in [0, 37.min(most - rows)] {
                let found = run(&values[first * inputs..(first + rows) * inputs]);
                for (kind, (found, all)) in found.iter().zip(&all).enumerate() {
                    assert!(
                        found[..] == all[first * outputs..(first + rows) * outputs],
                        "{inputs} to {outputs}, kind {kind}: {rows} rows from {first} on differ among {most}"
                    );
                }
            }
        }
        for row in [0, 4, 7, 8, 64, 129, 255, 256, most - 1] {
            let x = &values[row * inputs..(row + 1) * inputs];
            let exact = exact_products(x, [&as_it_is, &as_turned]);
            let with_bias =
                |sums: &[f64]| sums.iter().zip(&added).map(|(&sum, &b)| sum + f64::from(b)).collect();
            let mut expected: [Vec<f64>; 4] =
                [with_bias(&exact[0]), exact[0].clone(), with_bias(&exact[1]), with_bias(&exact[1])];
            expected[0].iter_mut().for_each(|x| *x = activated(activation, *x));
            for (kind, (all, expected)) in all.iter().zip(&expected).enumerate() {
                let tolerance = [4e-3, 1e-4, 4e-3, 1e-4][kind];
                let expected: Vec<f32> = expected.iter().map(|&x| x as f32).collect();
                let off = distance(&all[row * outputs..(row + 1) * outputs], &expected);
                assert!(off < tolerance, "{inputs} to {outputs}, kind {kind}: row {row} is {off:e} off");
            }
        }
    }
}

/// `x W` and `x Wᵀ` of numbers rounded to bf16, for `W` of inputs × outputs and one of outputs × inputs.
fn exact_products(x: &[f32], [as_it_is, turned]: [&[f32]; 2]) -> [Vec<f64>; 2] {
    let rounded = |x: f32| f64::from(half::bf16::from_f32(x).to_f32());
    let (inputs, outputs) = (x.len(), turned.len() / x.len());
    let sum = |at: &dyn Fn(usize) -> f32| (0..inputs).map(|k| rounded(x[k]) * rounded(at(k))).sum();
    [
        (0..outputs).map(|o| sum(&|k| as_it_is[k * outputs + o])).collect(),
        (0..outputs).map(|o| sum(&|k| turned[o * inputs + k])).collect(),
    ]
}

fn activated(activation: Activation, x: f64) -> f64 {
    match activation {
        Activation::Identity => x,
        Activation::Relu => x.max(0.0),
        Activation::Gelu => 0.5 * x * (1.0 + erf(x / SQRT_2)),
        Activation::GeluTanh => {
            0.5 * x * (1.0 + (FRAC_2_SQRT_PI / SQRT_2 * (x + 0.044715 * x.powi(3))).tanh())
        }
        Activation::Silu => x / (1.0 + (-x).exp()),
    }
}

/// The series around 0.
fn erf(x: f64) -> f64 {
    if x.abs() > 4.0 {
        return x.signum();
    }
    let (mut term, mut sum) = (x, x);
    for n in 1..100 {
        term *= -x * x / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    sum * FRAC_2_SQRT_PI
}

#[test]
fn stored_keys_are_attended_to_as_on_the_processor() {
    if !has_card() {
        return;
    }
    const STORED: usize = 170;
    let scattered = |n: u32| (0..n).map(|i| (i * 29 + 3) % STORED as u32).collect::<Vec<u32>>();
    let lists = [vec![5], scattered(33), (10..26).collect(), vec![0, 0, 169], scattered(170), scattered(64)];
    for (heads, d_k, d_v) in [
        (1, 7, 5),
        (3, 11, 16),
        (8, 64, 64),
        (2, 32, 32),
        (3, 128, 128),
        (2, 64, 40),
        (4, 16, 8),
        (1, 256, 256),
        (1, 512, 512),
    ] {
        for (dtype, tolerance) in [(DType::F32, 1e-5), (DType::Bf16, 1e-2)] {
            let options = CachedAttentionOptions {
                heads,
                key_width: heads * d_k,
                scale: 0.3,
                rounding: Rounding::Fused,
            };
            let (keys, width) = (heads * d_k, heads * (d_k + d_v));
            let (queries, stored) = (numbers(lists.len() * keys, 1), numbers(STORED * width, 2));
            let on = |device| Array::from_f32_on(device, STORED, width, &stored).to(dtype);
            let query = |device, row: std::ops::Range<usize>| {
                let values = &queries[row.start * keys..row.end * keys];
                Part::whole(Tensor::new(Array::from_f32_on(device, row.len(), keys, values).to(dtype)))
            };
            let (host, card) = (on(Device::Cpu), on(Device::Cuda));
            let seen = Seen::Each(lists.iter().map(|list| KeyValueRows::Listed(&host, list)).collect());
            let exact = ops::cached_attention(&query(Device::Cpu, 0..lists.len()), &seen, options).to_vec();
            let all_lists = listed(&lists.each_ref().map(Vec::as_slice));
            let all = query(Device::Cuda, 0..lists.len());
            let found = ops::cached_attention(&all, &Seen::Listed(&card, &all_lists), options).to_vec();
            let off = distance(&found, &exact);
            assert!(off < tolerance, "{heads} heads of {d_k} and {d_v} in {dtype}: {off:e} off");
            for (row, list) in lists.iter().enumerate() {
                let one_list = listed(&[list]);
                let one = query(Device::Cuda, row..row + 1);
                let alone = ops::cached_attention(&one, &Seen::Listed(&card, &one_list), options).to_vec();
                assert!(
                    alone == found[row * heads * d_v..(row + 1) * heads * d_v],
                    "{dtype}: row {row} alone"
                );
            }
            let ranged = KeyLists::of_ranges(vec![10..26; lists.len()]);
            let ranged = ops::cached_attention(&all, &Seen::Listed(&card, &ranged), options).to_vec();
            let row = 2 * heads * d_v..3 * heads * d_v;
            assert!(ranged[row.clone()] == found[row], "{dtype}: a range is not its list");
        }
    }
}

/// Neighbours that see the same rows share what is read of them: runs of every length, from every place in a tile, and rows that only
/// fill a batch up.
#[test]
fn queries_that_see_the_same_rows_have_the_bits_of_those_with_lists() {
    if !has_card() {
        return;
    }
    const STORED: usize = 300;
    let runs = [(1, 10..26), (5, 0..33), (5, 40..41), (3, 0..0), (9, 7..135), (20, 100..164), (2, 0..300)];
    let ranges: Vec<std::ops::Range<usize>> =
        runs.iter().flat_map(|(times, range)| vec![range.clone(); *times]).collect();
    for (heads, d) in [(8, 64), (3, 32), (2, 128)] {
        for dtype in [DType::F32, DType::Bf16] {
            let options = CachedAttentionOptions {
                heads,
                key_width: heads * d,
                scale: 0.125,
                rounding: Rounding::Fused,
            };
            let on = |rows, width, seed| {
                Array::from_f32_on(Device::Cuda, rows, width, &numbers(rows * width, seed)).to(dtype)
            };
            let stored = on(STORED, 2 * heads * d, 2);
            let queries = Part::whole(Tensor::new(on(ranges.len(), heads * d, 1)));
            let slots: Vec<u32> = (0..STORED as u32).collect();
            let listed = KeyLists::of_slots(&slots, ranges.iter().cloned());
            let ranged = KeyLists::of_ranges(ranges.iter().cloned());
            let [found, expected] = [&ranged, &listed].map(|lists| {
                ops::cached_attention(&queries, &Seen::Listed(&stored, lists), options).to_vec()
            });
            assert!(found == expected, "{heads} heads of {d} in {dtype}");
        }
    }
}

#[test]
fn newest_rows_are_stored_on_the_way_as_beforehand() {
    if !has_card() {
        return;
    }
    const STORED: usize = 200;
    // The last of each is nobody else's.
    let long = |count: u32, last| (0..count).map(|i| i * 7 % 150).chain([last]).collect::<Vec<u32>>();
    let [long, shorter] = [long(130, 193), long(63, 194)];
    let lists: [&[u32]; 6] = [&[190], &[3, 191], &[], &long, &[5, 6, 7, 8, 9, 10, 11, 192], &shorter];
    for (heads, d_k, d_v) in [(8, 64, 64), (3, 32, 32), (2, 128, 128), (2, 24, 16)] {
        for dtype in [DType::F32, DType::Bf16] {
            let options = CachedAttentionOptions {
                heads,
                key_width: heads * d_k,
                scale: 0.125,
                rounding: Rounding::Fused,
            };
            let (d, width) = (heads * d_k, heads * (d_k + d_v));
            let qkv = numbers(lists.len() * (d + width), 1);
            let qkv = Tensor::new(Array::from_f32_on(Device::Cuda, lists.len(), d + width, &qkv).to(dtype));
            let [queries, newest] = [0..d, d..d + width].map(|columns| Part { tensor: qkv.clone(), columns });
            let seen = listed(&lists);
            let run = |is_on_the_way: bool| {
                let mut store = KeyValueStore::new(Device::Cuda, dtype, width);
                store.reserve(STORED);
                let old = numbers(STORED * width, 2);
                let old = Array::from_f32_on(Device::Cuda, STORED, width, &old).to(dtype);
                store.write_from(&Tensor::new(old), 0);
                let found = if is_on_the_way {
                    ops::cached_attention(&queries, &Seen::WithNewest(&store, &seen, &newest), options)
                } else {
                    store.write_newest(&qkv, newest.columns.clone(), &seen);
                    ops::cached_attention(&queries, &Seen::Listed(store.array(), &seen), options)
                };
                (found.to_vec(), store.array().to_vec())
            };
            assert!(run(true) == run(false), "{heads} heads of {d_k} and {d_v} in {dtype}");
        }
    }
}

#[test]
fn newest_rows_are_kept_survive_growth_and_can_be_copied() {
    if !has_card() {
        return;
    }
    let mut store = KeyValueStore::new(Device::Cuda, DType::F32, 2);
    store.reserve(3);
    let from = Tensor::from_f32_on(Device::Cuda, 3, 3, &[9.0, 1.0, 2.0, 9.0, 3.0, 4.0, 9.0, 5.0, 6.0]);
    let lists: [&[u32]; 3] = [&[0, 1], &[0], &[]];
    store.write_newest(&from, 1..3, &listed(&lists));
    store.reserve(5);
    store.write_from(&Tensor::from_f32_on(Device::Cuda, 2, 2, &[7.0, 8.0, 9.0, 10.0]), 3);
    assert_eq!(store.array().part_to_vec(0..4), [3.0, 4.0, 1.0, 2.0]);
    assert_eq!(store.array().part_to_vec(6..10), [7.0, 8.0, 9.0, 10.0]);
    assert_eq!(store.copied(&[4, 0]).to_vec(), [9.0, 10.0, 3.0, 4.0]);
}

#[test]
fn the_best_are_those_of_a_sorted_row() {
    if !has_card() {
        return;
    }
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
        // Few values: many ties.
        let scores: Vec<f32> = (0..3 * width as u32)
            .map(|i| (stream.bits(i) % values) as f32 * (8.0 / values as f32) - 1.0)
            .collect();
        let mut found = TopK::default();
        let others = [(2, 0), (0, width as u32 - 1)];
        let on_card = Tensor::from_f32_on(Device::Cuda, 3, width, &scores);
        found.find_and(&on_card, count, &others, Rounding::Fused);
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
        for (row, column) in others {
            assert_eq!(found.other(row, column), Some(scores[row * width + column as usize]));
        }
    }
    let mut found = TopK::default();
    let bad = [f32::NEG_INFINITY, 2.0, f32::NEG_INFINITY, 0.0, f32::NAN, 1.0, 0.0, f32::INFINITY, 1.0];
    found.find(&Tensor::from_f32_on(Device::Cuda, 3, 3, &bad), 2, Rounding::Fused);
    assert_eq!((found.best(0)[0].index, found.normalizer(0)), (1, 2.0));
    assert!((1..3).all(|row| !found.normalizer(row).is_finite()));
    // A row that has one score in a part of its own, and nothing else.
    let mut scores = vec![f32::NEG_INFINITY; 20_000];
    scores[15_000] = -3.0;
    found.find(&Tensor::from_f32_on(Device::Cuda, 1, 20_000, &scores), 4, Rounding::Fused);
    assert_eq!(found.best(0).iter().map(|best| best.index).collect::<Vec<_>>(), [15_000, 0, 1, 2]);
    assert_eq!(found.normalizer(0), -3.0);
}

#[test]
fn a_row_has_the_same_best_and_the_same_normalizer_alone_and_among_others() {
    if !has_card() {
        return;
    }
    let on_card = |width, scores: &[f32]| {
        let mut found = TopK::default();
        let scores = Tensor::from_f32_on(Device::Cuda, scores.len() / width, width, scores);
        found.find(&scores, 5, Rounding::Fused);
        found
    };
    for width in [40, 8003, 32_000] {
        let scores = numbers(70 * width, 6);
        let all = on_card(width, &scores);
        for rows in [0..1, 13..14, 5..14, 3..67, 69..70] {
            let found = on_card(width, &scores[rows.start * width..rows.end * width]);
            for (number, row) in rows.enumerate() {
                assert_eq!(found.best(number), all.best(row), "row {row} of {width}");
                let bits = [found.normalizer(number), all.normalizer(row)].map(f64::to_bits);
                assert_eq!(bits[0], bits[1], "row {row} of {width}");
            }
        }
    }
}

#[test]
fn a_step_that_is_replayed_finds_what_is_there_now() {
    if !has_card() {
        return;
    }
    let params = Params::new(3);
    let weight = params.add("weight", 900, 64, Init::Normal(0.5));
    params.move_to(Device::Cuda);
    let mut found = TopK::default();
    for round in 0..5 {
        let values = numbers(8 * 64, 10 + round);
        let compute = Compute::inference(DType::Bf16);
        let others: Vec<(usize, u32)> = (0..round as usize).map(|row| (row, 7)).collect();
        let find = |found: &mut TopK| {
            tape::paused(|| {
                let x = Tensor::from_f32_on(Device::Cuda, 8, 64, &values);
                assert!(found.find_in_product(&x, &weight, compute, 4, &others));
            });
        };
        let mut expected = TopK::default();
        find(&mut expected);
        Device::Cuda.begin_step(|| find(&mut found)).1.wait();
        found.collect();
        for row in 0..8 {
            assert_eq!(found.best(row), expected.best(row), "round {round}");
            assert_eq!(found.normalizer(row), expected.normalizer(row), "round {round}");
        }
        assert!(others.iter().all(|&(row, column)| found.other(row, column) == expected.other(row, column)));
    }
}
