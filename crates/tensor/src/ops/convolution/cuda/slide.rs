//! Windows that shift by one token.

use super::{MAX_DILATION, MODULE};
use crate::cuda::{Blocks, Pointer, upload};
use crate::{Array, Device};

/// No parent, as in the kernels' source.
const NONE: u32 = u32::MAX;

/// The windows of `slots` tokens that follow the previous step's windows `before`.
pub(in crate::ops::convolution) fn slide(
    before: Option<&Array>,
    parents: &[Option<usize>],
    newest: &Array,
    slots: usize,
) -> Array {
    let width = newest.width();
    let windows = Array::scratch_on(Device::Cuda, newest.dtype(), newest.rows(), slots * width);
    let parents: Vec<u32> = parents.iter().map(|parent| parent.map_or(NONE, |row| row as u32)).collect();
    let parents = upload(&parents);
    let function = MODULE.function(format!("slide_{}", newest.dtype().bytes()));
    let seen = before.map_or(Pointer::NULL, Array::pointer);
    let before_slots = before.map_or(0, |before| before.width() / width.max(1)) as u32;
    let (blocks, n) = (Blocks::for_each(windows.len()), windows.len() as u64);
    let (newest, to, slots) = (newest.pointer(), windows.pointer(), slots as u32);
    launch!(function, blocks, seen, parents.pointer(), newest, to, width as u32, before_slots, slots, n);
    windows
}

/// Every `dilation`-th of the newest tokens, `taps` of them.
pub(in crate::ops::convolution) fn dilated(
    slots: &Array,
    width: usize,
    taps: usize,
    dilation: usize,
) -> Array {
    let windows = Array::scratch_on(Device::Cuda, slots.dtype(), slots.rows(), taps * width);
    let function = MODULE.function(format!("dilated_{}", slots.dtype().bytes()));
    let (blocks, n) = (Blocks::for_each(windows.len()), windows.len() as u64);
    let [width, count, taps] = [width, slots.width() / width, taps].map(|size| size as u32);
    let dilation = dilation.min(MAX_DILATION) as u64;
    launch!(function, blocks, slots.pointer(), windows.pointer(), width, count, taps, dilation, n);
    windows
}
