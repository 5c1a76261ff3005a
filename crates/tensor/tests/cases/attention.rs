use heedful_tensor::ops::{
    AttentionOptions, BoolMask, ColumnView, Mask, ReturnWeights, attention, single_query_attention,
};
use heedful_tensor::random::Dropout;
use heedful_tensor::{Ragged, Tensor};

use super::dropouts;
use crate::support::reference::M;
use crate::support::{Case, Values};

#[derive(Clone, Copy, Debug)]
enum MaskPattern {
    All,
    Causal,
    Window(usize),
    CausalWindow(usize),
    Arbitrary,
}

#[derive(Clone)]
struct Setting {
    queries: Vec<usize>,
    keys: Vec<usize>,
    heads: usize,
    pattern: MaskPattern,
    dropout: Dropout,
}

impl Setting {
    fn allows(&self, query: usize, key: usize, shift: usize) -> bool {
        let position = query + shift;
        match self.pattern {
            MaskPattern::All => true,
            MaskPattern::Causal => key <= position,
            MaskPattern::Window(r) => key.abs_diff(position) <= r,
            MaskPattern::CausalWindow(r) => key <= position && position - key <= r,
            MaskPattern::Arbitrary => (query * 5 + key * 3) % 4 != 1 || key == 0,
        }
    }

    fn mask(&self) -> Mask {
        match self.pattern {
            MaskPattern::All => Mask::full(),
            MaskPattern::Causal => Mask::full().causal(),
            MaskPattern::Window(r) => Mask::full().within(r),
            MaskPattern::CausalWindow(r) => Mask::full().causal().within(r),
            MaskPattern::Arbitrary => {
                let mut allowed = Vec::new();
                for (&n_queries, &n_keys) in self.queries.iter().zip(&self.keys) {
                    for query in 0..n_queries {
                        allowed.extend((0..n_keys).map(|key| self.allows(query, key, 0)));
                    }
                }
                let mask = BoolMask::new(&ragged(&self.queries), &ragged(&self.keys), allowed);
                Mask::full().allowed(mask.expect("every query sees key 0"))
            }
        }
    }

    fn scale(&self, d_k: usize) -> f32 {
        1.0 / ((d_k / self.heads) as f32).sqrt()
    }

    fn options(&self, d_k: usize) -> AttentionOptions {
        AttentionOptions {
            heads: self.heads,
            scale: self.scale(d_k),
            mask: self.mask(),
            dropout: self.dropout,
            weights: ReturnWeights::None,
            rounding: heedful_tensor::Rounding::Fused,
        }
    }

    fn forward(&self, [queries, keys, values]: [ColumnView; 3]) -> Tensor {
        let options = self.options(queries.columns.len());
        attention(queries, keys, values, &ragged(&self.queries), &ragged(&self.keys), &options).context
    }

    fn forward_single(&self, [queries, keys, values]: [ColumnView; 3]) -> Tensor {
        let options = self.options(queries.columns.len());
        single_query_attention(queries, keys, values, &ragged(&self.keys), &options).context
    }

    fn reference(&self, queries: &M, keys: &M, values: &M) -> M {
        let (d_k, d_v) = (queries.width / self.heads, values.width / self.heads);
        let scale = f64::from(self.scale(queries.width));
        let longest = *self.keys.iter().max().expect("sequences");
        let mut out = M::build(queries.rows, values.width, |_, _| 0.0);
        let (mut first_query, mut first_key) = (0, 0);
        for (&n_queries, &n_keys) in self.queries.iter().zip(&self.keys) {
            for head in 0..self.heads {
                for query in 0..n_queries {
                    let row = first_query + query;
                    let exp = |key: usize| {
                        if !self.allows(query, key, n_keys.saturating_sub(n_queries)) {
                            return 0.0;
                        }
                        let dot = |c: usize| {
                            queries.at(row, head * d_k + c) * keys.at(first_key + key, head * d_k + c)
                        };
                        (scale * (0..d_k).map(dot).sum::<f64>()).exp()
                    };
                    let exps: Vec<f64> = (0..n_keys).map(exp).collect();
                    let total: f64 = exps.iter().sum();
                    for (key, exp) in exps.iter().enumerate() {
                        // The index of this weight's random number, as documented by the operation.
                        let draw = (head * queries.rows + row) * longest + key;
                        let weight = exp / total * f64::from(self.dropout.factor(draw));
                        for c in head * d_v..(head + 1) * d_v {
                            out.values[row * values.width + c] += weight * values.at(first_key + key, c);
                        }
                    }
                }
            }
            first_query += n_queries;
            first_key += n_keys;
        }
        out
    }
}

