//! Measures the time and the memory of a layer.

use std::time::Instant;

use heedful_tensor::cpu::memory;
use heedful_tensor::random::Stream;
use heedful_tensor::{Array, Ragged, Tensor, tape};

use super::build::Layer;
use super::{LayerError, LayerKind, LayerSettings, path};
use crate::layers::Pass;

/// Layers are measured in interleaved rounds, so that other load on the machine affects all of them equally.
const ROUNDS: usize = 5;

/// The cost of one layer at one size.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// The layer.
    pub kind: LayerKind,
    /// The sequence length.
    pub n: usize,
    /// The vector width.
    pub d: usize,
    /// Median seconds of a forward pass without gradients.
    pub forward: f64,
    /// Median seconds of a forward and a backward pass, with gradients of parameters and input. This includes
    /// packing the weights for the kernels once per update, which dominates with few tokens.
    pub training: f64,
    /// Peak memory of the forward and backward pass in bytes, excluding parameters and input.
    pub peak: usize,
    /// Bytes saved for the backward pass after the forward pass, including the output.
    pub kept: usize,
    /// The maximum path length between two tokens: measured for dilated convolutions, else
    /// [`LayerKind::longest_path`].
    pub longest_path: usize,
    /// The minimum number of timed runs of each pass.
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
            let mut benches = LayerKind::ALL.map(|kind| LayerBench::new(kind, n, d, settings));
            for round in 0..ROUNDS {
                benches.iter_mut().for_each(|bench| bench.time(round));
            }
            for bench in benches {
                let measurement = bench.finish();
                on_measured(&measurement);
                measurements.push(measurement);
            }
        }
    }
    // Return the memory: later measurements have other sizes.
    memory::trim();
    Ok(measurements)
}

/// A layer with its input and the times measured so far.
struct LayerBench<'a> {
    kind: LayerKind,
    layer: Layer,
    x: Tensor,
    sequence: Ragged,
    gradient: Array,
    settings: &'a LayerSettings,
    forwards: Vec<f64>,
    trainings: Vec<f64>,
}

impl LayerBench<'_> {
    fn new(kind: LayerKind, n: usize, d: usize, settings: &LayerSettings) -> LayerBench<'_> {
        let stream = Stream::new(1, 0, 0);
        let values: Vec<f32> = (0..n * d).map(|i| stream.normal(i as u32)).collect();
        LayerBench {
            kind,
            layer: Layer::new(kind, [n, d], settings),
            x: Tensor::variable(Array::from_f32(n, d, &values)),
            sequence: Ragged::from_lengths([n]),
            gradient: Array::from_f32(n, d, &values),
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

    /// Measures memory after the timing, when parameters, gradients and the bf16 copy of the input have been
    /// allocated.
    fn finish(mut self) -> Measurement {
        let [n, d] = self.x.shape();
        Measurement {
            kind: self.kind,
            n,
            d,
            peak: self.peak(),
            kept: self.kept(),
            longest_path: match self.kind {
                LayerKind::Dilated => path::dilated(n, self.settings.kernel_size),
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
        memory::peak_bytes_in_use(|| self.train())
    }

    fn kept(&self) -> usize {
        // After the first pass, the packed weights are already allocated and do not count.
        drop(self.forward_to_train());
        drop(self.forward_to_train());
        let before = memory::bytes_in_use();
        let output = self.forward_to_train();
        let kept = memory::bytes_in_use().saturating_sub(before);
        drop(output);
        kept
    }
}

/// Repeats `work` for this many seconds and returns its times.
fn repeated(round: usize, seconds: f64, work: impl Fn()) -> Vec<f64> {
    // The first run is a warm-up: it allocates memory and has cold caches. In later rounds memory is
    // allocated already, and caches do not matter for work that takes longer than the round.
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
