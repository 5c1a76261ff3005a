//! Translation against CTranslate2 on the same weights: `cargo xtask bench translate [MODEL FILE] [OPTIONS]`.
//!
//! ```text
//! int8 b32 beam4 2t           our compute type, batch size, beam, threads: tokens/s with random weights, 25 tokens in and 25 out
//! small int8 b32 beam4 2t     the same with a smaller model
//! int8 b32 beam4 2t avx2      the same with an older instruction set on both sides
//! int8 b32 beam4 2t lists     the same with shortlists, the peer's as its vocabulary map; words are as frequent as in text
//! int8 b32 beam4 2t trained   a trained model that ends its outputs itself: sentences/s; `… tokens`: tokens/s
//! int8 beam4 2t file          the same with a whole file at once, which each side divides into batches
//! int8 b32 beam4 2t trained lists   a trained model with its shortlist, if it has one
//! … p50, … p99                latency of a sentence at batch 1
//! … 2t over 1t                speedup of more threads
//! ```
//!
//! For each cell the peer uses the fastest of its compute types and thread splits (float32 if ours is f32),
//! and returns scores as ours does. `--help` lists the options.

mod cells;
mod model;
mod options;
mod process;
mod race;
mod spec;
mod work;
mod worker;

use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::Parser;
use heedful::tasks::translate::Translator;
use heedful::tensor::cpu::isa;
use heedful_bench::{Cell, record, report};
use serde_json::json;

use self::model::{Model, Size, VOCABULARY};
use self::options::Options;
use self::process::Process;
use self::race::{Processes, race};
use self::spec::{Spec, Variant};
use self::work::Work;

fn main() -> Result<()> {
    if std::env::args().nth(1).is_some_and(|first| first == "--worker") {
        return worker::serve();
    }
    measure(&Options::parse())
}

fn measure(options: &Options) -> Result<()> {
    let about = Process::converter()?.ask(&json!({"op": "types"}))?;
    let types: Vec<String> = serde_json::from_value(about["types"].clone()).context("the peer's types")?;
    println!(
        "{}, threads {:?}, {} rounds of {} s; CTranslate2 {} computes in {}",
        isa::current(),
        options.threads(),
        options.rounds,
        options.seconds,
        about["version"].as_str().unwrap_or_default(),
        types.join(", ")
    );
    let cells = match options.model.as_deref().zip(options.file.as_deref()) {
        Some((model, file)) => trained(model, file, options, &types)?,
        None => random(options, &types)?,
    };
    if cells.is_empty() {
        bail!("no cell matches --only");
    }
    report("translate", &cells)
}

/// Models with random weights.
fn random(options: &Options, types: &[String]) -> Result<Vec<Cell>> {
    let mut specs = spec::random(&options.threads());
    specs.retain(|spec| options.only.matches(&spec.name()));
    let mut cells = Vec::new();
    for size in [Size::Base, Size::Small] {
        let of_size: Vec<Spec> =
            specs.iter().copied().filter(|spec| spec.variant.size() == Some(size)).collect();
        if of_size.is_empty() {
            continue;
        }
        let model = Model::random(size)?;
        let work = |spec: Spec| match spec.variant {
            Variant::Lists => Work::lists(VOCABULARY, spec.batch, spec.beam),
            _ => Work::forced(VOCABULARY, spec.batch, spec.beam),
        };
        groups(of_size, &model, None, work, options, types, &mut cells)?;
    }
    Ok(cells)
}

/// A trained model and a file of sentences.
fn trained(folder: &Path, file: &Path, options: &Options, types: &[String]) -> Result<Vec<Cell>> {
    let translator = Translator::open(folder)?;
    let sentences = model::sentences(&translator, file, options.references.as_deref())?;
    let model = Model::trained(folder, &translator)?;
    let mut specs = spec::trained(&options.threads());
    specs.retain(|spec| options.only.matches(&spec.name()));
    specs.retain(|spec| spec.variant != Variant::TrainedLists || model.has_lists);
    let work = |spec: Spec| match spec.variant {
        Variant::File => Work::file(sentences.clone(), spec.beam),
        Variant::TrainedLists => Work::natural(sentences.clone(), spec.batch, spec.beam).with_lists(),
        _ => Work::natural(sentences.clone(), spec.batch, spec.beam),
    };
    let mut cells = Vec::new();
    groups(specs, &model, Some(&translator), work, options, types, &mut cells)?;
    Ok(cells)
}

fn groups(
    specs: Vec<Spec>,
    model: &Model,
    translator: Option<&Translator>,
    work: impl Fn(Spec) -> Work,
    options: &Options,
    types: &[String],
    found: &mut Vec<Cell>,
) -> Result<()> {
    let mut processes = Processes::new(model);
    for group in spec::groups(specs) {
        let work = work(group[0]);
        let result = race(&group, &work, &mut processes, types, options)?;
        found.extend(cells::cells(&result, &work));
        if let (Some(translator), Some(_)) = (translator, &options.references) {
            cells::print_bleu(&result, &work, translator);
        }
        record("translate", found)?;
    }
    Ok(())
}
