//! Gathers rows of a table on the GPU, and sums gradients back into it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytemuck::NoUninit;

use super::{EmbeddingOptions, Positions, SinusoidLayout, sinusoid};
use crate::array::Write;
use crate::cuda::{
    Blocks, Buffer, DropoutArgument, Module, Pointer, on_side_stream, round_up_to_bucket, submit_before_step,
    upload, upload_bucketed,
};
use crate::ops::elementwise::cuda::by_target;
use crate::random::Dropout;
use crate::{Array, DType, Device, Param};

pub(crate) static MODULE: Module = Module::new("embedding", include_str!("cuda.cu"));

/// Tokens that one block sums; a frequent token has several such groups.
const GROUP: usize = 32;

/// As in the kernels' source.
#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Gather {
    ids: Pointer,
    positions: Pointer,
    table: Pointer,
    added: Pointer,
    y: Pointer,
    narrow: Pointer,
    dropout: Pointer,
    tokens: u32,
    width: u32,
    scale: f32,
    unused: u32,
}

/// As in the kernels' source.
#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Scatter {
    g: Pointer,
    tokens: Pointer,
    groups: Pointer,
    out: Pointer,
    partial: Pointer,
    dropout: Pointer,
    counts: Pointer,
    width: u32,
    scale: f32,
}

/// The embeddings of all tokens, and their bf16 copy if the compute type is bf16.
pub(super) fn forward(
    ids: &[u32],
    positions: &[usize],
    table: &Param,
    options: EmbeddingOptions<'_>,
) -> (Array, Option<Array>) {
    let (tokens, width) = (ids.len(), table.shape()[1]);
    let y = Array::scratch_on(Device::Cuda, DType::F32, tokens, width);
    let bf16 = options.compute.dtype() == DType::Bf16;
    let narrow = bf16.then(|| Array::scratch_on(Device::Cuda, DType::Bf16, tokens, width));
    let end = positions.iter().max().map_or(0, |last| last + 1);
    let sinusoids = match options.positions {
        Positions::Sinusoidal(layout) => Some(cached_sinusoids(layout, width, end)),
        _ => None,
    };
    let added = match options.positions {
        Positions::Learned(param) => param.operand(DType::F32).pointer,
        _ => sinusoids.as_ref().map_or(Pointer::NULL, |table| table.pointer()),
    };
    let positions: Vec<u32> = positions.iter().map(|&position| position as u32).collect();
    let (ids, positions) = (upload(ids), upload(&positions));
    let dropout = DropoutArgument::of(options.dropout);
    let job = Gather {
        ids: ids.pointer(),
        positions: positions.pointer(),
        table: table.operand(DType::F32).pointer,
        added,
        y: y.pointer(),
        narrow: narrow.as_ref().map_or(Pointer::NULL, Array::pointer),
        dropout: dropout.pointer(),
        tokens: tokens as u32,
        width: width as u32,
        scale: options.scale,
        unused: 0,
    };
    launch!(MODULE.function("gather"), Blocks::of(tokens.div_ceil(4), 128), job);
    (y, narrow)
}

/// The sinusoidal encodings of the first positions, on the GPU. They are cached for the following steps.
fn cached_sinusoids(layout: SinusoidLayout, width: usize, positions: usize) -> Arc<Buffer> {
    /// By layout and width: the number of positions, and their encodings.
    type Cache = HashMap<(SinusoidLayout, usize), (usize, Arc<Buffer>)>;
    static CACHE: Mutex<Option<Cache>> = Mutex::new(None);
    // If a thread panicked because memory ran out, the cached tables are still valid.
    let lock = || CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    let cached = |cache: &Option<Cache>| {
        let (longest, table) = cache.as_ref()?.get(&(layout, width))?;
        (*longest >= positions).then(|| table.clone())
    };
    if let Some(table) = cached(&lock()) {
        return table;
    }
    let longest = positions.next_power_of_two().max(256);
    let values = sinusoid::table(layout, width, longest);
    // Not under the lock: allocating may wait for another thread's step, which may need this lock.
    let table = submit_before_step(|| {
        let mut buffer = Buffer::new(4 * values.len());
        buffer.write(bytemuck::cast_slice(&values));
        Arc::new(buffer)
    });
    let mut cache = lock();
    cached(&cache).unwrap_or_else(|| {
        cache.get_or_insert_default().insert((layout, width), (longest, table.clone()));
        table
    })
}

