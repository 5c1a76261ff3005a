use heedful_tensor::ops::*;
use heedful_tensor::{DType, Rows, Tensor};

use super::{SHAPES, dropouts};
use crate::support::reference::M;
use crate::support::{Case, Values};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for [rows, width] in SHAPES {
        let named = |name: &str| format!("{name} {rows}×{width}");
        arithmetic(&mut cases, rows, width, &named);
        functions(&mut cases, rows, width, &named);
        reductions(&mut cases, rows, width, &named);
        shapes(&mut cases, rows, width, &named);
    }
    for [m, k, n] in [[1, 7, 33], [3, 33, 7], [54, 100, 33], [33, 64, 100]] {
        let case = Case::new(
            format!("matmul {m}×{k} by {k}×{n}"),
            |run| matmul(&run.x[0], &run.x[1], Rows::Many),
            |m| m[0].times(&m[1]),
        );
        cases.push(case.input(m, k, Values::Within(1.0)).input(k, n, Values::Within(1.0)));
    }
    cases
}

fn arithmetic(cases: &mut Vec<Case>, rows: usize, width: usize, named: &dyn Fn(&str) -> String) {
    let within = Values::Within(1.0);
    let two = |case: Case| case.input(rows, width, within).wide_input(rows, width, within);
    cases.push(two(Case::new(named("add"), |run| add(&run.x[0], &run.x[1]), |m| m[0].plus(&m[1], 1.0))));
    let minus = |m: &[M]| m[0].plus(&m[1], -1.0);
    cases.push(two(Case::new(named("subtract"), |run| subtract(&run.x[0], &run.x[1]), minus)));
    let times = |m: &[M]| M::build(m[0].rows, m[0].width, |r, c| m[0].at(r, c) * m[1].at(r, c));
    cases.push(two(Case::new(named("multiply"), |run| multiply(&run.x[0], &run.x[1]), times)));
    cases.push(
        Case::new(named("multiply by itself"), |run| multiply(&run.x[0], &run.x[0]), |m| m[0].map(|x| x * x))
            .input(rows, width, within),
    );
    let one = |case: Case| case.input(rows, width, within);
    cases.push(one(Case::new(named("scale"), |run| scale(&run.x[0], -2.5), |m| m[0].map(|x| -2.5 * x))));
    cases.push(one(Case::new(named("cast"), |run| cast(&run.x[0], DType::F32), |m| m[0].clone())));
    let narrowed = |run: &crate::support::Run| cast(&cast(&run.x[0], run.compute.dtype()), DType::F32);
    cases.push(
        Case::new(named("cast there and back"), narrowed, |m| m[0].clone()).wide_input(rows, width, within),
    );
    for rate in dropouts() {
        cases.push(one(Case::new(
            named(if rate.is_none() { "no dropout" } else { "dropout" }),
            move |run| dropout(&run.x[0], rate),
            move |m| m[0].dropped(rate),
        )));
    }
}

type Function = (&'static str, fn(&Tensor) -> Tensor, fn(f64) -> f64, Values);

fn functions(cases: &mut Vec<Case>, rows: usize, width: usize, named: &dyn Fn(&str) -> String) {
    let table: [Function; 2] =
        [("tanh", tanh, f64::tanh, Values::Within(3.0)), ("relu", relu, |x| x.max(0.0), Values::Beyond(0.1))];
    for (name, function, exact, values) in table {
        let case = Case::new(named(name), move |run| function(&run.x[0]), move |m| m[0].map(exact));
        cases.push(case.input(rows, width, values));
    }
}

fn reductions(cases: &mut Vec<Case>, rows: usize, width: usize, named: &dyn Fn(&str) -> String) {
    let total = |m: &[M]| M::build(1, 1, |_, _| m[0].sum());
    cases.push(Case::new(named("sum"), |run| sum(&run.x[0]), total).input(rows, width, Values::Positive));
    let repeated = |m: &[M]| M::build(m[0].rows, 3, |r, _| m[0].at(r, 0));
    let case = Case::new(named("repeat_column"), |run| repeat_column(&run.x[0], 3), repeated);
    cases.push(case.wide_input(rows, 1, Values::Within(1.0)));
}

fn shapes(cases: &mut Vec<Case>, rows: usize, width: usize, named: &dyn Fn(&str) -> String) {
    let within = Values::Within(1.0);
    let columns_joined = |m: &[M]| {
        M::build(m[0].rows, m[0].width + m[1].width, |r, c| {
            if c < m[0].width { m[0].at(r, c) } else { m[1].at(r, c - m[0].width) }
        })
    };
    cases.push(
        Case::new(named("concat_columns"), |run| concat_columns(&[&run.x[0], &run.x[1]]), columns_joined)
            .input(rows, width, within)
            .input(rows, 3, within),
    );
    let rows_joined = |m: &[M]| {
        M::build(m[0].rows + m[1].rows, m[0].width, |r, c| {
            if r < m[0].rows { m[0].at(r, c) } else { m[1].at(r - m[0].rows, c) }
        })
    };
    cases.push(
        Case::new(named("concat_rows"), |run| concat_rows(&[&run.x[0], &run.x[1]]), rows_joined)
            .input(rows, width, within)
            .input(2, width, within),
    );
    let one = |case: Case| case.input(rows, width, within);
    cases.push(one(Case::new(named("columns"), |run| columns(&run.x[0], 2..6), |m| m[0].columns(2..6))));
    let zeroed = |m: &[M]| {
        let at = |r, c| if (1..3).contains(&c) || c == 5 { 0.0 } else { m[0].at(r, c) };
        M::build(m[0].rows, m[0].width, at)
    };
    let zero = |run: &crate::support::Run| zero_columns(&run.x[0], &[1..3, 5..6, 2..3]);
    cases.push(one(Case::new(named("zero_columns"), zero, zeroed)));
    let picked = move |i: usize| i * i % rows;
    cases.push(one(Case::new(
        named("gather_rows"),
        move |run| gather_rows(&run.x[0], &(0..9).map(picked).collect::<Vec<_>>()),
        move |m| M::build(9, m[0].width, |r, c| m[0].at(picked(r), c)),
    )));
}
