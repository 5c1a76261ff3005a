//! How long a layer takes, and what memory.

use std::time::Instant;

use heedful_tensor::cpu::memory;
use heedful_tensor::random::Stream;
use heedful_tensor::{Array, Ragged, Tensor, tape};

use super::build::Layer;
use super::{LayerError, LayerKind, LayerSettings};
use crate::layers::Pass;

/// Of fewer times there is no median worth the name.
const LEAST: usize = 3;

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
            for kind in LayerKind::ALL {
                let measurement = Workbench::new(kind, n, d, settings).measure(settings.seconds);
                seen(&measurement);
                measurements.push(measurement);
            }
        }
    }
    // What was measured is over; its memory is of no use to others.
    memory::trim();
    Ok(measurements)
}

/// One layer with its input.
struct Workbench<'a> {
    kind: LayerKind,
    layer: Layer,
    x: Tensor,
    sequence: Ragged,
    gradient: Array,
    settings: &'a LayerSettings,
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
        }
    }

    fn measure(&self, seconds: f64) -> Measurement {
        let (forward, forwards) = median(seconds, || self.forward());
        let (training, trainings) = median(seconds, || self.train());
        let [n, d] = self.x.shape();
        let repetitions = forwards.min(trainings);
        // After the timing: parameters, gradients and the input's narrow form exist by now.
        let (peak, kept) = (self.peak(), self.kept());
        Measurement { kind: self.kind, n, d, forward, training, peak, kept, repetitions }
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
        memory::trim();
        let before = memory::bytes_from_system();
        self.train();
        memory::bytes_from_system().saturating_sub(before)
    }

    fn kept(&self) -> usize {
        // The packed weights of a forward pass are there before, not only after.
        self.forward();
        memory::trim();
        let before = memory::bytes_from_system();
        let output = self.forward_to_train();
        memory::trim();
        let kept = memory::bytes_from_system().saturating_sub(before);
        drop(output);
        kept
    }
}

/// The median time of `work`, repeated for so many seconds, and how often that was.
fn median(seconds: f64, mut work: impl FnMut()) -> (f64, usize) {
    // The first time takes memory from the system and meets cold caches.
    work();
    let began = Instant::now();
    let mut times = Vec::new();
    while times.len() < LEAST || began.elapsed().as_secs_f64() < seconds {
        let start = Instant::now();
        work();
        times.push(start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    (times[times.len() / 2], times.len())
}