fn ragged(lengths: &[usize]) -> Ragged {
    Ragged::from_lengths(lengths.iter().copied())
}

pub(crate) fn cases() -> Vec<Case> {
    let all = [
        MaskPattern::All,
        MaskPattern::Causal,
        MaskPattern::Window(2),
        MaskPattern::CausalWindow(5),
        MaskPattern::Arbitrary,
    ];
    let mut cases = Vec::new();
    for (lengths, heads, d_k, d_v) in
        [(vec![1], 1, 7, 7), (vec![1, 50, 3], 3, 33, 33), (vec![2, 1], 4, 100, 64), (vec![5, 40], 2, 14, 66)]
    {
        for pattern in all {
            for dropout in dropouts() {
                let setting =
                    Setting { queries: lengths.clone(), keys: lengths.clone(), heads, pattern, dropout };
                let name = format!(
                    "attention {lengths:?} {heads} heads d_k {d_k} d_v {d_v} {pattern:?} dropout {}",
                    !dropout.is_none()
                );
                cases.push(self_attention(name, setting, d_k, d_v));
            }
        }
    }
    // Lengths around the CPU's query blocks and its pieces of long sequences.
    for lengths in [vec![31, 32, 33, 65], vec![257]] {
        for (number, pattern) in all.into_iter().enumerate() {
            let dropout = dropouts()[number % 2];
            let setting =
                Setting { queries: lengths.clone(), keys: lengths.clone(), heads: 2, pattern, dropout };
            let name = format!("attention {lengths:?} {pattern:?} dropout {}", !dropout.is_none());
            cases.push(self_attention(name, setting, 6, 4));
        }
    }
    for (queries, keys) in [
        (vec![1, 50, 3], vec![4, 1, 60]),
        (vec![1], vec![33]),
        (vec![7, 2], vec![7, 3]),
        (vec![260, 1], vec![34, 5]),
    ] {
        for (pattern, dropout) in [
            (MaskPattern::All, dropouts()[0]),
            (MaskPattern::All, dropouts()[1]),
            (MaskPattern::Arbitrary, dropouts()[1]),
        ] {
            let setting =
                Setting { queries: queries.clone(), keys: keys.clone(), heads: 3, pattern, dropout };
            let name =
                format!("cross attention {queries:?} to {keys:?} {pattern:?} dropout {}", !dropout.is_none());
            cases.push(cross_attention(name, setting, 33, 21));
        }
    }
    // New queries at the end of longer keys: decoding with a cache.
    let (queries, keys) = (vec![1, 3], vec![9, 40]);
    let setting = Setting { queries, keys, heads: 1, pattern: MaskPattern::Causal, dropout: dropouts()[0] };
    cases.push(cross_attention("causal attention to cached keys".to_owned(), setting, 16, 16));
    // Widths and lengths with fast GPU kernels: within a warp, several warps, several blocks.
    for (pattern, dropout) in [
        (MaskPattern::All, dropouts()[1]),
        (MaskPattern::Causal, dropouts()[1]),
        (MaskPattern::CausalWindow(5), dropouts()[0]),
    ] {
        for head in [32, 64] {
            let lengths = vec![1, 17, 33, 70, 131, 5];
            let setting = Setting { queries: lengths.clone(), keys: lengths, heads: 2, pattern, dropout };
            let name = format!("attention of heads of {head} {pattern:?} dropout {}", !dropout.is_none());
            cases.push(self_attention(name, setting, 2 * head, 2 * head));
        }
    }
    // Heads that are wider than the tiles of the GPU kernels.
    for (pattern, dropout) in
        [(MaskPattern::All, dropouts()[1]), (MaskPattern::CausalWindow(5), dropouts()[0])]
    {
        let setting = Setting { queries: vec![1, 40], keys: vec![9, 45], heads: 1, pattern, dropout };
        cases.push(cross_attention(
            format!("attention of a head of 300 and 530 {pattern:?}"),
            setting,
            300,
            530,
        ));
        let setting = Setting { queries: vec![1, 40], keys: vec![1, 40], heads: 2, pattern, dropout };
        cases.push(self_attention(
            format!("attention of heads of 260 and 70 {pattern:?}"),
            setting,
            520,
            140,
        ));
    }
    cases.extend(single_queries());
    cases
}

