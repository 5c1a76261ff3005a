//! The harness of `gradients.rs`: a [`Case`] is an operation, its inputs and a naive f64 reference. It runs
//! on every instruction set of this machine, in f32 and bf16, with one and two threads, or on a GPU.
//!
//! - f32 results are compared with the reference, f32 gradients with central differences *of the reference*:
//!   in f64 these are accurate to nine digits, so the tolerance can be that of f32 itself.
//! - bf16 results are compared with the reference, bf16 gradients with the f32 ones, both in the L2 norm.
//! - One and two threads must give the same bits; a second backward pass must double the parameters'
//!   gradients.

pub(crate) mod reference;

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use heedful_tensor::cpu::isa::{self, Isa};
use heedful_tensor::cpu::threads::set_thread_count;
use heedful_tensor::random::Stream;
use heedful_tensor::tape::backward_from;
use heedful_tensor::{Array, Compute, DType, Device, Init, Param, Params, Tensor};

use reference::M;

/// Elements of an input whose gradients are checked one by one; the derivative along a random direction is
/// checked too.
const SAMPLES: u32 = 60;
const STEP: f64 = 1e-5;
/// Half a unit in the last place of bf16 is 2e-3; a few roundings add up.
const BF16_TOLERANCE: f64 = 1e-2;

/// The distribution of an input's random values.
#[derive(Clone, Copy)]
pub(crate) enum Values {
    /// Uniform in ± this value.
    Within(f32),
    /// Uniform in 0.5 … 2.
    Positive,
    /// Either sign, magnitude in `m … m + 1`: away from ReLU's kink at 0.
    Beyond(f32),
}

/// Whether an input is stored as bf16 in a bf16 run.
#[derive(Clone, Copy, PartialEq)]
enum Storage {
    Wide,
    Compute,
}

struct Input {
    shape: [usize; 2],
    values: Values,
    storage: Storage,
}

/// The inputs of one run of an operation.
pub(crate) struct Run {
    pub(crate) x: Vec<Tensor>,
    pub(crate) p: Vec<Param>,
    pub(crate) compute: Compute,
}

type Forward = Box<dyn Fn(&Run) -> Tensor>;
type Reference = Box<dyn Fn(&[M]) -> M>;

pub(crate) struct Case {
    name: String,
    inputs: Vec<Input>,
    params: Vec<Input>,
    forward: Forward,
    reference: Reference,
}

impl Case {
    /// `forward` computes the operation; `reference` does so in f64 from the inputs followed by the
    /// parameters.
    pub(crate) fn new(
        name: impl Into<String>,
        forward: impl Fn(&Run) -> Tensor + 'static,
        reference: impl Fn(&[M]) -> M + 'static,
    ) -> Case {
        Case {
            name: name.into(),
            inputs: Vec::new(),
            params: Vec::new(),
            forward: Box::new(forward),
            reference: Box::new(reference),
        }
    }

    /// A variable, stored in the compute type.
    pub(crate) fn input(mut self, rows: usize, width: usize, values: Values) -> Case {
        self.inputs.push(Input { shape: [rows, width], values, storage: Storage::Compute });
        self
    }

    /// A variable that is always f32.
    pub(crate) fn wide_input(mut self, rows: usize, width: usize, values: Values) -> Case {
        self.inputs.push(Input { shape: [rows, width], values, storage: Storage::Wide });
        self
    }

    pub(crate) fn param(mut self, rows: usize, width: usize, values: Values) -> Case {
        self.params.push(Input { shape: [rows, width], values, storage: Storage::Wide });
        self
    }
}

/// The results of one run of an operation.
#[derive(PartialEq)]
struct Outcome {
    y: Vec<f32>,
    /// Gradients of the inputs, then of the parameters.
    gradients: Vec<Vec<f32>>,
}

/// Runs the whole table.
pub(crate) fn check(cases: &[Case]) {
    let _lock = exclusive();
    for case in cases {
        let expected = Expected::of(case);
        for isa in isa::ALL.into_iter().filter(|isa| isa.is_available()) {
            isa::select(isa);
            let wide = run_with_threads(case, &expected, DType::F32, isa);
            expected.check_f32(case, &wide, &isa);
            let narrow = run_with_threads(case, &expected, DType::Bf16, isa);
            expected.check_bf16(case, &wide, &narrow, &isa);
        }
    }
}

