//! The gradients of all parameters, in the order of the values, in memory that is allocated only while they
//! exist.
//!
//! They are stored in segments of a few parameters each. A segment is taken from the pool when a backward
//! pass first writes into it, and returned with the update. During the forward pass, while saved activations
//! accumulate, there are no gradients; during the backward pass a layer's segment takes the memory of
//! activations that later layers have freed.

mod slot;

use std::ops::Range;
use std::sync::OnceLock;

use super::Entry;
use super::batch_sums::GradientSum;
use super::overlapped_reduction::OverlappedReduction;
use crate::array::cuda::{PartialSums, reduce_partial_sums};
use crate::collective::CHUNK;
use crate::collective::gpus::sum_over_gpus;
use crate::cpu::threads::{SharedMut, parallel};
use crate::cuda;
use crate::{Array, DType, Device};

pub(crate) use slot::GradientSlot;

/// Maximum elements of a segment, unless one parameter has more: 16 MiB, about a layer of the paper's base
/// model. Small segments fit more often between activations; large ones have fewer boundaries for the
/// optimizer.
const SEGMENT: usize = 4 << 20;

/// As long as the flat vector of values, though seldom all allocated.
pub(crate) struct FlatGradients {
    segments: Vec<Segment>,
    /// On the GPU all gradients are allocated at first use and stay, because a recorded step needs fixed
    /// addresses. An inference model has none.
    gpu: Option<OnceLock<Array>>,
    /// Column sums that the GPU has not reduced yet, with the index of their parameter.
    sums: Vec<(usize, PartialSums)>,
    /// Sums reduced early because a parameter got more than one: the side stream may still read them.
    joined: Vec<PartialSums>,
    /// Per parameter: false until backward has written it since the last update. The first write overwrites,
    /// so nothing needs to be cleared.
    written: Vec<bool>,
    /// Per parameter: number of writes in this backward pass.
    writes: Vec<u32>,
    /// The same for the previous pass, if any.
    previous_writes: Option<Vec<u32>>,
    overlapped: Option<OverlappedReduction>,
}

/// The gradients of some adjacent parameters.
struct Segment {
    /// Its range in the flat order, with the alignment padding behind its last parameter.
    range: Range<usize>,
    /// `None` while nothing has been written since the last update.
    array: Option<Array>,
}

impl FlatGradients {
    pub(super) fn new(entries: &[Entry]) -> FlatGradients {
        let mut segments: Vec<Segment> = Vec::new();
        for entry in entries {
            let Range { start, end } = entry.range();
            match segments.last_mut() {
                Some(last) if end - last.range.start <= SEGMENT => last.range.end = end,
                last => {
                    if let Some(last) = last {
                        last.range.end = start;
                    }
                    segments.push(Segment { range: start..end, array: None });
                }
            }
        }
        FlatGradients {
            segments,
            gpu: None,
            sums: Vec::new(),
            joined: Vec::new(),
            written: vec![false; entries.len()],
            writes: vec![0; entries.len()],
            previous_writes: None,
            overlapped: None,
        }
    }

    /// Frees all memory.
    pub(super) fn clear(&mut self) {
        self.begin_pass();
        self.overlapped = None;
        for segment in &mut self.segments {
            segment.array = None;
        }
    }

    /// Begins another pass: its first writes overwrite.
    fn begin_pass(&mut self) {
        self.written.fill(false);
        self.sums.clear();
        self.joined.clear();
        if self.writes.iter().any(|&writes| writes > 0) {
            let writes = vec![0; self.writes.len()];
            self.previous_writes = Some(std::mem::replace(&mut self.writes, writes));
        }
    }

    /// Drops all gradients and prepares for a device.
    pub(super) fn move_to(&mut self, device: Device) {
        self.clear();
        self.gpu = match device {
            Device::Cpu => None,
            Device::Cuda => Some(OnceLock::new()),
        };
    }

    /// The gradients on the GPU.
    pub(crate) fn on_gpu(&self) -> &Array {
        self.gpu().expect("parameters on the GPU have their gradients there")
    }

    fn gpu(&self) -> Option<&Array> {
        let zeros = || cuda::submit_before_step(|| Array::permanent_zeros_on(Device::Cuda, self.len()));
        self.gpu.as_ref().map(|gpu| gpu.get_or_init(zeros))
    }

    fn gpu_mut(&mut self) -> Option<&mut Array> {
        self.gpu();
        self.gpu.as_mut().and_then(OnceLock::get_mut)
    }

