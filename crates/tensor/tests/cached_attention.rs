//! Attention to cached keys against an f64 reference on every instruction set; a row's bits do not depend on
//! other rows.

use heedful_tensor::cpu::isa;
use heedful_tensor::cpu::threads::set_thread_count;
use heedful_tensor::ops::{
    CachedAttentionOptions, ColumnView, KeyValueRows, KeyValueStore, KvView, cached_attention,
};
use heedful_tensor::random::Stream;
use heedful_tensor::{Array, DType, Device, Rounding, Tensor};

struct Case {
    heads: usize,
    d_k: usize,
    d_v: usize,
    /// For every query, the cached rows that it attends to.
    seen: Vec<Vec<u32>>,
    rounding: Rounding,
}

const STORED: usize = 70;
const SCALE: f32 = 0.3;

fn cases() -> Vec<Case> {
    let scattered = |n: u32| (0..n).map(|i| (i * 29 + 3) % STORED as u32).collect::<Vec<u32>>();
    let seen = vec![vec![5], scattered(33), (10..26).collect(), vec![0, 0, 69], scattered(70)];
    [(1, 7, 5), (3, 11, 16), (8, 32, 32), (2, 64, 40), (4, 16, 8), (5, 16, 48)]
        .map(|(heads, d_k, d_v)| Case { heads, d_k, d_v, seen: seen.clone(), rounding: Rounding::Fused })
        .into()
}

fn random_values(count: usize, stream: u64) -> Vec<f32> {
    let stream = Stream::new(1, 2, stream);
    (0..count as u32).map(|i| 2.0 * stream.uniform(i) - 1.0).collect()
}

impl Case {
    fn inputs(&self, dtype: DType) -> (Array, Array) {
        let (keys, width) = (self.heads * self.d_k, self.heads * (self.d_k + self.d_v));
        let queries = Array::from_f32(self.seen.len(), keys, &random_values(self.seen.len() * keys, 1));
        let stored = Array::from_f32(STORED, width, &random_values(STORED * width, 2));
        (queries.to(dtype), stored.to(dtype))
    }

    fn options(&self) -> CachedAttentionOptions {
        CachedAttentionOptions {
            heads: self.heads,
            key_width: self.heads * self.d_k,
            scale: SCALE,
            rounding: self.rounding,
        }
    }

    fn run(&self, dtype: DType, rows: &[usize]) -> Vec<Vec<f32>> {
        let (queries, stored) = self.inputs(dtype);
        let some = |rows: &[usize]| {
            let (all, width) = (Tensor::new(queries.clone()).to_vec(), queries.width());
            let chosen: Vec<f32> =
                rows.iter().flat_map(|&r| &all[r * width..(r + 1) * width]).copied().collect();
            Tensor::new(Array::from_f32(rows.len(), width, &chosen).to(dtype))
        };
        let seen: Vec<_> = rows.iter().map(|&row| KeyValueRows::Listed(&stored, &self.seen[row])).collect();
        let found = cached_attention(&ColumnView::whole(some(rows)), &KvView::PerQuery(seen), self.options());
        found.to_vec().chunks_exact(found.width()).map(<[f32]>::to_vec).collect()
    }

    fn reference(&self, dtype: DType) -> Vec<Vec<f64>> {
        let wide = |array: &Array| Tensor::new(array.clone()).to_vec();
        let (queries, stored) = self.inputs(dtype);
        let (width, keys) = (stored.width(), self.heads * self.d_k);
        let (queries, stored) = (wide(&queries), wide(&stored));
        let row = |row: usize| -> Vec<f64> {
            let column = |c: usize| {
                let head = c / self.d_v;
                let exp_score = |&key: &u32| {
                    let part = |i: usize| {
                        let at = head * self.d_k + i;
                        f64::from(queries[row * keys + at]) * f64::from(stored[key as usize * width + at])
                    };
                    (f64::from(SCALE) * (0..self.d_k).map(part).sum::<f64>()).exp()
                };
                let total: f64 = self.seen[row].iter().map(exp_score).sum();
                let value = |&key: &u32| f64::from(stored[key as usize * width + keys + c]);
                self.seen[row].iter().map(|key| exp_score(key) / total * value(key)).sum()
            };
            (0..self.heads * self.d_v).map(column).collect()
        };
        (0..self.seen.len()).map(row).collect()
    }
}

