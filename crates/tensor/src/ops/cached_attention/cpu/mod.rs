//! One query or a few that see the same, all heads: a stored row is read once, from its first number to its last.

#[cfg(target_arch = "x86_64")]
mod avx512;
mod store;
mod uniform;

use half::bf16;

use super::{CachedAttentionOptions, KeyValueRows};
#[cfg(target_arch = "x86_64")]
use crate::cpu::isa::{self, Isa};
use crate::cpu::math::exp;
use crate::cpu::number::{self, Number, Numbers, NumbersMut, SharedNumbers};
use crate::cpu::simd::{LANES, Lanes, fold};
use crate::cpu::threads::parallel;
use crate::ops::Part;
use crate::{Array, DType, Rounding};

pub(super) use store::{grown, write_rows};

/// Multiplications that are worth a task.
const TASK: usize = 100_000;

/// `o = softmax(scale · q Kᵀ) V` for every query.
pub(super) fn attend(
    queries: &Part,
    seen: &[KeyValueRows<'_>],
    options: CachedAttentionOptions,
    value_width: usize,
) -> Array {
    let rows = queries.tensor.rows();
    let mut context = Array::scratch(queries.tensor.dtype(), rows, value_width);
    let sizes = Sizes {
        heads: options.heads,
        d_k: options.key_width / options.heads,
        d_v: value_width / options.heads,
        scale: options.scale,
        rounding: options.rounding,
    };
    let work: usize = seen.iter().map(|seen| seen.len() * (options.key_width + value_width)).sum();
    let group = (rows * TASK / work.max(1)).clamp(1, rows.max(1));
    let longest = seen.iter().map(KeyValueRows::len).max().unwrap_or(0);
    let out = SharedNumbers::of(&mut context);
    let (all, stride) = (Numbers::of(queries.tensor.array()), queries.tensor.width());
    parallel(rows.div_ceil(group), |task| {
        let mut workspace = Workspace::new(sizes, longest);
        let (mut row, end) = (task * group, ((task + 1) * group).min(rows));
        while row < end {
            let together = sizes.together(&seen[row..end]);
            for place in 0..together {
                let start = (row + place) * stride + queries.columns.start;
                workspace.take(place, all.part(start..start + options.key_width));
            }
            workspace.attend(together, &seen[row]);
            for place in 0..together {
                let start = (row + place) * value_width;
                // SAFETY: every row belongs to one task.
                workspace.give(place, unsafe { out.slice(start..start + value_width) });
            }
            row += together;
        }
    });
    context
}

#[derive(Clone, Copy)]
pub(super) struct Sizes {
    pub(super) heads: usize,
    pub(super) d_k: usize,
    pub(super) d_v: usize,
    pub(super) scale: f32,
    pub(super) rounding: Rounding,
}

impl Sizes {
    /// How many of these queries, from the first on, are computed together: they must see the same rows.
    fn together(self, seen: &[KeyValueRows<'_>]) -> usize {
        let same = seen.iter().take(TOGETHER).take_while(|other| other.is_same_range(&seen[0])).count();
        match same {
            #[cfg(target_arch = "x86_64")]
            2.. if avx512_fits(self) => same - same % 2,
            _ => 1,
        }
    }
}

/// Queries that are computed together at most.
const TOGETHER: usize = 4;

/// One task's scratch memory.
struct Workspace {
    sizes: Sizes,
    longest: usize,
    memory: Array,
    /// Where the rows that a query sees begin.
    starts: Vec<usize>,
}

/// The parts of a [`Workspace`].
pub(super) struct Parts<'a> {
    /// Scaled, one query after the other.
    pub(super) query: &'a mut [f32],
    pub(super) context: &'a mut [f32],
    /// `[query][head][position]`, `stride` (a multiple of 16) apart.
    pub(super) weights: &'a mut [f32],
    pub(super) stride: usize,
}

impl Workspace {
    fn new(sizes: Sizes, longest: usize) -> Workspace {
        let len = sizes.heads * (sizes.d_k + sizes.d_v + longest.next_multiple_of(LANES));
        Workspace {
            sizes,
            longest,
            memory: Array::scratch(DType::F32, TOGETHER, len),
            starts: Vec::with_capacity(longest),
        }
    }

    fn parts(&mut self) -> Parts<'_> {
        let Sizes { heads, d_k, d_v, .. } = self.sizes;
        let (query, rest) = self.memory.f32_mut().split_at_mut(TOGETHER * heads * d_k);
        let (context, weights) = rest.split_at_mut(TOGETHER * heads * d_v);
        Parts { query, context, weights, stride: self.longest.next_multiple_of(LANES) }
    }

    /// Takes a query.
    fn take(&mut self, place: usize, query: Numbers<'_>) {
        let Sizes { heads, d_k, scale, .. } = self.sizes;
        let to = &mut self.parts().query[place * heads * d_k..(place + 1) * heads * d_k];
        match query {
            Numbers::F32(query) => scaled(query, scale, to),
            Numbers::Bf16(query) => scaled(query, scale, to),
        }
    }

    /// Gives the context of a query.
    fn give(&mut self, place: usize, out: NumbersMut<'_>) {
        let Sizes { heads, d_v, .. } = self.sizes;
        let context = &self.parts().context[place * heads * d_v..(place + 1) * heads * d_v];
        match out {
            NumbersMut::F32(out) => out.copy_from_slice(context),
            NumbersMut::Bf16(out) => rounded(context, out),
        }
    }

    /// The first `together` queries; the rows that they see must be rows of their array.
    fn attend(&mut self, together: usize, seen: &KeyValueRows<'_>) {
        let width = seen.array().width();
        let mut starts = std::mem::take(&mut self.starts);
        starts.clear();
        starts.extend((0..seen.len()).map(|position| seen.row(position) * width));
        self.attend_to(together, Numbers::of(seen.array()), &starts);
        self.starts = starts;
    }

    fn attend_to(&mut self, together: usize, values: Numbers<'_>, starts: &[usize]) {
        let sizes = self.sizes;
        let mut parts = self.parts();
        #[cfg(target_arch = "x86_64")]
        if avx512_fits(sizes) {
            let stored = avx512::Stored { values, starts };
            // SAFETY: AVX-512 is there for such heads, and the rows were found to be there.
            return unsafe {
                match together {
                    4 => avx512::attend::<4>(stored, sizes, &mut parts),
                    2 => avx512::attend::<2>(stored, sizes, &mut parts),
                    _ => avx512::attend::<1>(stored, sizes, &mut parts),
                }
            };
        }
        debug_assert_eq!(together, 1);
        let Sizes { heads, d_k, d_v, .. } = sizes;
        parts.query = &mut parts.query[..heads * d_k];
        parts.context = &mut parts.context[..heads * d_v];
        match (values, sizes.rounding) {
            (Numbers::F32(stored), Rounding::Uniform) => uniform::attend(stored, starts, sizes, &mut parts),
            (Numbers::Bf16(stored), Rounding::Uniform) => uniform::attend(stored, starts, sizes, &mut parts),
            (Numbers::F32(stored), Rounding::Fused) => attend_query(stored, starts, sizes, &mut parts),
            (Numbers::Bf16(stored), Rounding::Fused) => attend_query(stored, starts, sizes, &mut parts),
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn avx512_fits(Sizes { d_k, d_v, .. }: Sizes) -> bool {
    let there = matches!(isa::current(), Isa::Amx | Isa::Avx512);
    there && d_k.is_multiple_of(LANES) && d_v.is_multiple_of(LANES)
}

kernel! {
    fn scaled<T: Number>(query: &[T], scale: f32, out: &mut [f32]) {
        for (out, query) in out.iter_mut().zip(query) {
            *out = query.wide() * scale;
        }
    }
}

kernel! {
    fn rounded(context: &[f32], out: &mut [bf16]) {
        number::copy(context, out);
    }
}

kernel! {
    fn attend_query<T: Number>(stored: &[T], starts: &[usize], sizes: Sizes, parts: &mut Parts<'_>) {
        score(stored, starts, sizes, parts);

        // P = softmax(S)
        for weights in parts.weights.chunks_exact_mut(parts.stride).take(sizes.heads) {
            let weights = &mut weights[..starts.len()];
            let top = number::max(weights);
            for weight in &mut *weights {
                *weight = exp(*weight - top);
            }
            let share = 1.0 / weights.iter().sum::<f32>();
            for weight in weights {
                *weight *= share;
            }
        }

        mix(stored, starts, sizes, parts);
    }
}

/// `S = q Kᵀ`, the query being scaled.
#[inline(always)]
fn score<T: Number>(stored: &[T], starts: &[usize], sizes: Sizes, parts: &mut Parts<'_>) {
    let Sizes { heads, d_k, .. } = sizes;
    let (key_width, stride) = (heads * d_k, parts.stride);
    for (position, &start) in starts.iter().enumerate() {
        let key = &stored[start..start + key_width];
        for (head, (query, key)) in parts.query.chunks_exact(d_k).zip(key.chunks_exact(d_k)).enumerate() {
            // Finite even if the sum overflowed: ∞ − ∞ is no number.
            parts.weights[head * stride + position] = dot(query, key).clamp(f32::MIN, f32::MAX);
        }
    }
}

/// `o = P V`.
#[inline(always)]
fn mix<T: Number>(stored: &[T], starts: &[usize], sizes: Sizes, parts: &mut Parts<'_>) {
    let Sizes { heads, d_k, d_v, .. } = sizes;
    let Parts { context, weights, stride, .. } = parts;
    let (key_width, stride) = (heads * d_k, *stride);
    context.fill(0.0);
    for (position, &start) in starts.iter().enumerate() {
        let value = &stored[start + key_width..start + key_width + heads * d_v];
        for (head, (context, value)) in context.chunks_exact_mut(d_v).zip(value.chunks_exact(d_v)).enumerate()
        {
            let weight = weights[head * stride + position];
            for (context, value) in context.iter_mut().zip(value) {
                *context += weight * value.wide();
            }
        }
    }
}

/// `q · k`, sixteen partial sums and what is left over.
#[inline(always)]
fn dot<T: Number>(query: &[f32], key: &[T]) -> f32 {
    let mut sums: Lanes = [0.0; LANES];
    let ((query, query_rest), (key, key_rest)) = (query.as_chunks::<LANES>(), key.as_chunks::<LANES>());
    for (query, key) in query.iter().zip(key) {
        for lane in 0..LANES {
            sums[lane] += query[lane] * key[lane].wide();
        }
    }
    for (lane, (query, key)) in query_rest.iter().zip(key_rest).enumerate() {
        sums[lane] += query * key.wide();
    }
    fold(sums, |a, b| a + b)
}
