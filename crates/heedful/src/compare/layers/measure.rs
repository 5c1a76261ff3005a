//! Measures the time and the memory of a layer.

use std::time::Instant;

use heedful_tensor::cpu::memory;
use heedful_tensor::random::Stream;
use heedful_tensor::{Array, Ragged, Tensor, tape};

use super::build::Layer;
use super::{LayerError, LayerKind, LayerSettings, path};
use crate::layers::Pass;

/// The layers take turns in several rounds, so that other load on the machine affects all of them alike.
const ROUNDS: usize = 5;

/// The cost of one layer at one size.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// Which layer.
    pub kind: LayerKind,
    /// Tokens of the sequence.
    pub n: usize,
    /// Width of their vectors.
    pub d: usize,
    /// Median seconds of a forward pass without gradients.
    pub forward: f64,
    /// Median seconds of a forward and a backward pass, with the gradients of parameters and input. It includes packing
    /// the weights for the kernels, once per update: with few tokens that is most of it.
    pub training: f64,
    /// The peak memory of the forward and the backward pass in bytes, besides parameters and input.
    pub peak: usize,
    /// Bytes that are kept for the backward pass after the forward pass, including the output.
    pub kept: usize,
    /// The maximum path length between two tokens: measured for dilated convolutions, else [`LayerKind::longest_path`].
    pub longest_path: usize,
    /// How often each pass was timed, at least.
    pub(crate) repetitions: usize,
}

/// Measures every layer at every size; `on_measured` is called after each measurement.
pub fn measure(
    settings: &LayerSettings,
    on_measured: &mut dyn FnMut(&Measurement),
) -> Result<Vec<Measurement>, LayerError> {
    settings.check()?;
    let mut measurements = Vec::with_capacity(settings.count());
    for &d in &settings.widths {
        for &n in &settings.lengths {
            let mut benches = LayerKind::ALL.map(|kind| Workbench::new(kind, n, d, settings));
            for round in 0..ROUNDS {
                benches.iter_mut().for_each(|bench| bench.time(round));
            }
            for bench in benches {
                let measurement = bench.conclude();
                on_measured(&measurement);
                measurements.push(measurement);
            }
        }
    }
    // The next sizes cannot reuse the memory of these.
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
            layer: Layer::new(kind, [n, d], settings),
            x: Tensor::variable(Array::from_f32(n, d, &numbers)),
            sequence: Ragged::from_lengths([n]),
            gradient: Array::from_f32(n, d, &numbers),
            settings,
            forwards: Vec::new(),
            trainings: Vec::new(),
        }
    }

    fn time(&mut self, round: usize) {
        let seconds = self.settings.seconds / ROUNDS as f64;
        let forwards = repeated(round, seconds, || self.forward());
        let trainings = repeated(round, seconds, || self.train());
        self.forwards.extend(forwards);
        self.trainings.extend(trainings);
    }

    /// Measures memory after the timing, when parameters, gradients and the input's bf16 form exist.
    fn conclude(mut self) -> Measurement {
        let [n, d] = self.x.shape();
        Measurement {
            kind: self.kind,
            n,
            d,
            peak: self.peak(),
            kept: self.kept(),
            longest_path: match self.kind {
                LayerKind::Dilated => path::dilated(n, self.settings.taps),
                kind => kind.longest_path(n, self.settings),
            },
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
        // From the second time on, the packed weights of the forward pass exist beforehand and do not count.
        drop(self.forward_to_train());
        drop(self.forward_to_train());
        let before = memory::bytes_held();
        let output = self.forward_to_train();
        let kept = memory::bytes_held().saturating_sub(before);
        drop(output);
        kept
    }
}

/// The times of `work`, repeated for this many seconds.
fn repeated(round: usize, seconds: f64, work: impl Fn()) -> Vec<f64> {
    // The first run allocates memory from the system and has cold caches. In later rounds it has the memory, and caches
    // do not matter to what takes longer than a round.
    let began = Instant::now();
    work();
    let first = began.elapsed().as_secs_f64();
    if round > 0 && first > seconds {
        return vec![first];
    }
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
