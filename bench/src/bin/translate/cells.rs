//! Computes the cells of a group from its measurements, and prints a summary.

use heedful::metrics::{BleuOptions, corpus_bleu};
use heedful::tasks::translate::Translator;
use heedful_bench::{Cell, Paired, quantile};

use super::race::RaceResult;
use super::spec::Variant;
use super::work::Work;

const BENCH: &str = "translate";

/// All cells of a group.
pub(super) fn cells(result: &RaceResult, work: &Work) -> Vec<Cell> {
    let mut cells = Vec::new();
    for &(spec, pair) in &result.pairs {
        let name = spec.name();
        let paired = result.paired(pair);
        let tokens = pair.map(|side| result.tokens[side] as f64);
        let speed = match spec.variant {
            Variant::Trained | Variant::TrainedLists | Variant::File => {
                Cell::rate(BENCH, &name, "sent./s", work.sentences() as f64, &paired)
            }
            _ => Cell::rates(BENCH, &name, "tokens/s", tokens, &paired),
        };
        let (same, all) = result.identical_outputs(pair);
        println!(
            "{name}: {:.0} {}, {:.2} of CTranslate2 in {}; {same} of {all} outputs are identical",
            speed.ours(),
            speed.unit(),
            speed.ratio(),
            result.sides[pair[1]].compute
        );
        cells.push(speed.with_peer_settings(result.sides[pair[1]].compute.clone()));
        if spec.variant.size().is_none() {
            cells.push(Cell::rates(BENCH, &format!("{name} tokens"), "tokens/s", tokens, &paired));
        }
        if spec.batch == 1 {
            cells.extend(latencies(&name, result, pair));
        }
    }
    cells.extend(scaling(result));
    cells
}

/// Prints BLEU of both sides of every cell.
pub(super) fn print_bleu(result: &RaceResult, work: &Work, translator: &Translator) {
    for &(spec, pair) in &result.pairs {
        let bleu = pair.map(|side| {
            let texts =
                result.outputs[side].iter().map(|tokens| translator.tokenizers().target.decode(tokens));
            let texts: Vec<String> = texts.collect();
            corpus_bleu(&texts, std::slice::from_ref(&work.references), &BleuOptions::default()).score
        });
        println!("{}: BLEU {:.2}, CTranslate2 {:.2}", spec.name(), bleu[0], bleu[1]);
    }
}

/// Median and 99th percentile of the latency of one sentence.
fn latencies(name: &str, result: &RaceResult, pair: [usize; 2]) -> Vec<Cell> {
    let cell = |(label, share)| {
        let [ours, peer] = pair.map(|side| vec![1e3 * quantile(&result.batches[side], share)]);
        Cell::cost(BENCH, &format!("{name} {label}"), "ms", &Paired { ours, peer })
    };
    [("p50", 0.5), ("p99", 0.99)].map(cell).into()
}

/// The speedup of more threads.
fn scaling(result: &RaceResult) -> Vec<Cell> {
    let mut cells = Vec::new();
    for &(few, pair_of_few) in &result.pairs {
        let rest = result.pairs.iter().filter(|(spec, _)| spec.precision == few.precision);
        let Some((many, pair)) =
            rest.filter(|(spec, _)| spec.threads > few.threads).min_by_key(|(s, _)| s.threads)
        else {
            continue;
        };
        cells.push(result.scaling(&format!("{} over {}t", many.name(), few.threads), pair_of_few, *pair));
    }
    cells
}
