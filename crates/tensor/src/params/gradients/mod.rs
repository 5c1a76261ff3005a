//! The gradients of all parameters, in one order with the values, in memory that is there only while they are.
//!
//! They lie in segments of a few parameters each. A segment comes from the pool when a backward pass first writes into it
//! and goes back with the update. While a forward pass heaps up what it keeps there are no gradients, and on the way
//! back a layer's segment takes the place of what the layers after it had kept.

mod slot;

use std::ops::Range;
use std::sync::OnceLock;

use super::Entry;
use super::batch_sums::GradientSum;
use super::departure::Departure;
use crate::array::cuda::{PartialSums, reduce_partial_sums};
use crate::collective::CHUNK;
use crate::collective::gpus::sum_over_gpus;
use crate::cpu::threads::{SharedMut, parallel};
use crate::cuda;
use crate::{Array, DType, Device};

pub(crate) use slot::GradientSlot;

/// Numbers of a segment at most, unless one parameter has more: 16 MiB, about a layer of the paper's base model. Small
/// ones fit more often between activations, large ones are fewer borders for the optimizer to cross.
const SEGMENT: usize = 4 << 20;

/// As long as the flat vector of values, though seldom all there.
pub(crate) struct FlatGradients {
    segments: Vec<Segment>,
    /// On the GPU they are all there from their first use on: a recorded step must find them where they were. A model that
    /// only searches has none.
    gpu: Option<OnceLock<Array>>,
    /// PartialSums over rows that the GPU has not joined yet, and the parameters that they belong to.
    sums: Vec<(usize, PartialSums)>,
    /// What was joined already, because a parameter got more than one sum: the GPU may still read it, aside.
    joined: Vec<PartialSums>,
    /// Per parameter: false until backward has written it since the last update. The first writer overwrites, so
    /// nothing needs to be cleared.
    written: Vec<bool>,
    /// Per parameter: how often this backward pass has written it.
    writes: Vec<u32>,
    /// The same of the pass before, if there was one.
    usual_writes: Option<Vec<u32>>,
    departure: Option<Departure>,
}