/// One query per sequence, which has its own GPU kernels: rows aligned to 16 bytes and unaligned rows, and
/// more keys than the kernel keeps weights for.
fn single_queries() -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, (keys, heads, [d_k, between, d_v])) in [
        (vec![42, 1, 70, 8], 1, [512, 0, 512]),
        (vec![9, 45], 1, [300, 3, 530]),
        (vec![33, 300], 2, [520, 8, 144]),
        (vec![7, 1, 20], 3, [33, 1, 21]),
        (vec![2100, 3], 1, [8, 0, 16]),
        (vec![5], 1, [16, 0, 2304]),
    ]
    .into_iter()
    .enumerate()
    {
        for (index, pattern) in
            [MaskPattern::All, MaskPattern::Arbitrary, MaskPattern::Window(2)].into_iter().enumerate()
        {
            let dropout = dropouts()[(number + index) % 2];
            let queries = vec![1; keys.len()];
            let setting = Setting { queries, keys: keys.clone(), heads, pattern, dropout };
            let name = format!(
                "single queries to {keys:?} {heads} heads d_k {d_k} d_v {d_v} {pattern:?} dropout {}",
                !dropout.is_none()
            );
            cases.push(single_query(name, setting, [d_k, between, d_v]));
        }
    }
    cases
}

/// Queries, keys and values are columns of one tensor.
fn self_attention(name: String, setting: Setting, d_k: usize, d_v: usize) -> Case {
    let (rows, again) = (setting.queries.iter().sum(), setting.clone());
    let [q, k, v] = [0..d_k, d_k..2 * d_k, 2 * d_k..2 * d_k + d_v];
    let parts = [q.clone(), k.clone(), v.clone()];
    Case::new(
        name,
        move |run| {
            let part = |columns| ColumnView { tensor: run.x[0].clone(), columns };
            setting.forward(parts.clone().map(part))
        },
        move |m| {
            let part = |columns| m[0].columns(columns);
            again.reference(&part(q.clone()), &part(k.clone()), &part(v.clone()))
        },
    )
    .input(rows, 2 * d_k + d_v, Values::Within(1.0))
}

/// Queries are one tensor; keys and values are in another, with unused columns between them.
fn cross_attention(name: String, setting: Setting, d_k: usize, d_v: usize) -> Case {
    let (rows, key_rows, again) = (setting.queries.iter().sum(), setting.keys.iter().sum(), setting.clone());
    let (k, v) = (0..d_k, d_k + 3..d_k + 3 + d_v);
    let parts = [k.clone(), v.clone()];
    Case::new(
        name,
        move |run| {
            let [keys, values] =
                parts.clone().map(|columns| ColumnView { tensor: run.x[1].clone(), columns });
            setting.forward([ColumnView { tensor: run.x[0].clone(), columns: 0..d_k }, keys, values])
        },
        move |m| again.reference(&m[0], &m[1].columns(k.clone()), &m[1].columns(v.clone())),
    )
    .input(rows, d_k, Values::Within(1.0))
    .input(key_rows, d_k + 3 + d_v, Values::Within(1.0))
}

/// Like [`cross_attention`] for one query in each sequence, with `between` columns between keys and values.
fn single_query(name: String, setting: Setting, [d_k, between, d_v]: [usize; 3]) -> Case {
    let (rows, key_rows, again) = (setting.queries.len(), setting.keys.iter().sum(), setting.clone());
    let (k, v) = (0..d_k, d_k + between..d_k + between + d_v);
    let parts = [k.clone(), v.clone()];
    Case::new(
        name,
        move |run| {
            let [keys, values] =
                parts.clone().map(|columns| ColumnView { tensor: run.x[1].clone(), columns });
            setting.forward_single([ColumnView::whole(run.x[0].clone()), keys, values])
        },
        move |m| again.reference(&m[0], &m[1].columns(k.clone()), &m[1].columns(v.clone())),
    )
    .input(rows, d_k, Values::Within(1.0))
    .input(key_rows, d_k + between + d_v, Values::Within(1.0))
}