/// Runs the whole table on a GPU.
pub(crate) fn check_on_gpu(cases: &[Case]) {
    let _lock = exclusive();
    for case in cases {
        let expected = Expected::of(case);
        let wide = run_twice(case, &expected, DType::F32);
        expected.check_f32(case, &wide, &"the GPU");
        let narrow = run_twice(case, &expected, DType::Bf16);
        expected.check_bf16(case, &wide, &narrow, &"the GPU");
    }
}

/// The instruction set, the number of threads and the GPU are process-wide, so the tests run one at a time.
fn exclusive() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs the case twice on a GPU, which must give the same bits.
fn run_twice(case: &Case, expected: &Expected, compute: DType) -> Outcome {
    let once = run(case, expected, compute, Device::Cuda);
    let again = run(case, expected, compute, Device::Cuda);
    assert!(once == again, "{} on the GPU in {compute}: two runs differ", case.name);
    once
}

fn run_with_threads(case: &Case, expected: &Expected, compute: DType, isa: Isa) -> Outcome {
    set_thread_count(1);
    let one = run(case, expected, compute, Device::Cpu);
    set_thread_count(2);
    let two = run(case, expected, compute, Device::Cpu);
    assert!(one == two, "{} on {isa} in {compute}: one and two threads differ", case.name);
    two
}

fn run(case: &Case, expected: &Expected, compute: DType, device: Device) -> Outcome {
    let params = Params::new(1);
    let register = |(i, input): (usize, &Input)| {
        params.add(&format!("p{i}"), input.shape[0], input.shape[1], Init::Constant(0.0))
    };
    let p: Vec<Param> = case.params.iter().enumerate().map(register).collect();
    let (inputs, values) = expected.values.split_at(case.inputs.len());
    for (param, values) in p.iter().zip(values) {
        param.set(&values.to_f32());
    }
    if !p.is_empty() {
        params.move_to(device).expect("it fits");
    }
    let forward = || {
        let variable = |(input, values): (&Input, &M)| {
            let array = Array::from_f32_on(device, input.shape[0], input.shape[1], &values.to_f32());
            Tensor::variable(if input.storage == Storage::Wide { array } else { array.to(compute) })
        };
        let x = case.inputs.iter().zip(inputs).map(variable).collect();
        let run = Run { x, p: p.clone(), compute: Compute::training(compute) };
        let y = (case.forward)(&run);
        assert_eq!(y.shape(), expected.y.shape(), "{}: shape of the result", case.name);
        let weights = &expected.weights.to_f32();
        let weights = Array::from_f32_on(device, y.rows(), y.width(), weights).to(y.dtype());
        let gradients = backward_from(&y, weights);
        (run, y, gradients)
    };
    let (run, y, found) = forward();
    let mut gradients = Vec::new();
    for (i, (x, input)) in run.x.iter().zip(&case.inputs).enumerate() {
        let gradient = found.of(x).unwrap_or_else(|| panic!("{}: no gradient for input {i}", case.name));
        assert_eq!([gradient.rows(), gradient.width()], input.shape, "{}: gradient of input {i}", case.name);
        assert_eq!(gradient.dtype(), x.dtype(), "{}: gradient of input {i}", case.name);
        gradients.push(gradient.to_vec());
    }
    let once: Vec<Vec<f32>> = p.iter().map(Param::gradient).collect();
    forward();
    for (param, once) in p.iter().zip(&once) {
        let doubled: Vec<f32> = once.iter().map(|g| 2.0 * g).collect();
        let off = distance(&param.gradient(), &doubled);
        assert!(
            off < 1e-5,
            "{}: a second pass does not accumulate into {}: {off:e}",
            case.name,
            param.name()
        );
    }
    gradients.extend(once);
    Outcome { y: y.to_vec(), gradients }
}

/// The reference's results.
struct Expected {
    values: Vec<M>,
    weights: M,
    y: M,
    /// For every input and parameter: (element, derivative).
    slopes: Vec<Vec<(usize, f64)>>,
    /// For every input and parameter: a direction, and the derivative along it.
    directions: Vec<(M, f64)>,
}