    /// Completes the gradients: parameters without a write since the last update, frozen ones, and alignment
    /// padding are set to zero.
    pub(super) fn complete(&mut self, entries: &[Entry], is_frozen: impl Fn(usize) -> bool) {
        self.reduce_deferred_sums();
        // The side stream is joined.
        self.joined.clear();
        let len = self.segments.last().map_or(0, |last| last.range.end);
        for (i, entry) in entries.iter().enumerate() {
            let was_written = std::mem::replace(&mut self.written[i], true) && !is_frozen(i);
            let start = if was_written { entry.range().end } else { entry.offset };
            let end = entries.get(i + 1).map_or(len, |next| next.offset);
            if let Some(gpu) = self.gpu() {
                // Alignment padding is zero from the start.
                if !was_written {
                    cuda::clear(gpu.pointer().offset(start * 4), (end - start) * 4);
                }
                continue;
            }
            let at = self.segment_of(entry.offset);
            self.segments[at].elements_mut(start..end).fill(0.0);
        }
    }

    /// Reduces all deferred column sums in one launch.
    fn reduce_deferred_sums(&mut self) {
        if self.gpu.is_some() {
            cuda::join_side_stream();
        }
        if !self.sums.is_empty() {
            let sums: Vec<PartialSums> = self.sums.drain(..).map(|(_, sums)| sums).collect();
            reduce_partial_sums(&sums);
            self.joined.extend(sums);
        }
    }

    /// Number of elements.
    pub(crate) fn len(&self) -> usize {
        self.segments.last().map_or(0, |last| last.range.end)
    }

    /// Calls `work` with the elements of `range`; a range across segments is copied first.
    pub(crate) fn with_range<R>(&self, range: Range<usize>, work: impl FnOnce(&[f32]) -> R) -> R {
        let first = &self.segments[self.segment_of(range.start)];
        if range.end <= first.range.end {
            return work(first.elements(range));
        }
        let mut joined = Array::scratch(DType::F32, 1, range.len());
        self.copy(range, joined.f32_mut());
        work(joined.f32())
    }

    /// Copies the elements of `range`.
    pub(super) fn copy(&self, range: Range<usize>, to: &mut [f32]) {
        if let Some(gpu) = self.gpu() {
            return to.copy_from_slice(&gpu.part_to_vec(range));
        }
        let first = range.start;
        self.for_each_part(range, |segment, part| {
            let to = &mut to[part.start - first..part.end - first];
            to.copy_from_slice(self.segments[segment].elements(part));
        });
    }

    /// Moves the gradients, which must be complete, out.
    pub(super) fn take(&mut self) -> GradientSum {
        let parts = match self.gpu() {
            Some(gpu) => vec![gpu.clone()],
            None => self.segments.iter_mut().filter_map(|segment| segment.array.take()).collect(),
        };
        self.begin_pass();
        GradientSum { parts }
    }

    /// Adds other gradients to these, which must be complete.
    pub(super) fn add(&mut self, sum: &GradientSum) {
        match self.gpu_mut() {
            Some(gpu) => gpu.add(&sum.parts[0]),
            None => {
                let segments = self.segments.iter_mut().filter_map(|segment| segment.array.as_mut());
                segments.zip(&sum.parts).for_each(|(array, part)| array.add(part));
            }
        }
    }

    /// All-reduces the gradients, which must be complete, over GPUs.
    pub(super) fn sum_over_gpus(&mut self, gpus: &cuda::Gpus) {
        sum_over_gpus(gpus, self.gpu_mut().expect("parameters on the GPU have their gradients there"));
    }

    /// From here on buckets are sent as soon as they are complete.
    pub(super) fn begin_overlapped_reduction(
        &mut self,
        overlapped: impl FnOnce(Option<Vec<u32>>) -> OverlappedReduction,
    ) {
        self.overlapped = Some(overlapped(self.previous_writes.clone()));
        self.send_ready();
    }

    /// Sends the remaining buckets; the gradients must be complete.
    pub(super) fn finish_overlapped_reduction(&mut self) -> OverlappedReduction {
        let mut overlapped = self.overlapped.take().expect("an overlapped reduction has begun");
        while let Some(bucket) = overlapped.next_unsent() {
            self.send(bucket, &mut overlapped);
        }
        overlapped
    }

    /// Records a finished write.
    fn record_write(&mut self, index: usize) {
        self.writes[index] += 1;
        if self.overlapped.as_mut().is_some_and(|overlapped| overlapped.record_write(index)) {
            self.send_ready();
        }
    }

