//! From the seconds of a group to its cells, and what is printed beside them.

use anyhow::{Context, Result};
use heedful::tensor::Precision;
use heedful_bench::{Cell, Paired, Quartiles, quantile};
use serde_json::json;

use super::race::{Processes, Raced};
use super::spec::{Kind, Spec};
use super::work::Work;

const BENCH: &str = "translate";

/// All cells of a group.
pub(super) fn cells(raced: &Raced, work: &Work, processes: &mut Processes<'_>) -> Result<Vec<Cell>> {
    let mut cells = Vec::new();
    for &(spec, pair) in &raced.pairs {
        let name = spec.name();
        let paired = raced.paired(pair);
        let tokens = pair.map(|side| raced.tokens[side] as f64);
        let speed = match spec.kind {
            Kind::Trained => Cell::rate(BENCH, &name, "sent./s", work.sentences() as f64, &paired),
            _ => Cell::rates(BENCH, &name, "tokens/s", tokens, &paired),
        };
        let (same, all) = raced.same(pair);
        println!(
            "{name}: {:.0} {}, {:.2} of CTranslate2 in {}; {same} of {all} outputs are the same",
            speed.ours(),
            speed.unit(),
            speed.ratio(),
            raced.sides[pair[1]].compute
        );
        cells.push(speed);
        if spec.kind == Kind::Trained {
            cells.push(Cell::rates(BENCH, &format!("{name} tokens"), "tokens/s", tokens, &paired));
        }
        if spec.kind == Kind::Busy {
            cells.push(raced.kept(&name, pair));
        }
        if spec.batch == 1 {
            cells.extend(latencies(&name, raced, pair));
        }
        if spec.kind != Kind::Busy {
            limits(spec, raced, pair[0], work, processes)?;
        }
    }
    cells.extend(scaling(raced));
    Ok(cells)
}

/// Median and 99th percentile of what one sentence takes.
fn latencies(name: &str, raced: &Raced, pair: [usize; 2]) -> Vec<Cell> {
    let cell = |(label, share)| {
        let [ours, peer] = pair.map(|side| vec![1e3 * quantile(&raced.batches[side], share)]);
        Cell::cost(BENCH, &format!("{name} {label}"), "ms", &Paired { ours, peer })
    };
    [("p50", 0.5), ("p99", 0.99)].map(cell).into()
}

/// How much faster more threads are.
fn scaling(raced: &Raced) -> Vec<Cell> {
    let mut cells = Vec::new();
    for &(few, pair_of_few) in &raced.pairs {
        let rest = raced.pairs.iter().filter(|(spec, _)| spec.precision == few.precision);
        let Some((many, pair)) =
            rest.filter(|(spec, _)| spec.threads > few.threads).min_by_key(|(s, _)| s.threads)
        else {
            continue;
        };
        cells.push(raced.scaling(&format!("{} over {}t", many.name(), few.threads), pair_of_few, *pair));
    }
    cells
}

/// Prints how near our side comes to what the machine could do at most: for one sentence to the reading of weights, for
/// many to the arithmetic of their products.
fn limits(spec: Spec, raced: &Raced, ours: usize, work: &Work, processes: &mut Processes<'_>) -> Result<()> {
    let Some(size) = spec.kind.size() else { return Ok(()) };
    let (weights, side) = (size.use_of_weights(), &raced.sides[ours]);
    let width = match spec.precision {
        Precision::F32 => 4,
        Precision::Bf16 => 2,
        Precision::Int8 => 1,
    };
    let request = json!({"op": "limits", "compute": side.compute, "bytes": width * weights.weights()});
    let limits = processes.of(side)?.ask(&request)?;
    let limit = |name: &str| limits[name].as_f64().with_context(|| format!("no {name} in {limits}"));
    let seconds = Quartiles::of(&raced.alone[ours]).median / work.batches.len() as f64;
    let (what, reached, limit) = if spec.batch == 1 {
        ("GB/s of weights", (width * weights.reads()) as f64 / seconds, limit("bandwidth")?)
    } else {
        (
            "Gop/s of products",
            weights.operations(spec.batch, spec.beam) as f64 / seconds,
            limit("operations")?,
        )
    };
    let (name, share) = (spec.name(), 100.0 * reached / limit);
    println!("{name}: {:.1} {what}, {share:.1} % of the machine's {:.1}", reached / 1e9, limit / 1e9);
    Ok(())
}
