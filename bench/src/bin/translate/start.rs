//! What it costs to start: seconds from the disk to the first translation, and memory, each side in processes of its own.

use anyhow::{Context, Result};
use heedful::tensor::Precision;
use heedful_bench::{Cell, race};
use serde_json::json;

use super::model::{Model, Size, VOCABULARY};
use super::process::{Cores, Engine, Process, Setting};
use super::spec::Only;
use super::work::{Outputs, Work};

const BENCH: &str = "translate";

const PRECISIONS: [Precision; 3] = [Precision::Int8, Precision::Bf16, Precision::F32];

fn name(size: Size, precision: Precision, threads: usize, what: &str) -> String {
    let small = if size == Size::Small { "small " } else { "" };
    format!("{small}{precision} {threads}t {what}")
}

/// Whether there are cells of a model to measure.
pub(super) fn is_wanted(size: Size, threads: usize, only: &Only) -> bool {
    let fits = |precision, what| only.fits(&name(size, precision, threads, what));
    PRECISIONS.iter().any(|&precision| ["load", "memory", "peak"].iter().any(|what| fits(precision, what)))
}

/// All cells of a model that are wanted: `int8 2t load`, `int8 2t memory`, `int8 2t peak`.
pub(super) fn cells(
    model: &Model,
    size: Size,
    threads: usize,
    only: &Only,
    rounds: usize,
) -> Result<Vec<Cell>> {
    let setting = Setting { threads, isa: None, cores: Cores::Any };
    let mut cells = Vec::new();
    for precision in PRECISIONS {
        let name = |what: &str| name(size, precision, threads, what);
        // The peer's smallest type, which has no bf16 on most processors.
        let theirs = if precision == Precision::F32 { "float32" } else { "int8" };
        let sides = [(Engine::Ours, precision.to_string()), (Engine::CTranslate2, theirs.to_owned())];
        if only.fits(&name("load")) {
            let [ours, peer] = &sides;
            let paired = race(rounds, || load(model, setting, ours), || load(model, setting, peer))?;
            cells.push(Cell::cost(BENCH, &name("load"), "s", &paired));
        }
        if only.fits(&name("memory")) || only.fits(&name("peak")) {
            let [ours, peer] = [memory(model, setting, &sides[0])?, memory(model, setting, &sides[1])?];
            cells.push(Cell::memory(BENCH, &name("memory"), ours[0], peer[0]));
            cells.push(Cell::memory(BENCH, &name("peak"), ours[1], peer[1]));
        }
    }
    for cell in &cells {
        println!("{}: {:.3} {}, ratio {:.2}", cell.name(), cell.ours(), cell.unit(), cell.ratio());
    }
    Ok(cells)
}

/// Seconds until a new process has translated one sentence, without the start of the process itself. The first translation
/// is part of it: what one side prepares when it opens a model, the other may prepare when it is first used.
fn load(model: &Model, setting: Setting, side: &(Engine, String)) -> Result<f64> {
    let (opened, mut process) = opened(model, setting, side)?;
    let first = Work::forced(VOCABULARY, 1, 1).first();
    Ok(opened + process.translate(&first, &side.1, 0.0, Outputs::Unwanted)?.pass(&first))
}

/// Resident memory of a process that has translated single sentences and large batches, and its peak.
fn memory(model: &Model, setting: Setting, side: &(Engine, String)) -> Result<[f64; 2]> {
    let (_, mut process) = opened(model, setting, side)?;
    for (batch, beam) in [(1, 1), (32, 4), (32, 4)] {
        process.translate(&Work::forced(VOCABULARY, batch, beam), &side.1, 0.0, Outputs::Unwanted)?;
    }
    let answer = process.ask(&json!({"op": "memory"}))?;
    let bytes = |name: &str| answer[name].as_f64().with_context(|| format!("no {name} in {answer}"));
    Ok([bytes("resident")?, bytes("peak")?])
}

fn opened(model: &Model, setting: Setting, side: &(Engine, String)) -> Result<(f64, Process)> {
    let (engine, compute) = side;
    let mut process = Process::start(*engine, setting)?;
    let seconds = process.open(*engine, model, compute, setting.threads)?;
    Ok((seconds, process))
}
