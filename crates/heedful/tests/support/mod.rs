//! Shared code of the tests against PyTorch: parameters that both sides generate from their names, and
//! errors.

/// Like `parameter_value` in `golden/parameters.py`: FNV-1a of name and draw, stepped by the golden ratio for
/// each element, mixed, mapped to [-1, 1) and scaled by kind.
pub(crate) fn parameter_value(name: &str, draw: u32, [rows, width]: [usize; 2], d_model: usize) -> Vec<f32> {
    let key = if draw == 0 { name.to_owned() } else { format!("{name}#{draw}") };
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    let base = key.bytes().fold(0x811C_9DC5, step);
    let unit = |i: usize| {
        let mut x = base.wrapping_add((i as u32).wrapping_mul(0x9E37_79B1));
        x = (x ^ (x >> 16)).wrapping_mul(0x7FEB_352D);
        x = (x ^ (x >> 15)).wrapping_mul(0x846C_A68B);
        x ^= x >> 16;
        (f64::from(x >> 8) * 2_f64.powi(-23) - 1.0) as f32
    };
    let (middle, scale) = if name.ends_with(".gamma") {
        (1.0, 0.2)
    } else if name.ends_with(".beta") || name.ends_with(".bias") {
        (0.0, 0.1)
    } else if name.ends_with("embedding.weight") || name == "output.weight" {
        (0.0, (3.0 / d_model as f64).sqrt() as f32)
    } else {
        (0.0, (6.0 / (rows + width) as f64).sqrt() as f32)
    };
    (0..rows * width).map(|i| middle + scale * unit(i)).collect()
}

/// The larger of two relative errors: the L2 distance, and the largest element error relative to the largest
/// element.
pub(crate) fn error(ours: &[f32], golden: &[f32]) -> f64 {
    let largest = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
    let worst = largest(&mut ours.iter().zip(golden).map(|(a, b)| f64::from((a - b).abs())));
    let scale = largest(&mut golden.iter().map(|b| f64::from(b.abs())));
    distance(ours, golden).max(worst / scale)
}

/// `|ours − golden| / |golden|`.
pub(crate) fn distance(ours: &[f32], golden: &[f32]) -> f64 {
    assert_eq!(ours.len(), golden.len());
    let difference: Vec<f32> = ours.iter().zip(golden).map(|(a, b)| a - b).collect();
    length(&difference) / length(golden)
}

/// √Σx².
pub(crate) fn length(values: &[f32]) -> f64 {
    values.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt()
}
