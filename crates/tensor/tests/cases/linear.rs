use heedful_tensor::ops::{Activation, LinearOptions, Projection, linear, project};

use super::dropouts;
use crate::support::reference::{gelu, gelu_tanh, silu};
use crate::support::{Case, Values};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for [rows, inputs, outputs] in [[1, 7, 33], [3, 33, 100], [54, 100, 7], [33, 64, 64]] {
        for activation in
            [Activation::Identity, Activation::Relu, Activation::Gelu, Activation::GeluTanh, Activation::Silu]
        {
            for (dropout, kind) in dropouts().into_iter().zip(["", ", dropout"]) {
                let reference_activation = move |x: f64| match activation {
                    Activation::Identity => x,
                    Activation::Relu => x.max(0.0),
                    Activation::Gelu => gelu(x),
                    Activation::GeluTanh => gelu_tanh(x),
                    Activation::Silu => silu(x),
                };
                let name = format!("linear {activation:?} {rows}×{inputs} by {inputs}×{outputs}{kind}");
                let case = Case::new(
                    name,
                    move |run| {
                        let options = LinearOptions { activation, dropout, compute: run.compute };
                        linear(&run.x[0], &run.p[0], Some(&run.p[1]), options)
                    },
                    move |m| m[0].times(&m[1]).plus_row(&m[2]).map(reference_activation).dropped(dropout),
                );
                // The bias is larger than any sum, so that no ReLU input is near its kink.
                let size = 1.0 / (inputs as f32).sqrt();
                cases.push(
                    case.wide_input(rows, inputs, Values::Within(size))
                        .param(inputs, outputs, Values::Within(1.0))
                        .param(1, outputs, Values::Beyond(2.0)),
                );
            }
        }
        let case = Case::new(
            format!("linear without bias {rows}×{inputs} by {inputs}×{outputs}"),
            |run| {
                let [dropout, _] = dropouts();
                let options =
                    LinearOptions { activation: Activation::Identity, dropout, compute: run.compute };
                linear(&run.x[0], &run.p[0], None, options)
            },
            |m| m[0].times(&m[1]),
        );
        cases.push(case.input(rows, inputs, Values::Within(1.0)).param(inputs, outputs, Values::Within(1.0)));
        let case = Case::new(
            format!("project {rows}×{inputs} by {outputs}×{inputs} transposed"),
            |run| project(&run.x[0], &run.p[0], run.compute),
            |m| m[0].times(&m[1].transposed()),
        );
        cases.push(case.wide_input(rows, inputs, Values::Within(1.0)).param(
            outputs,
            inputs,
            Values::Within(1.0),
        ));
        let case = Case::new(
            format!("project with bias {rows}×{inputs} by {outputs}×{inputs} transposed"),
            |run| project(&run.x[0], Projection { weight: &run.p[0], bias: Some(&run.p[1]) }, run.compute),
            |m| m[0].times(&m[1].transposed()).plus_row(&m[2]),
        );
        cases.push(
            case.wide_input(rows, inputs, Values::Within(1.0))
                .param(outputs, inputs, Values::Within(1.0))
                .param(1, outputs, Values::Within(1.0)),
        );
    }
    cases
}
