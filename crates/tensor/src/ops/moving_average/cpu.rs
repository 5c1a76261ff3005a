//! The average over the flat vector, in chunks on all threads.

use crate::Array;
use crate::collective::OwnedChunk;
use crate::cpu::threads::{SharedMut, parallel};

/// `values += gain (params − values)`, for the chunks that this process owns.
pub(super) fn update(values: &mut Array, params: &Array, chunks: &[OwnedChunk], gain: f32) {
    let (params, values) = (params.f32(), SharedMut::new(values.f32_mut()));
    parallel(chunks.len(), |task| {
        let OwnedChunk { range, packed, .. } = &chunks[task];
        // SAFETY: chunks are disjoint.
        let values = unsafe { values.slice(*packed..packed + range.len()) };
        update_chunk(values, &params[range.clone()], gain);
    });
}

pub(super) fn copy(from: &Array, to: &mut Array) {
    to.f32_mut().copy_from_slice(from.f32());
}

pub(super) fn swap(a: &mut Array, b: &mut Array) {
    a.f32_mut().swap_with_slice(b.f32_mut());
}

kernel! {
    fn update_chunk(values: &mut [f32], params: &[f32], gain: f32) {
        let values = &mut values[..params.len()];
        for i in 0..params.len() {
            values[i] += gain * (params[i] - values[i]);
        }
    }
}
