//! Rows gathered from a table on the GPU, and gradients summed back into it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytemuck::NoUninit;

use super::{EmbeddingOptions, Positions, Waves, sinusoid};
use crate::array::Write;
use crate::cuda::{
    Blocks, Buffer, DropoutArgument, Module, Pointer, ahead, aside, roomy, upload, upload_list,
};
use crate::ops::elementwise::cuda::by_target;
use crate::random::Dropout;
use crate::{Array, DType, Device, Param};

pub(crate) static MODULE: Module = Module::new("embedding", include_str!("cuda.cu"));

/// Tokens that are summed one after the other: a frequent token has many groups of so many.
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

/// The vectors of all tokens, and their rounded form if products want it.
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
    let waves = match options.positions {
        Positions::Sinusoidal(kind) => Some(waves(kind, width, end)),
        _ => None,
    };
    let added = match options.positions {
        Positions::Learned(param) => param.operand(DType::F32).pointer,
        _ => waves.as_ref().map_or(Pointer::NULL, |waves| waves.pointer()),
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

/// The sinusoidal encodings of the first positions, on the GPU. They are kept: every step asks for them.
fn waves(kind: Waves, width: usize, positions: usize) -> Arc<Buffer> {
    /// By kind and width: how many positions there are, and their encodings.
    type Kept = HashMap<(Waves, usize), (usize, Arc<Buffer>)>;
    static WAVES: Mutex<Option<Kept>> = Mutex::new(None);
    // Where there is no memory for more of them, those that are there are as good as they were.
    let kept = || WAVES.lock().unwrap_or_else(PoisonError::into_inner);
    let known = |kept: &Option<Kept>| {
        let (longest, waves) = kept.as_ref()?.get(&(kind, width))?;
        (*longest >= positions).then(|| waves.clone())
    };
    if let Some(waves) = known(&kept()) {
        return waves;
    }
    let longest = positions.next_power_of_two().max(256);
    let table = sinusoid::table(kind, width, longest);
    // Not under the lock: to take memory is to wait for another thread's step, which may want them too.
    let waves = ahead(|| {
        let mut waves = Buffer::new(4 * table.len());
        waves.write(bytemuck::cast_slice(&table));
        Arc::new(waves)
    });
    let mut kept = kept();
    known(&kept).unwrap_or_else(|| {
        kept.get_or_insert_default().insert((kind, width), (longest, waves.clone()));
        waves
    })
}

/// Adds `scale · g_t · dropout factor` to row `rows[t]` of a parameter's gradient, which nobody reads before the end of the
/// step.
pub(super) fn scatter(g: &Arc<Array>, rows: &[usize], scale: f32, dropout: Dropout, param: &Param) {
    let order = Order::of(rows, param.shape()[0]);
    let partial = Array::scratch_on(Device::Cuda, DType::F32, roomy(order.partials), param.shape()[1]);
    aside((g.clone(), partial), |(g, partial)| scatter_in_order(g, partial, &order, scale, dropout, param));
}

fn scatter_in_order(g: &Array, partial: &Array, order: &Order, scale: f32, dropout: Dropout, param: &Param) {
    let [height, width] = param.shape();
    let mut slot = param.gradient_slot();
    let (out, write) = slot.on_gpu();
    if write == Write::Over {
        crate::cuda::clear(out, height * width * 4);
    }
    let (tokens, groups, long) =
        (upload(&order.tokens), upload_list(&order.groups), upload_list(&order.long));
    let counts = upload(&[order.groups.len() as u32, order.long.len() as u32]);
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
    launch!(MODULE.function("scatter"), blocks(roomy(order.groups.len())), job);
    let (function, blocks) = (MODULE.function("collect"), blocks(roomy(order.long.len())));
    launch!(function, blocks, partial.pointer(), long.pointer(), out, counts.pointer(), width as u32);
}

/// Tokens sorted by the row that they belong to.
struct Order {
    tokens: Vec<u32>,
    /// Begin and end among the tokens, row, place of the partial sum counted from 1 or 0 for none.
    groups: Vec<[u32; 4]>,
    /// Rows with several groups: begin and end of their partial sums, row.
    long: Vec<[u32; 3]>,
    partials: usize,
}

impl Order {
    /// Tokens of one row keep their order. Those without a row ([`super::NO_TOKEN`]) are left out, and only leave their
    /// room in the list.
    fn of(rows: &[usize], height: usize) -> Order {
        let (starts, mut tokens) = by_target(rows, height);
        tokens.resize(rows.len(), 0);
        let (mut groups, mut long, mut partials) = (Vec::new(), Vec::new(), 0);
        for row in 0..height {
            let (start, end) = (starts[row], starts[row + 1]);
            let is_long = (end - start) as usize > GROUP;
            let first_partial = partials;
            for start in (start..end).step_by(GROUP) {
                partials += u32::from(is_long);
                let place = if is_long { partials } else { 0 };
                groups.push([start, (start + GROUP as u32).min(end), row as u32, place]);
            }
            if is_long {
                long.push([first_partial, partials, row as u32]);
            }
        }
        Order { tokens, groups, long, partials: partials as usize }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_token_is_in_one_group_of_its_row() {
        let rows: Vec<usize> = (0..200).map(|i| if i % 3 == 0 { 4 } else { i * 7 % 11 }).collect();
        let order = Order::of(&rows, 12);
        let mut seen = vec![0; rows.len()];
        for &[start, end, row, place] in &order.groups {
            let tokens = &order.tokens[start as usize..end as usize];
            assert!(tokens.len() <= GROUP && tokens.is_sorted());
            tokens.iter().for_each(|&token| {
                seen[token as usize] += 1;
                assert_eq!(rows[token as usize], row as usize);
            });
            assert_eq!(place > 0, order.long.iter().any(|long| long[2] == row));
        }
        assert!(seen.iter().all(|&times| times == 1));
        assert_eq!(order.long, [[0, order.partials as u32, 4]]);
    }
}
