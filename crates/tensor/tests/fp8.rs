//! Linear maps in numbers of eight bits. On the processor they are those of bf16; what a card computes is held against sums in f64
//! over operands that were rounded here, if the GPU multiplies such numbers.

use half::bf16;
use heedful_tensor::ops::{Activation, Adam, AdamOptions, LinearOptions, add, linear};
use heedful_tensor::random::{Dropout, Stream};
use heedful_tensor::tape::backward_from;
use heedful_tensor::{Array, Compute, DType, Device, Init, Param, Params, Precision, Rows, Tensor, cuda};

/// Whether the GPU does; says so if it does not.
fn multiplies_fp8() -> bool {
    let gpu = cuda::card().expect("an NVIDIA GPU");
    if !gpu.multiplies_fp8() {
        eprintln!("not tested: {} does not multiply in fp8", gpu.name());
    }
    gpu.multiplies_fp8()
}

/// Exponent and mantissa bits, and the largest number.
#[derive(Clone, Copy)]
struct Format {
    mantissa: i32,
    least: i32,
    limit: f64,
}

const E4M3: Format = Format { mantissa: 3, least: -6, limit: 448.0 };
const E5M2: Format = Format { mantissa: 2, least: -14, limit: 57344.0 };

impl Format {
    /// To nearest even; what is too large becomes the largest.
    fn round(self, x: f64) -> f64 {
        let exponent = if x == 0.0 { self.least } else { (x.abs().log2().floor() as i32).max(self.least) };
        let unit = f64::from(exponent - self.mantissa).exp2();
        let rounded = (x / unit).round_ties_even() * unit;
        rounded.clamp(-self.limit, self.limit)
    }

    /// What is left of numbers that are scaled by their own maximum.
    fn through(self, numbers: &[f64]) -> Vec<f64> {
        let most = numbers.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
        let scale = (self.limit / most).log2().floor().exp2();
        numbers.iter().map(|x| self.round(x * scale) / scale).collect()
    }
}

#[test]
fn the_reference_rounds_as_the_formats_are_defined() {
    let rounded =
        |format: Format, numbers: &[f64]| -> Vec<f64> { numbers.iter().map(|&x| format.round(x)).collect() };
    assert_eq!(
        rounded(E4M3, &[1.0, 1.0625, 1.1875, -17.1, 500.0, 0.002, 0.0009]),
        [1.0, 1.0, 1.25, -18.0, 448.0, 0.001953125, 0.0]
    );
    assert_eq!(rounded(E5M2, &[1.125, 1.375, 9e4, -7e-6]), [1.0, 1.5, 57344.0, -0.0]);
}

const FP8: Compute = Compute { precision: Precision::Fp8, rows: Rows::Many };

fn numbers(n: usize, operation: u64) -> Vec<f32> {
    let stream = Stream::new(17, 0, operation);
    // As they are in bf16, so that its rounding is none.
    (0..n as u32).map(|i| bf16::from_f32(stream.normal(i)).to_f32()).collect()
}

fn wide(numbers: &[f32]) -> Vec<f64> {
    numbers.iter().map(|&x| x.into()).collect()
}

/// One map with what goes through it.
struct Map {
    params: Params,
    weight: Param,
    bias: Option<Param>,
    sizes: [usize; 3],
    dtype: DType,
    activation: Activation,
}

/// What a step computes.
#[derive(PartialEq)]
struct Found {
    y: Vec<f32>,
    dx: Vec<f32>,
    dw: Vec<f32>,
}

impl Map {
    fn new(
        device: Device,
        [m, k, n]: [usize; 3],
        dtype: DType,
        activation: Activation,
        has_bias: bool,
    ) -> Map {
        let params = Params::new(3);
        let weight = params.add("weight", k, n, Init::Constant(0.0));
        let bias = has_bias.then(|| params.add("bias", 1, n, Init::Constant(0.0)));
        weight.set(&numbers(k * n, 2).iter().map(|x| x * 0.0625).collect::<Vec<_>>());
        bias.iter().for_each(|bias| bias.set(&numbers(n, 3)));
        params.move_to(device);
        Map { params, weight, bias, sizes: [m, k, n], dtype, activation }
    }

