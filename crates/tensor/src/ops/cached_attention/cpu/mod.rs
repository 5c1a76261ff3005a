//! One query, all heads: a cached row is read once, from its first element to its last.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod store;
mod uniform;

#[cfg(target_arch = "x86_64")]
use avx2 as vectors;
use half::bf16;
#[cfg(target_arch = "aarch64")]
use neon as vectors;

use super::{CachedAttentionOptions, KeyValueRows};
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use crate::cpu::isa::{self, Isa};
use crate::cpu::math::exp;
use crate::cpu::number::{self, Number, Numbers, NumbersMut, SharedNumbers};
use crate::cpu::simd::{LANES, Lanes, fold};
use crate::cpu::threads::parallel;
use crate::ops::ColumnView;
use crate::{Array, DType, Rounding};

pub(super) use store::{grown, write_rows};

/// Multiplications that make a task worthwhile.
const TASK: usize = 100_000;

/// `o = softmax(scale · q Kᵀ) V` for every query.
pub(super) fn attend(
    queries: &ColumnView,
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
        for (row, seen) in seen.iter().enumerate().skip(task * group).take(group) {
            let start = row * stride + queries.columns.start;
            workspace.load_query(all.part(start..start + options.key_width));
            workspace.attend(seen);
            let start = row * value_width;
            // SAFETY: every row belongs to one task.
            workspace.store_context(unsafe { out.slice(start..start + value_width) });
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

/// One task's scratch memory.
struct Workspace {
    sizes: Sizes,
    longest: usize,
    memory: Array,
    /// The offsets of the rows that a query sees.
    starts: Vec<usize>,
}

/// The buffers of a [`Workspace`].
pub(super) struct Buffers<'a> {
    /// Scaled.
    pub(super) query: &'a mut [f32],
    pub(super) context: &'a mut [f32],
    /// `[head][position]`, `stride` (a multiple of 16) apart.
    pub(super) weights: &'a mut [f32],
    pub(super) stride: usize,
}

impl Workspace {
    fn new(sizes: Sizes, longest: usize) -> Workspace {
        let len = sizes.heads * (sizes.d_k + sizes.d_v + longest.next_multiple_of(LANES));
        Workspace {
            sizes,
            longest,
            memory: Array::scratch(DType::F32, 1, len),
            starts: Vec::with_capacity(longest),
        }
    }

    fn buffers(&mut self) -> Buffers<'_> {
        let Sizes { heads, d_k, d_v, .. } = self.sizes;
        let (query, rest) = self.memory.f32_mut().split_at_mut(heads * d_k);
        let (context, weights) = rest.split_at_mut(heads * d_v);
        Buffers { query, context, weights, stride: self.longest.next_multiple_of(LANES) }
    }

    /// Loads and scales a query.
    fn load_query(&mut self, query: Numbers<'_>) {
        let (scale, to) = (self.sizes.scale, self.buffers().query);
        match query {
            Numbers::F32(query) => scaled(query, scale, to),
            Numbers::Bf16(query) => scaled(query, scale, to),
        }
    }

    /// Stores the context of a query.
    fn store_context(&mut self, out: NumbersMut<'_>) {
        let context = self.buffers().context;
        match out {
            NumbersMut::F32(out) => out.copy_from_slice(context),
            NumbersMut::Bf16(out) => rounded(context, out),
        }
    }

    /// The rows that the query sees must exist in their array.
    fn attend(&mut self, seen: &KeyValueRows<'_>) {
        let width = seen.array().width();
        let mut starts = std::mem::take(&mut self.starts);
        starts.clear();
        starts.extend((0..seen.len()).map(|position| seen.row(position) * width));
        self.attend_to(Numbers::of(seen.array()), &starts);
        self.starts = starts;
    }

    fn attend_to(&mut self, values: Numbers<'_>, starts: &[usize]) {
        let sizes = self.sizes;
        let mut buffers = self.buffers();
        #[cfg(target_arch = "x86_64")]
        if avx512_fits(sizes) {
            let stored = avx512::Stored { values, starts };
            // SAFETY: `avx512_fits` has checked AVX-512 and the head widths, and the rows have been checked.
            return unsafe { avx512::attend(stored, sizes, &mut buffers) };
        }
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        if vectors_fit(sizes) {
            // SAFETY: `vectors_fit` has checked the instruction set and the head widths, and the rows have been
            // checked.
            unsafe { vectors::score(values, starts, sizes, &mut buffers) };
            softmax(starts.len(), sizes, &mut buffers);
            // SAFETY: as above.
            return unsafe { vectors::weighted_sum(values, starts, sizes, &mut buffers) };
        }
        match values {
            Numbers::F32(stored) => attend_plainly(stored, starts, sizes, &mut buffers),
            Numbers::Bf16(stored) => attend_plainly(stored, starts, sizes, &mut buffers),
        }
    }
}