    fn send_ready(&mut self) {
        let Some(mut overlapped) = self.overlapped.take() else { return };
        while let Some(bucket) = overlapped.next_ready() {
            for index in overlapped.parameters_in(bucket) {
                let was_written = std::mem::replace(&mut self.written[index], true);
                let (range, end) = overlapped.range_of(index);
                let start = if was_written && !overlapped.is_frozen(index) { range.end } else { range.start };
                let at = self.segment_of(range.start);
                self.segments[at].elements_mut(start..end).fill(0.0);
            }
            self.send(bucket, &mut overlapped);
        }
        self.overlapped = Some(overlapped);
    }

    fn send(&self, bucket: usize, overlapped: &mut OverlappedReduction) {
        let numbers = self.bucket(overlapped.reduction.sharding().bucket(bucket), &overlapped.sums);
        overlapped.reduction.send(bucket, numbers);
        overlapped.set_sent(bucket);
    }

    /// The elements of `range` plus those of earlier sums, newest first.
    pub(super) fn bucket(&self, range: Range<usize>, sums: &[GradientSum]) -> Array {
        let mut numbers = Array::scratch(DType::F32, 1, range.len());
        let shared = SharedMut::new(numbers.f32_mut());
        parallel(range.len().div_ceil(CHUNK), |task| {
            let here = task * CHUNK..((task + 1) * CHUNK).min(range.len());
            // SAFETY: chunks are disjoint.
            let numbers = unsafe { shared.slice(here.clone()) };
            let range = range.start + here.start..range.start + here.end;
            self.copy(range.clone(), numbers);
            for sum in sums.iter().rev() {
                self.for_each_part(range.clone(), |segment, part| {
                    let from = part.start - self.segments[segment].range.start;
                    let terms = &sum.parts[segment].f32()[from..from + part.len()];
                    let numbers = &mut numbers[part.start - range.start..][..part.len()];
                    numbers.iter_mut().zip(terms).for_each(|(number, term)| *number += term);
                });
            }
        });
        numbers
    }

    /// Splits a range at segment boundaries.
    fn for_each_part(&self, range: Range<usize>, mut work: impl FnMut(usize, Range<usize>)) {
        let mut start = range.start;
        while start < range.end {
            let segment = self.segment_of(start);
            let part = start..range.end.min(self.segments[segment].range.end);
            start = part.end;
            work(segment, part);
        }
    }

    fn segment_of(&self, offset: usize) -> usize {
        self.segments.partition_point(|segment| segment.range.end <= offset)
    }
}

impl Segment {
    fn elements(&self, range: Range<usize>) -> &[f32] {
        let array = self.array.as_ref().expect("gradients are completed before they are read");
        &array.f32()[range.start - self.range.start..range.end - self.range.start]
    }

    /// Uninitialised if the memory was just allocated.
    fn elements_mut(&mut self, range: Range<usize>) -> &mut [f32] {
        let array = self.array.get_or_insert_with(|| Array::scratch(DType::F32, 1, self.range.len()));
        &mut array.f32_mut()[range.start - self.range.start..range.end - self.range.start]
    }
}

#[cfg(test)]
mod tests {
    use crate::{Init, Params};

    #[test]
    fn gradients_of_several_segments_read_as_one_vector_with_zeros_where_nothing_was_written() {
        let params = Params::new(1);
        let sizes = [3, super::SEGMENT + 5, 7, super::SEGMENT - 100, 90, 33];
        let all: Vec<_> = (sizes.iter().enumerate())
            .map(|(i, &size)| params.add(&format!("p{i}"), 1, size, Init::Constant(1.0)))
            .collect();
        for _ in 0..2 {
            for (i, param) in all.iter().enumerate().filter(|(i, _)| i % 2 == 1) {
                param.gradient_slot().accumulate().fill(i as f32);
            }
            let mut expected = vec![0.0; params.flat_len()];
            for (i, param) in all.iter().enumerate().filter(|(i, _)| i % 2 == 1) {
                expected[param.range()].fill(i as f32);
            }
            assert!(params.gradients() == expected);
            let across = all[1].range().end - 10..all[3].range().start + 10;
            params.with_gradients(|gradients| {
                gradients.with_range(across.clone(), |part| assert_eq!(part, &expected[across.clone()]));
            });
            params.clear_gradients();
            // Another user of the memory leaves no trace.
            let other = crate::Array::from_f32(1, super::SEGMENT, &vec![9.0; super::SEGMENT]);
            assert!(params.gradients().iter().all(|&g| g == 0.0), "{other:?}");
            params.clear_gradients();
        }
    }
}