    /// Forward with `size · x` and back with gradients that are as small as those of a mean over many tokens.
    fn step(&self, compute: Compute, size: f32) -> Found {
        let [m, k, n] = self.sizes;
        let (device, activation, dropout) = (self.params.device(), self.activation, Dropout::NONE);
        let array = |rows, width, operation, size: f32| {
            let values: Vec<f32> = numbers(rows * width, operation).iter().map(|x| x * size).collect();
            Array::from_f32_on(device, rows, width, &values)
        };
        let x = Tensor::variable(array(m, k, 1, size).into_dtype(self.dtype));
        let options = LinearOptions { activation, dropout, compute };
        let y = linear(&x, &self.weight, self.bias.as_ref(), options);
        let gradients = backward_from(&y, array(m, n, 4, GRADIENT));
        let dx = gradients.of(&x).expect("x is a variable").to_vec();
        Found { y: y.to_vec(), dx, dw: self.weight.gradient() }
    }

    /// Ends the step: what was met is known from here on, and no weight changes.
    fn update(&self) {
        Adam::new(&self.params, AdamOptions::default()).step(&self.params, 0.0);
    }
}

/// What gradients are multiplied by: a power of two.
const GRADIENT: f32 = 1.0 / (1 << 20) as f32;

#[test]
fn on_the_processor_they_are_those_of_bf16() {
    let map = Map::new(Device::Cpu, [37, 64, 48], DType::F32, Activation::Relu, true);
    for _ in 0..2 {
        let [found, expected] = [FP8, Compute::training(DType::Bf16)].map(|compute| {
            map.params.clear_gradients();
            map.step(compute, 1.0)
        });
        assert!(found == expected);
        map.update();
    }
    assert!(map.params.fp8_maxima().is_empty());
}

fn distance(a: &[f32], b: &[f32]) -> f64 {
    let apart: f64 = a.iter().zip(b).map(|(&a, &b)| f64::from(a - b).powi(2)).sum();
    let length: f64 = b.iter().map(|&b| f64::from(b).powi(2)).sum();
    (apart / length).sqrt()
}

/// `left · right`, `m × k` by `k × n`, with the sums of magnitudes.
fn product(left: &[f64], right: &[f64], [m, k, n]: [usize; 3]) -> Vec<(f64, f64)> {
    let element = |i: usize| {
        let terms = (0..k).map(|j| left[i / n * k + j] * right[j * n + i % n]);
        terms.fold((0.0, 0.0), |(sum, magnitude), term| (sum + term, magnitude + term.abs()))
    };
    (0..m * n).map(element).collect()
}

fn transposed(a: &[f64], rows: usize) -> Vec<f64> {
    let columns = a.len() / rows;
    (0..a.len()).map(|i| a[i % rows * columns + i / rows]).collect()
}

/// Each number is the sum but for its own rounding, and for that of sums that tensor cores take with fewer bits than a single has.
fn assert_near(found: &[f32], expected: impl Iterator<Item = (f64, f64)>, of_sums: f64, what: &str) {
    for (i, (&found, (exact, magnitude))) in found.iter().zip(expected).enumerate() {
        let error = (f64::from(found) - exact).abs();
        assert!(
            error <= 4e-3 * exact.abs() + of_sums * magnitude,
            "{what}: {found} instead of {exact} at {i}"
        );
    }
}

