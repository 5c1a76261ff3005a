//! How long a layer takes, and what memory.

use std::time::Instant;

use heedful_tensor::cpu::memory;
use heedful_tensor::random::Stream;
use heedful_tensor::{Array, Ragged, Tensor, tape};

use super::build::Layer;
use super::{LayerError, LayerKind, LayerSettings};
use crate::layers::Pass;

/// The layers take turns: whatever else the machine is doing meets all of them alike.
const SITTINGS: usize = 5;

/// What one layer took at one size.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// Which layer.
    pub kind: LayerKind,
    /// Tokens of the sequence.
    pub n: usize,
    /// Width of their vectors.
    pub d: usize,
    /// Median seconds of a forward pass that keeps nothing.
    pub forward: f64,
    /// Median seconds of a forward pass and the way back, with the gradients of parameters and input. It includes bringing
    /// the weights into the kernels' order, as it is done once for each update: with few tokens that is most of it.
    pub training: f64,
    /// The most bytes of the pool that the forward pass and the way back had at a time, besides parameters and input.
    pub peak: usize,
    /// Bytes that wait for the way back after the forward pass, with the output.
    pub kept: usize,
    /// How often the less frequent of the two was timed.
    pub repetitions: usize,
}

/// Measures every layer at every size, and tells each measurement as soon as it is there.
pub fn measure(
    settings: &LayerSettings,
    seen: &mut dyn FnMut(&Measurement),
) -> Result<Vec<Measurement>, LayerError> {
    settings.check()?;
    let mut measurements = Vec::with_capacity(settings.count());
    for &d in &settings.widths {
        for &n in &settings.lengths {
            let mut benches = LayerKind::ALL.map(|kind| Workbench::new(kind, n, d, settings));
            for _ in 0..SITTINGS {
                benches.iter_mut().for_each(Workbench::time);
            }
            for bench in benches {
                let measurement = bench.conclude();
                seen(&measurement);
                measurements.push(measurement);
            }
        }
    }
    // What was measured is over; its memory is of no use to others.
    memory::trim();
    Ok(measurements)
}

/// One layer with its input, and the times so far.
struct Workbench<'a> {
    kind: LayerKind,
    layer: Layer,
    x: Tensor,
    sequence: Ragged,
    gradient: Array,
    settings: &'a LayerSettings,
    forwards: Vec<f64>,
    trainings: Vec<f64>,
}

impl Workbench<'_> {
    fn new(kind: LayerKind, n: usize, d: usize, settings: &LayerSettings) -> Workbench<'_> {
        let draws = Stream::new(1, 0, 0);
        let numbers: Vec<f32> = (0..n * d).map(|i| draws.normal(i as u32)).collect();
        Workbench {
            kind,
            layer: Layer::new(kind, d, settings),
            x: Tensor::variable(Array::from_f32(n, d, &numbers)),
            sequence: Ragged::from_lengths([n]),
            gradient: Array::from_f32(n, d, &numbers),
            settings,
            forwards: Vec::new(),
            trainings: Vec::new(),
        }
    }

    /// One sitting.
    fn time(&mut self) {
        let seconds = self.settings.seconds / SITTINGS as f64;
        let forwards = repeated(seconds, || self.forward());
        let trainings = repeated(seconds, || self.train());
        self.forwards.extend(forwards);
        self.trainings.extend(trainings);
    }

    /// After the timing, when parameters, gradients and the input's narrow form exist, come the bytes.
    fn conclude(mut self) -> Measurement {
        let [n, d] = self.x.shape();
        Measurement {
            kind: self.kind,
            n,
            d,
            peak: self.peak(),
            kept: self.kept(),
            repetitions: self.forwards.len().min(self.trainings.len()),
            forward: median(&mut self.forwards),
            training: median(&mut self.trainings),
        }
    }

    fn forward(&self) {
        let mut pass = Pass::inference(self.settings.compute);
        drop(pass.within(|pass| self.layer.forward(&self.x, &self.sequence, pass)));
    }

    fn forward_to_train(&self) -> Tensor {
        let mut pass = Pass::training(self.settings.compute, 1, 1);
        self.layer.forward(&self.x, &self.sequence, &mut pass)
    }

    fn train(&self) {
        self.layer.params.clear_gradients();
        let output = self.forward_to_train();
        drop(tape::backward_from(&output, self.gradient.to(output.dtype())));
    }

    fn peak(&self) -> usize {
        memory::most_bytes_held(|| self.train())
    }

    fn kept(&self) -> usize {
        // The packed weights of a forward pass, kept from the second time on, are there before, not only after.
        drop(self.forward_to_train());
        drop(self.forward_to_train());
        let before = memory::bytes_held();
        let output = self.forward_to_train();
        let kept = memory::bytes_held().saturating_sub(before);
        drop(output);
        kept
    }
}

/// The times of `work`, repeated for so many seconds.
fn repeated(seconds: f64, work: impl Fn()) -> Vec<f64> {
    // The first time takes memory from the system and meets cold caches.
    work();
    let began = Instant::now();
    let mut times = Vec::new();
    while times.is_empty() || began.elapsed().as_secs_f64() < seconds {
        let start = Instant::now();
        work();
        times.push(start.elapsed().as_secs_f64());
    }
    times
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
