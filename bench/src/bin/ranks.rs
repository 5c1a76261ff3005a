//! What the other ranks cost beside a training step of the paper's base model: `mpirun -n 2 … ranks [STEPS]`. No peer.
//!
//! ```text
//! alone       a step with as many batches as one rank has here, without a group
//! together    a step of all ranks: each has that many batches
//! talking     the thread of the group is busy: gradients, parameters, and waiting for whoever is late
//! waiting     the part of it in which the step waits: what the backward pass does not hide
//! ```
//!
//! `cargo xtask bench` has no launcher: build it with `cargo build --profile bench -p heedful-bench --bin ranks`.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use heedful::data::batch::Batch;
use heedful::recipe::{Preset, Recipe};
use heedful::train::Trainer;
use heedful::train::run;
use heedful::train::team::Team;
use heedful_tensor::Device;
use heedful_tensor::collective::Times;
use heedful_tensor::cpu::threads;
use heedful_tensor::random::Stream;

const VOCABULARY: usize = 32_000;
const SENTENCES: usize = 64;
const TOKENS: usize = 32;
const WARM_UP: usize = 2;

fn main() -> Result<()> {
    let steps = std::env::args().nth(1).map_or(Ok(6), |steps| steps.parse());
    let steps: usize = steps.context("usage: mpirun -n RANKS ranks [STEPS]")?;
    let team = Team::join_mpi()?;
    let threads = team.divide_cores()?;
    if !team.is_leader() {
        return Ok(run::follow(&team)?);
    }
    if team.size() == 1 {
        bail!("one rank has nobody to talk to: mpirun -n 2 … ranks");
    }
    let mut recipe = Recipe::preset(Preset::Base);
    recipe.training.accumulate = team.size();
    let config = recipe.model_config([VOCABULARY; 2], 2)?;
    let batches: Vec<Batch> = (0..team.size() as u64).map(batch).collect::<Result<_>>()?;

    let mut alone = Trainer::new(config.build(1)?, recipe.trainer_options());
    let parameters = alone.model().params().count();
    let alone = median(steps, || alone.step(&batches[0]).map(|_| ()).map_err(Into::into))?;
    let mut together = Trainer::leading(&team, Device::Cpu, config.build(1)?, &config, &recipe)?;
    let (mut spent, mut step) = (Vec::new(), Vec::new());
    for _ in 0..WARM_UP + steps {
        let (before, began) = (team.group().times(), Instant::now());
        together.step_over(&batches)?;
        step.push(began.elapsed());
        spent.push(since(before, team.group().times()));
    }
    let together = middle(step.split_off(WARM_UP));
    let talking = middle(spent[WARM_UP..].iter().map(|times| times.talking).collect());
    let waiting = middle(spent[WARM_UP..].iter().map(|times| times.waiting).collect());
    println!(
        "base, {:.1} million parameters, {} ranks, {threads} ({} here), a batch of {} + {} tokens each",
        parameters as f64 / 1e6,
        team.size(),
        threads::thread_count(),
        SENTENCES * TOKENS,
        SENTENCES * (TOKENS + 1),
    );
    println!("alone {alone:.1?}  together {together:.1?}  talking {talking:.1?}  waiting {waiting:.1?}");
    simulate(alone, 4.0 * parameters as f64);
    Ok(())
}

/// Efficiency on more machines: how much of their time is the step itself.
///
/// Assumed: every machine sends and receives at the full rate at once, nobody waits for anybody late, adding up and latency cost
/// nothing, the backward pass is two thirds of a step and hides gradients evenly, and parameters come back unhidden.
fn simulate(step: Duration, bytes: f64) {
    println!(
        "| machines | 10 Gbit/s, 1 batch | 8 batches | 100 Gbit/s, 1 batch | 8 batches |\n|---|---|---|---|---|"
    );
    for machines in [2, 4, 8, 16, 32, 64] {
        let cell = |rate: f64, batches: f64| {
            let compute = batches * step.as_secs_f64();
            let moved = bytes * (1.0 - 1.0 / f64::from(machines)) / (rate / 8.0 * 1e9);
            // Only the last batch's backward pass has gradients to hide.
            let hidden = 2.0 / 3.0 * step.as_secs_f64();
            let together = compute + (moved - hidden).max(0.0) + moved;
            format!("{:.0} %", 100.0 * compute / together)
        };
        println!(
            "| {machines} | {} | {} | {} | {} |",
            cell(10.0, 1.0),
            cell(10.0, 8.0),
            cell(100.0, 1.0),
            cell(100.0, 8.0)
        );
    }
}

fn batch(number: u64) -> Result<Batch> {
    let stream = Stream::new(7, number, 0);
    let sentence = |at: usize| -> Vec<u32> {
        (0..TOKENS).map(|i| 5 + stream.bits((at * TOKENS + i) as u32) % (VOCABULARY as u32 - 5)).collect()
    };
    let pairs: Vec<_> = (0..SENTENCES).map(|pair| (sentence(2 * pair), sentence(2 * pair + 1))).collect();
    Ok(Batch::new(&pairs, 1, 2)?)
}

fn since(before: Times, after: Times) -> Times {
    Times { talking: after.talking - before.talking, waiting: after.waiting - before.waiting }
}

fn median(steps: usize, mut step: impl FnMut() -> Result<()>) -> Result<Duration> {
    let mut times = Vec::new();
    for _ in 0..WARM_UP + steps {
        let began = Instant::now();
        step()?;
        times.push(began.elapsed());
    }
    Ok(middle(times.split_off(WARM_UP)))
}

fn middle(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
