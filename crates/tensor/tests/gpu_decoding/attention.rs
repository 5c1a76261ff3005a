//! Attention to cached keys and values, and writing to the KV cache.

use heedful_tensor::ops::{
    self, CachedAttentionOptions, ColumnView, KeyValueRows, KeyValueStore, KvIndices, KvView,
};
use heedful_tensor::{Array, DType, Device, Rounding, Tensor};

use super::{distance, random_values};

/// Concatenated lists of rows.
fn listed(lists: &[&[u32]]) -> KvIndices {
    let mut end = 0;
    let range = |list: &&[u32]| {
        end += list.len();
        end - list.len()..end
    };
    KvIndices::from_slots(&lists.concat(), lists.iter().map(range))
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn attention_to_cached_keys_matches_the_cpu() {
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
            let (queries, stored) = (random_values(lists.len() * keys, 1), random_values(STORED * width, 2));
            let on = |device| Array::from_f32_on(device, STORED, width, &stored).to(dtype);
            let query = |device, row: std::ops::Range<usize>| {
                let values = &queries[row.start * keys..row.end * keys];
                ColumnView::whole(Tensor::new(Array::from_f32_on(device, row.len(), keys, values).to(dtype)))
            };
            let (host, gpu) = (on(Device::Cpu), on(Device::Cuda));
            let seen = KvView::PerQuery(lists.iter().map(|list| KeyValueRows::Listed(&host, list)).collect());
            let exact = ops::cached_attention(&query(Device::Cpu, 0..lists.len()), &seen, options).to_vec();
            let all_lists = listed(&lists.each_ref().map(Vec::as_slice));
            let all = query(Device::Cuda, 0..lists.len());
            let found = ops::cached_attention(&all, &KvView::Indexed(&gpu, &all_lists), options).to_vec();
            let off = distance(&found, &exact);
            assert!(off < tolerance, "{heads} heads of {d_k} and {d_v} in {dtype}: {off:e} off");
            for (row, list) in lists.iter().enumerate() {
                let one_list = listed(&[list]);
                let one = query(Device::Cuda, row..row + 1);
                let alone = ops::cached_attention(&one, &KvView::Indexed(&gpu, &one_list), options).to_vec();
                assert!(
                    alone == found[row * heads * d_v..(row + 1) * heads * d_v],
                    "{dtype}: row {row} differs alone"
                );
            }
            let ranged = KvIndices::from_ranges(vec![10..26; lists.len()]);
            let ranged = ops::cached_attention(&all, &KvView::Indexed(&gpu, &ranged), options).to_vec();
            let row = 2 * heads * d_v..3 * heads * d_v;
            assert!(ranged[row.clone()] == found[row], "{dtype}: a range and its list differ");
        }
    }
}

/// Neighbouring queries with the same rows share their loads: runs of every length, from every position in a
/// tile, and padding rows.
#[test]
#[ignore = "needs an NVIDIA GPU"]
fn queries_with_shared_ranges_have_the_bits_of_queries_with_lists() {
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
                Array::from_f32_on(Device::Cuda, rows, width, &random_values(rows * width, seed)).to(dtype)
            };
            let stored = on(STORED, 2 * heads * d, 2);
            let queries = ColumnView::whole(Tensor::new(on(ranges.len(), heads * d, 1)));
            let slots: Vec<u32> = (0..STORED as u32).collect();
            let listed = KvIndices::from_slots(&slots, ranges.iter().cloned());
            let ranged = KvIndices::from_ranges(ranges.iter().cloned());
            let [found, expected] = [&ranged, &listed].map(|lists| {
                ops::cached_attention(&queries, &KvView::Indexed(&stored, lists), options).to_vec()
            });
            assert!(found == expected, "{heads} heads of {d} in {dtype}");
        }
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn the_fused_write_of_the_newest_rows_equals_a_separate_write() {
    const STORED: usize = 200;
    // The last row of each list is in no other list.
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
            let qkv = random_values(lists.len() * (d + width), 1);
            let qkv = Tensor::new(Array::from_f32_on(Device::Cuda, lists.len(), d + width, &qkv).to(dtype));
            let [queries, newest] =
                [0..d, d..d + width].map(|columns| ColumnView { tensor: qkv.clone(), columns });
            let seen = listed(&lists);
            let run = |is_fused: bool| {
                let mut store = KeyValueStore::new(Device::Cuda, dtype, width);
                store.reserve(STORED);
                let old = random_values(STORED * width, 2);
                let old = Array::from_f32_on(Device::Cuda, STORED, width, &old).to(dtype);
                store.write_from(&Tensor::new(old), 0);
                let found = if is_fused {
                    ops::cached_attention(
                        &queries,
                        &KvView::IndexedWithNewest(&store, &seen, &newest),
                        options,
                    )
                } else {
                    store.write_newest(&qkv, newest.columns.clone(), &seen);
                    ops::cached_attention(&queries, &KvView::Indexed(store.array(), &seen), options)
                };
                (found.to_vec(), store.array().to_vec())
            };
            assert!(run(true) == run(false), "{heads} heads of {d_k} and {d_v} in {dtype}");
        }
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn the_newest_rows_survive_growth_and_can_be_copied() {
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
