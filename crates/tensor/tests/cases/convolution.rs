use heedful_tensor::Ragged;
use heedful_tensor::ops::{ConvolutionOptions, Padding, convolution, glu};

use super::SHAPES;
use crate::support::reference::M;
use crate::support::{Case, Values};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (lengths, inputs, outputs) in
        [(vec![1], 7, 33), (vec![1, 50, 3], 33, 7), (vec![2, 1, 1], 100, 33), (vec![5, 240], 7, 100)]
    {
        for (taps, padding) in
            [(1, Padding::Same), (3, Padding::Same), (5, Padding::Same), (1, Padding::Causal)]
        {
            cases.push(with_bias(&lengths, [inputs, outputs], taps, 1, padding));
        }
        for taps in [2, 3, 4] {
            cases.push(without_bias(&lengths, [inputs, outputs], taps, 1));
        }
    }
    for (lengths, inputs, outputs) in [(vec![1], 7, 33), (vec![1, 50, 3], 33, 7), (vec![5, 240], 7, 20)] {
        cases.push(with_bias(&lengths, [inputs, outputs], 3, 4, Padding::Same));
        cases.push(with_bias(&lengths, [inputs, outputs], 5, 9, Padding::Same));
        cases.push(without_bias(&lengths, [inputs, outputs], 2, 2));
        cases.push(without_bias(&lengths, [inputs, outputs], 3, 27));
    }
    for [rows, width] in SHAPES {
        let case = Case::new(
            format!("glu {rows}×{}", 2 * width),
            |run| glu(&run.x[0]),
            |m| {
                let d = m[0].width / 2;
                M::build(m[0].rows, d, |r, c| m[0].at(r, c) / (1.0 + (-m[0].at(r, d + c)).exp()))
            },
        );
        cases.push(case.input(rows, 2 * width, Values::Within(3.0)));
    }
    cases
}

/// The input is f32, like a residual stream.
fn with_bias(
    lengths: &[usize],
    [inputs, outputs]: [usize; 2],
    taps: usize,
    dilation: usize,
    padding: Padding,
) -> Case {
    let sequences = Ragged::from_lengths(lengths.iter().copied());
    let (rows, same) = (sequences.tokens(), sequences.clone());
    Case::new(
        format!("convolution {padding:?} of {taps} taps with dilation {dilation} over {lengths:?} from {inputs} to {outputs}"),
        move |run| {
            let options = ConvolutionOptions { taps, dilation, padding, compute: run.compute };
            convolution(&run.x[0], &sequences, &run.p[0], Some(&run.p[1]), options)
        },
        move |m| reference(&m[0], &same, &m[1], [taps, dilation], padding).plus_row(&m[2]),
    )
    .wide_input(rows, inputs, Values::Within(1.0))
    .param(taps * inputs, outputs, Values::Within(1.0))
    .param(1, outputs, Values::Within(1.0))
}

fn without_bias(lengths: &[usize], [inputs, outputs]: [usize; 2], taps: usize, dilation: usize) -> Case {
    let sequences = Ragged::from_lengths(lengths.iter().copied());
    let (rows, same) = (sequences.tokens(), sequences.clone());
    Case::new(
        format!("causal convolution of {taps} taps with dilation {dilation} over {lengths:?} from {inputs} to {outputs}, no bias"),
        move |run| {
            let options = ConvolutionOptions { taps, dilation, padding: Padding::Causal, compute: run.compute };
            convolution(&run.x[0], &sequences, &run.p[0], None, options)
        },
        move |m| reference(&m[0], &same, &m[1], [taps, dilation], Padding::Causal),
    )
    .input(rows, inputs, Values::Within(1.0))
    .param(taps * inputs, outputs, Values::Within(1.0))
}

fn reference(x: &M, sequences: &Ragged, weight: &M, [taps, dilation]: [usize; 2], padding: Padding) -> M {
    let before = if padding == Padding::Same { taps / 2 } else { taps - 1 };
    let mut out = M::build(x.rows, weight.width, |_, _| 0.0);
    for range in sequences.ranges() {
        for row in range.clone() {
            for tap in 0..taps {
                let Some(seen) = (row + tap * dilation).checked_sub(before * dilation) else { continue };
                if !range.contains(&seen) {
                    continue;
                }
                for c in 0..weight.width {
                    let products = (0..x.width).map(|i| x.at(seen, i) * weight.at(tap * x.width + i, c));
                    out.values[row * weight.width + c] += products.sum::<f64>();
                }
            }
        }
    }
    out
}
