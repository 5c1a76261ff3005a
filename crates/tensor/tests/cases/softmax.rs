use heedful_tensor::ops::{cross_entropy, log_softmax, softmax};

use super::SHAPES;
use crate::support::reference::M;
use crate::support::{Case, Values};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for [rows, width] in SHAPES {
        let case = Case::new(format!("softmax {rows}×{width}"), |run| softmax(&run.x[0]), |m| m[0].softmax());
        cases.push(case.input(rows, width, Values::Within(3.0)));
        let case = Case::new(
            format!("log_softmax {rows}×{width}"),
            |run| log_softmax(&run.x[0]),
            |m| m[0].softmax().map(f64::ln),
        );
        cases.push(case.input(rows, width, Values::Within(3.0)));
    }
    for [tokens, d, classes] in [[1, 7, 33], [54, 33, 100], [3, 100, 7], [40, 64, 64]] {
        for smoothing in [0.0_f32, 0.1] {
            let labels: Vec<u32> = (0..tokens as u32).map(|t| t * 7 % classes as u32).collect();
            let same = labels.clone();
            let case = Case::new(
                format!("cross_entropy {tokens}×{d}, {classes} classes, smoothing {smoothing}"),
                move |run| cross_entropy(&run.x[0], &run.p[0], &labels, smoothing, run.compute).loss,
                move |m| mean_loss(&m[0], &m[1], &same, f64::from(smoothing)),
            );
            let case = case.wide_input(tokens, d, Values::Within(1.0)).on_card();
            cases.push(case.param(classes, d, Values::Within(1.0)));
        }
    }
    cases
}

fn mean_loss(x: &M, weight: &M, labels: &[u32], smoothing: f64) -> M {
    let logs = x.times(&weight.transposed()).softmax().map(f64::ln);
    let others = smoothing / (weight.rows - 1) as f64;
    let loss = |t: usize| -> f64 {
        let share = |c: usize| if c == labels[t] as usize { 1.0 - smoothing } else { others };
        (0..weight.rows).map(|c| -share(c) * logs.at(t, c)).sum()
    };
    M::build(1, 1, |_, _| (0..x.rows).map(loss).sum::<f64>() / x.rows as f64)
}