#[test]
fn with_uniform_rounding_every_instruction_set_has_the_same_bits() {
    let results = |dtype| -> Vec<Vec<u32>> {
        let uniform = |case| Case { rounding: Rounding::Uniform, ..case };
        let bits =
            |case: Case| case.run(dtype, &[0, 1, 2, 3, 4]).concat().into_iter().map(f32::to_bits).collect();
        cases().into_iter().map(uniform).map(bits).collect()
    };
    let mut all = Vec::new();
    isa::with_each(|isa| all.push((isa, [DType::F32, DType::Bf16].map(results))));
    for (isa, found) in &all {
        assert!(*found == all[0].1, "{isa} differs from {}", all[0].0);
    }
}

#[test]
fn results_match_the_formula_and_rows_are_independent() {
    isa::with_each(|isa| {
        for (case, dtype) in cases().iter().flat_map(|case| [(case, DType::F32), (case, DType::Bf16)]) {
            let every_row: Vec<usize> = (0..case.seen.len()).collect();
            set_thread_count(1);
            let together = case.run(dtype, &every_row);
            set_thread_count(2);
            assert!(
                together == case.run(dtype, &every_row),
                "one and two threads differ on {isa} in {dtype}"
            );
            let tolerance = if dtype == DType::F32 { 2e-6 } else { 4e-3 };
            for (row, (found, exact)) in together.iter().zip(case.reference(dtype)).enumerate() {
                let off =
                    found.iter().zip(&exact).map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max);
                assert!(off < tolerance, "{isa} {dtype} {} heads, row {row}: {off:e} off", case.heads);
                assert!(found == &case.run(dtype, &[row])[0], "{isa} {dtype}: row {row} differs alone");
            }
            let (queries, stored) = case.inputs(dtype);
            let rows = queries.rows();
            let ranges = KvView::PerQuery(vec![KeyValueRows::Range(&stored, 10..26); rows]);
            let found =
                cached_attention(&ColumnView::whole(Tensor::new(queries)), &ranges, case.options()).to_vec();
            let width = found.len() / rows;
            assert!(found[2 * width..3 * width] == together[2], "{isa} {dtype}: a range and its list differ");
        }
    });
}

#[test]
fn cached_rows_survive_growth_and_can_be_copied() {
    let mut store = KeyValueStore::new(Device::Cpu, DType::F32, 2);
    store.reserve(2);
    let from = Tensor::from_f32(2, 3, &[9.0, 1.0, 2.0, 9.0, 3.0, 4.0]);
    store.write(&from, 1..3, &[1, 0]);
    store.reserve(5);
    assert_eq!(store.array().f32()[..4], [3.0, 4.0, 1.0, 2.0]);
    assert_eq!(store.array().rows(), 5);
    assert_eq!(store.copied(&[1, 0, 1]).to_vec(), [1.0, 2.0, 3.0, 4.0, 1.0, 2.0]);
}

#[test]
#[should_panic(expected = "cached attention: query 0 sees no key")]
fn a_query_without_keys_is_an_error() {
    let stored = Array::zeros(DType::F32, 3, 4);
    let options = CachedAttentionOptions { heads: 1, key_width: 2, scale: 1.0, rounding: Rounding::Fused };
    cached_attention(
        &ColumnView::whole(Tensor::from_f32(1, 2, &[0.0; 2])),
        &KvView::PerQuery(vec![KeyValueRows::Listed(&stored, &[])]),
        options,
    );
}
