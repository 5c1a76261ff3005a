//! Sequences of one query each: a block for each head of each sequence, forward and backward.

use super::{Argument, Call};
use crate::cuda::{Blocks, Module, Pointer, round_up_to_bucket};

pub(crate) static SINGLE: Module = Module::with_pdl(
    "attention_single",
    concat!(include_str!("layout.cu"), include_str!("generic/pair.cu"), include_str!("generic/single.cu")),
);

pub(super) fn launch(call: &Call<'_>, pass: &str) {
    let dtype = call.problem.inputs[0].0.dtype();
    let list = call.work.generic(0);
    let argument = call.with_list(list);
    // Vectorized by 16 bytes if everything is aligned.
    let suffix = if is_aligned(&argument, 16 / dtype.bytes()) { "_16" } else { "" };
    let name = format!("attention_single_{pass}_{dtype}{suffix}");
    let blocks =
        Blocks { grid: [round_up_to_bucket(list.kinds[0]), call.problem.heads, 1], threads: 256, shared: 0 };
    launch!(SINGLE.function(name), blocks, argument);
}

/// Whether every row and head begins at a multiple of 16 bytes, which are `elements` elements.
fn is_aligned(argument: &Argument, elements: usize) -> bool {
    let Argument { q, k, v, o, d_o, dq, dk, dv, .. } = *argument;
    let Argument { q_stride, k_stride, v_stride, o_stride, dq_stride, dk_stride, dv_stride, .. } = *argument;
    let Argument { d_k, d_v, .. } = *argument;
    let steps = [q_stride, k_stride, v_stride, o_stride, dq_stride, dk_stride, dv_stride, d_k, d_v];
    [q, k, v, o, d_o, dq, dk, dv].into_iter().all(|Pointer(address)| address % 16 == 0)
        && steps.into_iter().all(|step| (step as usize).is_multiple_of(elements))
}