/// The gradients of some neighbouring parameters.
struct Segment {
    /// Its place in the flat order, with the zeros of alignment behind the last parameter.
    range: Range<usize>,
    /// None while nothing has been written since the last update.
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
            usual_writes: None,
            departure: None,
        }
    }

    /// Gives all memory back.
    pub(super) fn clear(&mut self) {
        self.begin_pass();
        self.departure = None;
        for segment in &mut self.segments {
            segment.array = None;
        }
    }

    /// What is written from here on is another pass's.
    fn begin_pass(&mut self) {
        self.written.fill(false);
        self.sums.clear();
        self.joined.clear();
        if self.writes.iter().any(|&writes| writes > 0) {
            let writes = vec![0; self.writes.len()];
            self.usual_writes = Some(std::mem::replace(&mut self.writes, writes));
        }
    }

    /// Forgets all gradients and prepares for those of a device.
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

    /// Makes everything readable: what nobody has written since the last update is zero, and so is what lies between
    /// parameters, and what belongs to frozen ones.
    pub(super) fn complete(&mut self, entries: &[Entry], is_frozen: impl Fn(usize) -> bool) {
        self.reduce_deferred_sums();
        // Nothing is aside any more.
        self.joined.clear();
        let len = self.segments.last().map_or(0, |last| last.range.end);
        for (i, entry) in entries.iter().enumerate() {
            let was_written = std::mem::replace(&mut self.written[i], true) && !is_frozen(i);
            let start = if was_written { entry.range().end } else { entry.offset };
            let end = entries.get(i + 1).map_or(len, |next| next.offset);
            if let Some(gpu) = self.gpu() {
                // What lies between parameters is zero from the start.
                if !was_written {
                    cuda::clear(gpu.pointer().offset(start * 4), (end - start) * 4);
                }
                continue;
            }
            let at = self.segment_of(entry.offset);
            self.segments[at].numbers_mut(start..end).fill(0.0);
        }
    }

    /// Joins the sums that wait, all at once.
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

    /// How many numbers there are.
    pub(crate) fn len(&self) -> usize {
        self.segments.last().map_or(0, |last| last.range.end)
    }

    /// Calls `work` with the numbers of `range`; those of several segments are brought together first.
    pub(crate) fn with_range<R>(&self, range: Range<usize>, work: impl FnOnce(&[f32]) -> R) -> R {
        let first = &self.segments[self.segment_of(range.start)];
        if range.end <= first.range.end {
            return work(first.numbers(range));
        }
        let mut joined = Array::scratch(DType::F32, 1, range.len());
        self.copy(range, joined.f32_mut());
        work(joined.f32())
    }

    /// Copies the numbers of `range`.
    pub(super) fn copy(&self, range: Range<usize>, to: &mut [f32]) {
        if let Some(gpu) = self.gpu() {
            return to.copy_from_slice(&gpu.part_to_vec(range));
        }
        let first = range.start;
        self.for_each_part(range, |segment, part| {
            let to = &mut to[part.start - first..part.end - first];
            to.copy_from_slice(self.segments[segment].numbers(part));
        });
    }

    /// Takes the gradients, which are complete, out of their place.
    pub(super) fn take(&mut self) -> GradientSum {
        let parts = match self.gpu() {
            Some(gpu) => vec![gpu.clone()],
            None => self.segments.iter_mut().filter_map(|segment| segment.array.take()).collect(),
        };
        self.begin_pass();
        GradientSum { parts }
    }

    /// Adds others to the gradients, which are complete.
    pub(super) fn add(&mut self, sum: &GradientSum) {
        match self.gpu_mut() {
            Some(gpu) => gpu.add(&sum.parts[0]),
            None => {
                let segments = self.segments.iter_mut().filter_map(|segment| segment.array.as_mut());
                segments.zip(&sum.parts).for_each(|(array, part)| array.add(part));
            }
        }
    }

    /// Adds those of other GPUs to the gradients, which are complete.
    pub(super) fn sum_over_gpus(&mut self, gpus: &cuda::Gpus) {
        sum_over_gpus(gpus, self.gpu_mut().expect("parameters on the GPU have their gradients there"));
    }

    /// From here on buckets leave as soon as they are written.
    pub(super) fn begin_departure(&mut self, departure: impl FnOnce(Option<Vec<u32>>) -> Departure) {
        self.departure = Some(departure(self.usual_writes.clone()));
        self.send_ready();
    }

    /// Sends the buckets that have not left, of gradients that are complete.
    pub(super) fn end_departure(&mut self) -> Departure {
        let mut departure = self.departure.take().expect("a departure has begun");
        while let Some(bucket) = departure.last_chance() {
            self.send(bucket, &mut departure);
        }
        departure
    }

    /// Takes note of a write that is done.
    fn note(&mut self, index: usize) {
        self.writes[index] += 1;
        if self.departure.as_mut().is_some_and(|departure| departure.note(index)) {
            self.send_ready();
        }
    }

    fn send_ready(&mut self) {
        let Some(mut departure) = self.departure.take() else { return };
        while let Some(bucket) = departure.next() {
            for index in departure.parameters_in(bucket) {
                let was_written = std::mem::replace(&mut self.written[index], true);
                let (place, end) = departure.place(index);
                let start = if was_written && !departure.is_frozen(index) { place.end } else { place.start };
                let at = self.segment_of(place.start);
                self.segments[at].numbers_mut(start..end).fill(0.0);
            }
            self.send(bucket, &mut departure);
        }
        self.departure = Some(departure);
    }

    fn send(&self, bucket: usize, departure: &mut Departure) {
        let numbers = self.bucket(departure.reduction.sharding().bucket(bucket), &departure.sums);
        departure.reduction.send(bucket, numbers);
        departure.has_left(bucket);
    }

    /// The numbers of `range`, with those of earlier sums added, the newest first.
    pub(super) fn bucket(&self, range: Range<usize>, sums: &[GradientSum]) -> Array {
        let mut numbers = Array::scratch(DType::F32, 1, range.len());
        let shared = SharedMut::new(numbers.f32_mut());
        parallel(range.len().div_ceil(CHUNK), |task| {
            let here = task * CHUNK..((task + 1) * CHUNK).min(range.len());
            // SAFETY: chunks are disjoint.
            let numbers = unsafe { shared.slice(here.clone()) };
            let place = range.start + here.start..range.start + here.end;
            self.copy(place.clone(), numbers);
            for sum in sums.iter().rev() {
                self.for_each_part(place.clone(), |segment, part| {
                    let from = part.start - self.segments[segment].range.start;
                    let terms = &sum.parts[segment].f32()[from..from + part.len()];
                    let numbers = &mut numbers[part.start - place.start..][..part.len()];
                    numbers.iter_mut().zip(terms).for_each(|(number, term)| *number += term);
                });
            }
        });
        numbers
    }

    /// The parts of a range that lie in one segment each.
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
    fn numbers(&self, range: Range<usize>) -> &[f32] {
        let array = self.array.as_ref().expect("gradients are completed before they are read");
        &array.f32()[range.start - self.range.start..range.end - self.range.start]
    }

    /// As they are: garbage in memory that was just taken.
    fn numbers_mut(&mut self, range: Range<usize>) -> &mut [f32] {
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
            // Whatever takes the memory meanwhile leaves no trace.
            let other = crate::Array::from_f32(1, super::SEGMENT, &vec![9.0; super::SEGMENT]);
            assert!(params.gradients().iter().all(|&g| g == 0.0), "{other:?}");
            params.clear_gradients();
        }
    }
}
