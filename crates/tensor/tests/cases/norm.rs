use heedful_tensor::ops::{NormOptions, batch_norm, layer_norm, residual, residual_norm};

use super::{SHAPES, dropouts};
use crate::support::reference::M;
use crate::support::{Case, Values};

pub(crate) fn cases() -> Vec<Case> {
    let epsilon = 1e-5;
    let mut cases = Vec::new();
    // The last are wider than a GPU warp can hold.
    for [rows, width] in SHAPES.into_iter().chain([[3, 1030], [5, 2048]]) {
        let case = Case::new(
            format!("layer_norm {rows}×{width}"),
            move |run| {
                let options = NormOptions { epsilon, compute: run.compute };
                layer_norm(&run.x[0], &run.p[0], &run.p[1], options)
            },
            move |m| m[0].layer_norm(&m[1], &m[2], f64::from(epsilon)),
        );
        cases.push(
            case.wide_input(rows, width, Values::Within(2.0)).param(1, width, Values::Positive).param(
                1,
                width,
                Values::Within(1.0),
            ),
        );
        for dropout in dropouts() {
            let kind = if dropout.is_none() { "" } else { ", dropout" };
            let case = Case::new(
                format!("residual_norm {rows}×{width}{kind}"),
                move |run| {
                    let options = NormOptions { epsilon, compute: run.compute };
                    residual_norm(&run.x[0], &run.x[1], &run.p[0], &run.p[1], dropout, options)
                },
                move |m| m[0].plus(&m[1].dropped(dropout), 1.0).layer_norm(&m[2], &m[3], f64::from(epsilon)),
            );
            cases.push(
                case.wide_input(rows, width, Values::Within(1.0))
                    .input(rows, width, Values::Within(1.0))
                    .param(1, width, Values::Positive)
                    .param(1, width, Values::Within(1.0)),
            );
            let case = Case::new(
                format!("residual {rows}×{width}{kind}"),
                move |run| residual(&run.x[0], &run.x[1], dropout),
                move |m| m[0].plus(&m[1].dropped(dropout), 1.0),
            );
            cases.push(case.wide_input(rows, width, Values::Within(1.0)).input(
                rows,
                width,
                Values::Within(1.0),
            ));
        }
    }
    // The last has more rows than one partial sum.
    for [rows, width] in SHAPES.into_iter().chain([[150, 3]]) {
        let case = Case::new(
            format!("batch_norm {rows}×{width}"),
            move |run| batch_norm(&run.x[0], &run.p[0], &run.p[1], epsilon).y,
            // A column is a row of the transposed matrix; γ and β apply to columns.
            move |m| {
                let [ones, zeros] = [1.0, 0.0].map(|value| M::build(1, rows, |_, _| value));
                let standard = m[0].transposed().layer_norm(&ones, &zeros, f64::from(epsilon)).transposed();
                M::build(rows, width, |r, c| m[1].at(0, c) * standard.at(r, c) + m[2].at(0, c))
            },
        );
        cases.push(
            case.wide_input(rows, width, Values::Within(2.0)).param(1, width, Values::Positive).param(
                1,
                width,
                Values::Within(1.0),
            ),
        );
    }
    cases
}
