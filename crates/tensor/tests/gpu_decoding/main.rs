//! Decoding kernels: the GPU's results against the CPU's, and a row has the same bits alone and in a batch.

mod attention;
mod products;
mod top_k;

use heedful_tensor::ops::TopK;
use heedful_tensor::random::Stream;
use heedful_tensor::{Compute, DType, Device, Init, Params, Tensor, tape};

fn random_values(count: usize, stream: u64) -> Vec<f32> {
    let stream = Stream::new(1, 2, stream);
    (0..count as u32).map(|i| 2.0 * stream.uniform(i) - 1.0).collect()
}

fn distance(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len());
    let apart: f64 = a.iter().zip(b).map(|(&a, &b)| f64::from(a - b).powi(2)).sum();
    let length: f64 = b.iter().map(|&b| f64::from(b).powi(2)).sum();
    (apart / length.max(1e-30)).sqrt()
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn a_replayed_step_uses_the_current_inputs() {
    let params = Params::new(3);
    let weight = params.add("weight", 900, 64, Init::Normal(0.5));
    params.move_to(Device::Cuda).expect("it fits");
    let mut found = TopK::default();
    for round in 0..5 {
        let values = random_values(8 * 64, 10 + round);
        let compute = Compute::inference(DType::Bf16);
        let extra: Vec<(usize, u32)> = (0..round as usize).map(|row| (row, 7)).collect();
        let find = |found: &mut TopK| {
            tape::no_grad(|| {
                let x = Tensor::from_f32_on(Device::Cuda, 8, 64, &values);
                assert!(found.find_in_product(&x, &weight, compute, 4, &extra));
            });
        };
        let mut expected = TopK::default();
        find(&mut expected);
        Device::Cuda.begin_step(|| find(&mut found)).1.wait();
        found.collect();
        for row in 0..8 {
            assert_eq!(found.best(row), expected.best(row), "round {round}");
            assert_eq!(found.normalizer(row), expected.normalizer(row), "round {round}");
        }
        assert!(extra.iter().all(|&(row, column)| found.extra(row, column) == expected.extra(row, column)));
    }
}