fn attend_plainly<T: Number>(stored: &[T], starts: &[usize], sizes: Sizes, buffers: &mut Buffers<'_>) {
    score(stored, starts, sizes, buffers);
    softmax(starts.len(), sizes, buffers);
    weighted_sum(stored, starts, sizes, buffers);
}

/// `P = softmax(S)` for the first `count` positions.
fn softmax(count: usize, Sizes { heads, rounding, .. }: Sizes, buffers: &mut Buffers<'_>) {
    match rounding {
        Rounding::Fused => fused_softmax(heads, count, buffers),
        Rounding::Uniform => uniform::softmax_of_heads(heads, count, buffers),
    }
}

#[cfg(target_arch = "x86_64")]
fn avx512_fits(Sizes { d_k, d_v, .. }: Sizes) -> bool {
    let available = matches!(isa::current(), Isa::Amx | Isa::Avx512);
    available && d_k.is_multiple_of(LANES) && d_v.is_multiple_of(LANES)
}

/// Whether the heads suit `vectors`.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn vectors_fit(Sizes { d_k, d_v, .. }: Sizes) -> bool {
    isa::current() != Isa::Portable && d_k.is_multiple_of(LANES) && d_v.is_multiple_of(LANES)
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
    fn fused_softmax(heads: usize, count: usize, buffers: &mut Buffers<'_>) {
        for weights in buffers.weights.chunks_exact_mut(buffers.stride).take(heads) {
            let weights = &mut weights[..count];
            let top = number::max(weights);
            for weight in &mut *weights {
                *weight = exp(*weight - top);
            }
            let share = 1.0 / weights.iter().sum::<f32>();
            for weight in weights {
                *weight *= share;
            }
        }
    }
}

kernel! {
    /// `S = q Kᵀ` with a scaled query.
    fn score<T: Number>(stored: &[T], starts: &[usize], sizes: Sizes, buffers: &mut Buffers<'_>) {
        let Sizes { heads, d_k, .. } = sizes;
        let (key_width, stride) = (heads * d_k, buffers.stride);
        for (position, &start) in starts.iter().enumerate() {
            let key = &stored[start..start + key_width];
            let queries = buffers.query.chunks_exact(d_k);
            for (head, (query, key)) in queries.zip(key.chunks_exact(d_k)).enumerate() {
                // Clamped to finite values: ∞ − ∞ would be NaN.
                buffers.weights[head * stride + position] = dot(query, key).clamp(f32::MIN, f32::MAX);
            }
        }
    }
}

kernel! {
    /// `o = P V`.
    fn weighted_sum<T: Number>(stored: &[T], starts: &[usize], sizes: Sizes, buffers: &mut Buffers<'_>) {
        let Sizes { heads, d_k, d_v, .. } = sizes;
        let Buffers { context, weights, stride, .. } = buffers;
        let (key_width, stride) = (heads * d_k, *stride);
        context.fill(0.0);
        for (position, &start) in starts.iter().enumerate() {
            let value = &stored[start + key_width..start + key_width + heads * d_v];
            let contexts = context.chunks_exact_mut(d_v);
            for (head, (context, value)) in contexts.zip(value.chunks_exact(d_v)).enumerate() {
                let weight = weights[head * stride + position];
                for (context, value) in context.iter_mut().zip(value) {
                    *context += weight * value.wide();
                }
            }
        }
    }
}

/// `q · k`, sixteen partial sums and a remainder.
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