impl Expected {
    fn of(case: &Case) -> Expected {
        let all: Vec<&Input> = case.inputs.iter().chain(&case.params).collect();
        let mut values: Vec<M> = all.iter().enumerate().map(|(i, input)| draw(input, i as u64)).collect();
        let y = (case.reference)(&values);
        let weights =
            draw(&Input { shape: y.shape(), values: Values::Within(1.0), storage: Storage::Wide }, 100);
        let total = |values: &[M]| -> f64 {
            let y = (case.reference)(values);
            y.values.iter().zip(&weights.values).map(|(y, weight)| y * weight).sum()
        };
        let (mut slopes, mut directions) = (Vec::new(), Vec::new());
        for (i, input) in all.iter().enumerate() {
            let count = input.shape[0] * input.shape[1];
            let stream = Stream::new(17, 1, i as u64);
            let picked: Vec<usize> = match count {
                n if n <= SAMPLES as usize => (0..n).collect(),
                n => (0..SAMPLES).map(|k| stream.bits(k) as usize % n).collect(),
            };
            let slope = |element: usize| {
                let here = values[i].values[element];
                values[i].values[element] = here + STEP;
                let above = total(&values);
                values[i].values[element] = here - STEP;
                let below = total(&values);
                values[i].values[element] = here;
                (element, (above - below) / (2.0 * STEP))
            };
            slopes.push(picked.into_iter().map(slope).collect());
            let direction = draw(
                &Input { shape: input.shape, values: Values::Within(1.0), storage: Storage::Wide },
                200 + i as u64,
            );
            let here = values[i].clone();
            values[i] = here.plus(&direction, STEP);
            let above = total(&values);
            values[i] = here.plus(&direction, -STEP);
            let below = total(&values);
            values[i] = here;
            directions.push((direction, (above - below) / (2.0 * STEP)));
        }
        Expected { values, weights, y, slopes, directions }
    }

    fn check_f32(&self, case: &Case, found: &Outcome, device_name: &dyn fmt::Display) {
        let name = &case.name;
        let off = distance(&found.y, &self.y.to_f32());
        assert!(off < 5e-6, "{name} on {device_name}: the result is {off:e} from the reference");
        for (i, gradient) in found.gradients.iter().enumerate() {
            let length = norm(gradient);
            let typical = length / (gradient.len() as f64).sqrt();
            for &(element, slope) in &self.slopes[i] {
                let error = (f64::from(gradient[element]) - slope).abs();
                let allowed = 2e-4 * slope.abs().max(typical) + 1e-6;
                assert!(
                    error <= allowed,
                    "{name} on {device_name}: gradient {i} has {} at {element}, central differences give {slope}",
                    gradient[element]
                );
            }
            let (direction, slope) = &self.directions[i];
            let along: f64 = gradient.iter().zip(&direction.values).map(|(&g, d)| f64::from(g) * d).sum();
            let allowed = 2e-4 * slope.abs().max(length) + 1e-6;
            assert!(
                (along - slope).abs() <= allowed,
                "{name} on {device_name}: gradient {i} gives {along} along a direction, central differences give {slope}"
            );
        }
    }

    fn check_bf16(&self, case: &Case, wide: &Outcome, narrow: &Outcome, device_name: &dyn fmt::Display) {
        let name = &case.name;
        let off = distance(&narrow.y, &self.y.to_f32());
        assert!(
            off < BF16_TOLERANCE,
            "{name} on {device_name} in bf16: the result is {off:e} from the reference"
        );
        for (i, (wide, narrow)) in wide.gradients.iter().zip(&narrow.gradients).enumerate() {
            let off = distance(narrow, wide);
            assert!(
                off < BF16_TOLERANCE,
                "{name} on {device_name} in bf16: gradient {i} is {off:e} from that in f32"
            );
        }
    }
}

fn draw(input: &Input, number: u64) -> M {
    let stream = Stream::new(29, 0, number);
    let value = |i: u32| match input.values {
        Values::Within(size) => (2.0 * stream.uniform(i) - 1.0) * size,
        Values::Positive => 0.5 + 1.5 * stream.uniform(i),
        Values::Beyond(least) => {
            let signed = 2.0 * stream.uniform(i) - 1.0;
            signed + if signed < 0.0 { -least } else { least }
        }
    };
    let count = (input.shape[0] * input.shape[1]) as u32;
    let values = (0..count).map(|i| f64::from(value(i))).collect();
    M { rows: input.shape[0], width: input.shape[1], values }
}

fn norm(values: &[f32]) -> f64 {
    values.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt()
}

/// `‖a − b‖ / ‖b‖`; infinity for NaN.
fn distance(a: &[f32], b: &[f32]) -> f64 {
    let apart: f64 = a.iter().zip(b).map(|(&a, &b)| (f64::from(a) - f64::from(b)).powi(2)).sum();
    let off = apart.sqrt() / (norm(b) + 1e-7);
    if off.is_nan() { f64::INFINITY } else { off }
}
