//! From the seconds of a group to its cells, and what is printed beside them.

use heedful_bench::{Cell, Paired, quantile};

use super::race::Raced;
use super::spec::Kind;
use super::work::Work;

const BENCH: &str = "translate";

/// All cells of a group.
pub(super) fn cells(raced: &Raced, work: &Work) -> Vec<Cell> {
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
        if spec.batch == 1 {
            cells.extend(latencies(&name, raced, pair));
        }
    }
    cells.extend(scaling(raced));
    cells
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