/// Adds `scale · g_t · dropout factor` to row `rows[t]` of a parameter's gradient, on a side stream: the
/// gradient is not read before the end of the step.
pub(super) fn scatter(g: &Arc<Array>, rows: &[usize], scale: f32, dropout: Dropout, param: &Param) {
    let groups = TokenGroups::of(rows, param.shape()[0]);
    let partial =
        Array::scratch_on(Device::Cuda, DType::F32, round_up_to_bucket(groups.partials), param.shape()[1]);
    on_side_stream((g.clone(), partial), |(g, partial)| {
        scatter_groups(g, partial, &groups, scale, dropout, param);
    });
}

fn scatter_groups(
    g: &Array,
    partial: &Array,
    token_groups: &TokenGroups,
    scale: f32,
    dropout: Dropout,
    param: &Param,
) {
    let [height, width] = param.shape();
    let mut slot = param.gradient_slot();
    let (out, write) = slot.on_gpu();
    if write == Write::Over {
        crate::cuda::clear(out, height * width * 4);
    }
    let (tokens, groups, long) = (
        upload(&token_groups.tokens),
        upload_bucketed(&token_groups.groups),
        upload_bucketed(&token_groups.long),
    );
    let counts = upload(&[token_groups.groups.len() as u32, token_groups.long.len() as u32]);
    let dropout = DropoutArgument::of(dropout);
    let job = Scatter {
        g: g.pointer(),
        tokens: tokens.pointer(),
        groups: groups.pointer(),
        out,
        partial: partial.pointer(),
        dropout: dropout.pointer(),
        counts: counts.pointer(),
        width: width as u32,
        scale,
    };
    // Four columns for each thread.
    let threads = width.div_ceil(4).next_multiple_of(32).min(128);
    let blocks = |count: usize| Blocks { grid: [count, width.div_ceil(4 * threads), 1], threads, shared: 0 };
    launch!(MODULE.function("scatter"), blocks(round_up_to_bucket(token_groups.groups.len())), job);
    let (function, blocks) =
        (MODULE.function("add_partials"), blocks(round_up_to_bucket(token_groups.long.len())));
    launch!(function, blocks, partial.pointer(), long.pointer(), out, counts.pointer(), width as u32);
}

/// Tokens sorted by their row of the table, in groups of at most [`GROUP`].
struct TokenGroups {
    tokens: Vec<u32>,
    /// Begin and end among the tokens, row, index of the partial sum counted from 1, or 0 for none.
    groups: Vec<[u32; 4]>,
    /// Rows with several groups: begin and end of their partial sums, row.
    long: Vec<[u32; 3]>,
    partials: usize,
}

impl TokenGroups {
    /// Tokens of one row keep their order. Tokens without a row ([`super::NO_TOKEN`]) are left out; the list
    /// keeps its length.
    fn of(rows: &[usize], height: usize) -> TokenGroups {
        let (starts, mut tokens) = by_target(rows, height);
        tokens.resize(rows.len(), 0);
        let (mut groups, mut long, mut partials) = (Vec::new(), Vec::new(), 0);
        for row in 0..height {
            let (start, end) = (starts[row], starts[row + 1]);
            let is_long = (end - start) as usize > GROUP;
            let first_partial = partials;
            for start in (start..end).step_by(GROUP) {
                partials += u32::from(is_long);
                let partial = if is_long { partials } else { 0 };
                groups.push([start, (start + GROUP as u32).min(end), row as u32, partial]);
            }
            if is_long {
                long.push([first_partial, partials, row as u32]);
            }
        }
        TokenGroups { tokens, groups, long, partials: partials as usize }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_token_is_in_one_group_of_its_row() {
        let rows: Vec<usize> = (0..200).map(|i| if i % 3 == 0 { 4 } else { i * 7 % 11 }).collect();
        let all = TokenGroups::of(&rows, 12);
        let mut seen = vec![0; rows.len()];
        for &[start, end, row, partial] in &all.groups {
            let tokens = &all.tokens[start as usize..end as usize];
            assert!(tokens.len() <= GROUP && tokens.is_sorted());
            tokens.iter().for_each(|&token| {
                seen[token as usize] += 1;
                assert_eq!(rows[token as usize], row as usize);
            });
            assert_eq!(partial > 0, all.long.iter().any(|long| long[2] == row));
        }
        assert!(seen.iter().all(|&times| times == 1));
        assert_eq!(all.long, [[0, all.partials as u32, 4]]);
    }
}
