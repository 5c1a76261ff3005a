use heedful_tensor::ops::{CrossEntropyOptions, IGNORED, Projection, cross_entropy, softmax};

use super::SHAPES;
use crate::support::reference::M;
use crate::support::{Case, Values};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for [rows, width] in SHAPES {
        let case = Case::new(format!("softmax {rows}×{width}"), |run| softmax(&run.x[0]), |m| m[0].softmax());
        cases.push(case.input(rows, width, Values::Within(3.0)));
    }
    for [tokens, d, classes] in [[1, 7, 33], [54, 33, 100], [3, 100, 7], [40, 64, 64]] {
        for smoothing in [0.0_f32, 0.1] {
            // With smoothing, every fifth token is ignored.
            let is_ignored = |t: u32| smoothing > 0.0 && t % 5 == 2;
            let label = |t: u32| if is_ignored(t) { IGNORED } else { t * 7 % classes as u32 };
            let labels: Vec<u32> = (0..tokens as u32).map(label).collect();
            let same = labels.clone();
            let case = Case::new(
                format!("cross_entropy {tokens}×{d}, {classes} classes, smoothing {smoothing}"),
                move |run| {
                    let options = CrossEntropyOptions { smoothing, r_drop: None, compute: run.compute };
                    cross_entropy(&run.x[0], &run.p[0], &labels, options).loss
                },
                move |m| mean_loss(&m[0].times(&m[1].transposed()), &same, f64::from(smoothing)),
            );
            let case = case.wide_input(tokens, d, Values::Within(1.0));
            cases.push(case.param(classes, d, Values::Within(1.0)));
            let labels: Vec<u32> = (0..tokens as u32).map(label).collect();
            let same = labels.clone();
            let case = Case::new(
                format!("cross_entropy with bias {tokens}×{d}, {classes} classes, smoothing {smoothing}"),
                move |run| {
                    let options = CrossEntropyOptions { smoothing, r_drop: None, compute: run.compute };
                    let projection = Projection { weight: &run.p[0], bias: Some(&run.p[1]) };
                    cross_entropy(&run.x[0], projection, &labels, options).loss
                },
                move |m| {
                    let logits = m[0].times(&m[1].transposed()).plus_row(&m[2]);
                    mean_loss(&logits, &same, f64::from(smoothing))
                },
            );
            cases.push(
                case.wide_input(tokens, d, Values::Within(1.0)).param(classes, d, Values::Within(1.0)).param(
                    1,
                    classes,
                    Values::Within(1.0),
                ),
            );
        }
    }
    for ([pairs, d, classes], smoothing, alpha) in [
        ([1, 7, 33], 0.0_f32, 2.0_f32),
        ([27, 33, 100], 0.1, 5.0),
        ([3, 100, 7], 0.1, 1.0),
        // More than one chunk of a task's rows.
        ([150, 16, 64], 0.1, 5.0),
    ] {
        let label = |row: usize| (row % pairs * 7 % classes) as u32;
        let labels: Vec<u32> = (0..2 * pairs).map(label).collect();
        let same = labels.clone();
        let case = Case::new(
            format!("cross_entropy 2·{pairs}×{d}, {classes} classes, smoothing {smoothing}, R-Drop {alpha}"),
            move |run| {
                let options = CrossEntropyOptions { smoothing, r_drop: Some(alpha), compute: run.compute };
                cross_entropy(&run.x[0], &run.p[0], &labels, options).loss
            },
            move |m| {
                let logits = m[0].times(&m[1].transposed());
                let divergence = mean_divergence(&logits);
                mean_loss(&logits, &same, f64::from(smoothing)).plus(&divergence, 0.5 * f64::from(alpha))
            },
        );
        let case = case.wide_input(2 * pairs, d, Values::Within(1.0));
        cases.push(case.param(classes, d, Values::Within(1.0)));
        let labels: Vec<u32> = (0..2 * pairs).map(label).collect();
        let same = labels.clone();
        let case = Case::new(
            format!("cross_entropy with bias 2·{pairs}×{d}, {classes} classes, R-Drop {alpha}"),
            move |run| {
                let options = CrossEntropyOptions { smoothing, r_drop: Some(alpha), compute: run.compute };
                let projection = Projection { weight: &run.p[0], bias: Some(&run.p[1]) };
                cross_entropy(&run.x[0], projection, &labels, options).loss
            },
            move |m| {
                let logits = m[0].times(&m[1].transposed()).plus_row(&m[2]);
                let divergence = mean_divergence(&logits);
                mean_loss(&logits, &same, f64::from(smoothing)).plus(&divergence, 0.5 * f64::from(alpha))
            },
        );
        cases.push(
            case.wide_input(2 * pairs, d, Values::Within(1.0)).param(classes, d, Values::Within(1.0)).param(
                1,
                classes,
                Values::Within(1.0),
            ),
        );
    }
    cases
}

/// ½ (KL(p‖p') + KL(p'‖p)), averaged over the tokens; each half of the rows contains all tokens.
fn mean_divergence(logits: &M) -> M {
    let p = logits.softmax();
    let tokens = p.rows / 2;
    let divergence = |a: usize, b: usize| -> f64 {
        (0..p.width).map(|c| p.at(a, c) * (p.at(a, c).ln() - p.at(b, c).ln())).sum()
    };
    let both = |t: usize| 0.5 * (divergence(t, t + tokens) + divergence(t + tokens, t));
    M::build(1, 1, |_, _| (0..tokens).map(both).sum::<f64>() / tokens as f64)
}

fn mean_loss(logits: &M, labels: &[u32], smoothing: f64) -> M {
    let logs = logits.softmax().map(f64::ln);
    let others = smoothing / (logits.width - 1) as f64;
    let loss = |t: usize| -> f64 {
        let share = |c: usize| if c == labels[t] as usize { 1.0 - smoothing } else { others };
        (0..logits.width).map(|c| -share(c) * logs.at(t, c)).sum()
    };
    let counted: Vec<usize> = (0..logits.rows).filter(|&t| labels[t] != IGNORED).collect();
    M::build(1, 1, |_, _| counted.iter().map(|&t| loss(t)).sum::<f64>() / counted.len() as f64)
}