const SIZES: [[usize; 3]; 5] =
    [[300, 512, 1536], [37, 64, 48], [1, 16, 16], [257, 2048, 512], [1000, 48, 112]];

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn a_card_multiplies_what_was_rounded_to_eight_bits_from_the_second_update_on() {
    if !multiplies_fp8() {
        return;
    }
    for sizes in SIZES {
        for (dtype, activation, has_bias) in [
            (DType::F32, Activation::Identity, true),
            (DType::Bf16, Activation::Relu, true),
            (DType::Bf16, Activation::Relu, false),
            (DType::F32, Activation::Identity, false),
        ] {
            let [m, k, n] = sizes;
            let what = format!("{m}×{k}×{n}, {dtype}, {activation:?}, bias: {has_bias}");
            let map = Map::new(Device::Cuda, sizes, dtype, activation, has_bias);
            let narrow = map.step(Compute::training(DType::Bf16), 1.0);
            map.params.clear_gradients();
            assert!(map.step(FP8, 1.0) == narrow, "{what}: the first step is bf16's");
            map.update();
            let found = map.step(FP8, 1.0);
            map.params.clear_gradients();
            assert!(map.step(FP8, 1.0) == found, "{what}: two steps differ");
            if m < 16 && found == narrow {
                eprintln!("{what}: cuBLASLt has no way for so few rows");
                continue;
            }

            let x = E4M3.through(&wide(&numbers(m * k, 1)));
            let weight = E4M3.through(&wide(&map.weight.to_vec()));
            let bias = map.bias.as_ref().map_or(vec![0.0; n], |bias| wide(&bias.to_vec()));
            let is_relu = activation == Activation::Relu;
            let finish = |(i, (sum, magnitude)): (usize, (f64, f64))| {
                let z = sum + bias[i % n];
                (if is_relu { z.max(0.0) } else { z }, magnitude + bias[i % n].abs())
            };
            let y = product(&x, &weight, sizes).into_iter().enumerate().map(finish);
            assert_near(&found.y, y, 1e-3, &format!("{what}: y"));
            // What passed is decided by the results that the card found.
            let passes = |i: usize| !is_relu || found.y[i] > 0.0;
            let dy = wide(&numbers(m * n, 4)).into_iter().map(|g| g * f64::from(GRADIENT));
            let dz: Vec<f64> = dy.enumerate().map(|(i, g)| if passes(i) { g } else { 0.0 }).collect();
            let dx = product(&E5M2.through(&dz), &transposed(&weight, k), [m, n, k]);
            assert_near(&found.dx, dx.into_iter(), 5e-4, &format!("{what}: dx"));
            // The sum over tokens is bf16's, of what passed.
            let same = found.y.iter().zip(&narrow.y).all(|(a, b)| (*a > 0.0) == (*b > 0.0));
            assert!((is_relu && !same) || found.dw == narrow.dw, "{what}: dW");
            // Eight bits leave their trace, and no more than that. Where ReLU passes other results than bf16's, the gradient is
            // another one altogether.
            let apart = [distance(&found.y, &narrow.y), distance(&found.dx, &narrow.dx)];
            eprintln!("{what}: y and dx are {apart:.4?} from bf16's");
            let most = if is_relu { 2e-1 } else { 1e-1 };
            if m * n > 1000 {
                assert!(
                    apart[0] > 5e-3 && apart[0] < 6e-2 && apart[1] > 1e-2 && apart[1] < most,
                    "{what}: {apart:?}"
                );
            }
        }
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gradients_that_meet_in_one_input_are_added_in_the_product() {
    if !multiplies_fp8() {
        return;
    }
    let params = Params::new(3);
    let weights = ["a", "b"].map(|name| params.add(name, 64, 96, Init::Xavier));
    params.move_to(Device::Cuda);
    let run = |compute: Compute, both: [bool; 2]| {
        let x = Tensor::variable(Array::from_f32_on(Device::Cuda, 100, 64, &numbers(6400, 1)));
        let options = LinearOptions { activation: Activation::Identity, dropout: Dropout::NONE, compute };
        let [a, b] = weights.each_ref().map(|weight| linear(&x, weight, None, options));
        let y = match both {
            [true, true] => add(&a, &b),
            [true, false] => a,
            _ => b,
        };
        let gradient = Array::from_f32_on(Device::Cuda, 100, 96, &numbers(9600, 4));
        backward_from(&y, gradient).of(&x).expect("x is a variable").to_vec()
    };
    run(FP8, [true, true]);
    Adam::new(&params, AdamOptions::default()).step(&params, 0.0);
    let [sum, a, b] = [[true, true], [true, false], [false, true]].map(|both| run(FP8, both));
    let apart: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
    assert!(distance(&sum, &apart) < 1e-5, "{}", distance(&sum, &apart));
    assert!(
        distance(&sum, &run(Compute::training(DType::Bf16), [true, true])) > 1e-3,
        "it was computed in bf16"
    );
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn sizes_that_are_no_multiples_of_sixteen_stay_bf16() {
    if !multiplies_fp8() {
        return;
    }
    for sizes in [[50, 72, 64], [50, 64, 40]] {
        let map = Map::new(Device::Cuda, sizes, DType::F32, Activation::Identity, true);
        let narrow = map.step(Compute::training(DType::Bf16), 1.0);
        for _ in 0..3 {
            map.params.clear_gradients();
            assert!(map.step(FP8, 1.0) == narrow, "{sizes:?}");
            map.update();
        }
        assert!(map.params.fp8_maxima().is_empty(), "{sizes:?}");
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn the_maxima_of_the_last_sixteen_updates_are_remembered_and_restored() {
    if !multiplies_fp8() {
        return;
    }
    let map = Map::new(Device::Cuda, [64, 64, 64], DType::F32, Activation::Identity, false);
    let most = |operation| numbers(64 * 64, operation).iter().fold(0.0_f32, |most, x| most.max(x.abs()));
    let sizes: Vec<f32> = (0..20).map(|step| ((step * 7 % 5) as f32 - 2.0).exp2()).collect();
    for (step, &size) in sizes.iter().enumerate() {
        map.step(FP8, size);
        map.update();
        let newest = sizes[..=step].iter().rev().map(|size| size * most(1));
        let mut expected: Vec<f32> = newest.chain(std::iter::repeat(-1.0)).take(16).collect();
        let maxima = map.params.fp8_maxima();
        let [(name, [input, gradient])] = &maxima[..] else { panic!("{maxima:?}") };
        assert_eq!((&**name, input), ("weight", &expected), "step {step}");
        expected
            .iter_mut()
            .filter(|maximum| **maximum >= 0.0)
            .for_each(|maximum| *maximum = most(4) * GRADIENT);
        assert_eq!(gradient, &expected, "step {step}");
    }
    // Another one that goes on from there computes the same, and so does one that is told what it knows.
    let found = map.step(FP8, 1.0);
    let maxima = map.params.fp8_maxima();
    let given: Vec<_> = maxima.iter().map(|(name, [a, b])| (&**name, [&a[..], &b[..]])).collect();
    let other = Map::new(Device::Cuda, [64, 64, 64], DType::F32, Activation::Identity, false);
    for map in [&other, &map] {
        assert!(map.params.restore_fp8_maxima(&given));
        map.params.clear_gradients();
        assert!(map.step(FP8, 1.0) == found);
        assert_eq!(map.params.fp8_maxima(), maxima);
    }
    // What was not seen is not known.
    assert!(other.params.restore_fp8_maxima(&[]));
    other.params.clear_gradients();
    let narrow = other.step(FP8, 1.0);
    other.params.clear_gradients();
    assert!(narrow == other.step(Compute::training(DType::Bf16), 1.0));
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn a_step_that_is_given_up_leaves_no_maximum() {
    if !multiplies_fp8() {
        return;
    }
    let map = Map::new(Device::Cuda, [64, 64, 64], DType::F32, Activation::Identity, false);
    map.step(FP8, 1.0);
    map.update();
    let before = map.params.fp8_maxima();
    map.step(FP8, 1024.0);
    map.params.abandon_step();
    map.step(FP8, 1.0);
    map.update();
    let after = map.params.fp8_maxima();
    assert_eq!(after[0].1[0][..2], [before[0].1[0][0]; 2]);
}
