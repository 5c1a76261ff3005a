//! Races one workload: all our compute types, and the peer in its fastest configuration, for every thread
//! count, in the same rounds.

use std::cell::RefCell;

use anyhow::{Result, bail};
use heedful::tensor::Precision;
use heedful_bench::{Cell, Paired, Turn, fastest_config, take_turns};

use super::model::Model;
use super::options::Options;
use super::process::{Engine, Process, Setting};
use super::spec::{Spec, Variant};
use super::work::{Outputs, Work};

/// Timed trials of each of the peer's configurations; the fastest counts.
const TRIALS: usize = 2;

/// The running processes, with the model open.
pub(super) struct Processes<'m> {
    model: &'m Model,
    running: Vec<(Engine, Setting, Process)>,
}

impl<'m> Processes<'m> {
    pub(super) fn new(model: &'m Model) -> Processes<'m> {
        Processes { model, running: Vec::new() }
    }

    /// The index of a process, which is started if necessary. Processes with another instruction set are
    /// ended.
    fn find_or_start(&mut self, engine: Engine, setting: Setting) -> Result<usize> {
        self.running.retain(|(_, other, _)| other.isa == setting.isa);
        let same = |(other, set, _): &(Engine, Setting, Process)| (*other, *set) == (engine, setting);
        if let Some(index) = self.running.iter().position(same) {
            return Ok(index);
        }
        self.running.push((engine, setting, Process::start(engine, setting)?));
        Ok(self.running.len() - 1)
    }

    /// The process of a side, with the model open for its compute type.
    pub(super) fn of(&mut self, side: &Side) -> Result<&mut Process> {
        let index = self.find_or_start(side.engine, side.setting)?;
        let process = &mut self.running[index].2;
        process.open(side.engine, self.model, &side.compute, side.setting.threads)?;
        Ok(process)
    }
}

/// One side of the race: engine, settings and compute configuration.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Side {
    pub(super) engine: Engine,
    pub(super) setting: Setting,
    pub(super) compute: String,
}

/// The measurements of a group.
pub(super) struct RaceResult {
    /// For each cell, the indices of our side and of the peer's.
    pub(super) pairs: Vec<(Spec, [usize; 2])>,
    pub(super) sides: Vec<Side>,
    /// For each side, the seconds of a pass in each round.
    seconds: Vec<Vec<f64>>,
    /// For each side, the seconds of every batch of all rounds.
    pub(super) batches: Vec<Vec<f64>>,
    /// For each side, the tokens of its outputs.
    pub(super) tokens: Vec<usize>,
    pub(super) outputs: Vec<Vec<Vec<u32>>>,
}

/// Races the cells of a group, which share one workload.
pub(super) fn race(
    group: &[Spec],
    work: &Work,
    processes: &mut Processes<'_>,
    types: &[String],
    options: &Options,
) -> Result<RaceResult> {
    let (mut sides, mut pairs) = (Vec::new(), Vec::new());
    let mut index_of = |side: Side| {
        sides.iter().position(|known| *known == side).unwrap_or_else(|| {
            sides.push(side);
            sides.len() - 1
        })
    };
    let mut fastest: Vec<((usize, bool), String)> = Vec::new();
    for &spec in group {
        let setting = setting(spec);
        let is_f32 = spec.precision == Precision::F32;
        let known = fastest.iter().find(|(key, _)| *key == (spec.threads, is_f32));
        let compute = if let Some((_, config)) = known {
            config.clone()
        } else {
            let only_f32 = ["float32".to_owned()];
            let types = if is_f32 { &only_f32 } else { types };
            let trial_work = work.for_trials();
            let mut seconds = |config: &str| trial(&trial_work, processes, setting, config);
            let split = fastest_config(types, setting.threads, &mut seconds)?;
            let mut config = (f64::INFINITY, split.clone());
            for size in work.peer_batch_sizes() {
                let sized = format!("{split} {size}");
                let seconds = seconds(&sized)?;
                config = if seconds < config.0 { (seconds, sized) } else { config };
            }
            let config = config.1;
            fastest.push(((spec.threads, is_f32), config.clone()));
            config
        };
        let ours = index_of(Side { engine: Engine::Ours, setting, compute: spec.precision.to_string() });
        let peer = index_of(Side { engine: Engine::CTranslate2, setting, compute });
        pairs.push((spec, [ours, peer]));
    }
    let (mut tokens, mut outputs) = (Vec::new(), Vec::new());
    for side in &sides {
        let translated = processes.of(side)?.translate(work, &side.compute, 0.0, Outputs::Return)?;
        if work.forced_tokens().is_some_and(|forced| forced != translated.tokens) {
            bail!("{side:?} generated {} tokens, not the requested number", translated.tokens);
        }
        tokens.push(translated.tokens);
        outputs.push(translated.outputs);
    }

    let batches = RefCell::new(vec![Vec::new(); sides.len()]);
    let processes = RefCell::new(processes);
    let mut turns: Vec<Turn<'_>> = Vec::new();
    for (number, side) in sides.iter().enumerate() {
        let (batches, processes) = (&batches, &processes);
        turns.push(Box::new(move || {
            let translated = processes.borrow_mut().of(side)?.translate(
                work,
                &side.compute,
                options.seconds,
                Outputs::Omit,
            )?;
            batches.borrow_mut()[number].extend(&translated.times);
            Ok(translated.pass(work))
        }));
    }
    let seconds = take_turns(options.rounds, &mut turns)?;
    drop(turns);
    Ok(RaceResult { pairs, sides, seconds, batches: batches.into_inner(), tokens, outputs })
}

fn setting(spec: Spec) -> Setting {
    let isa = if let Variant::Isa(isa) = spec.variant { Some(isa) } else { None };
    Setting { threads: spec.threads, isa }
}

/// The seconds of the fastest of some passes; the first pass is a warm-up.
fn trial(work: &Work, processes: &mut Processes<'_>, setting: Setting, config: &str) -> Result<f64> {
    let side = Side { engine: Engine::CTranslate2, setting, compute: config.to_owned() };
    let process = processes.of(&side)?;
    let mut fastest = f64::INFINITY;
    for pass in 0..=TRIALS {
        let seconds = process.translate(work, config, 0.0, Outputs::Omit)?.pass(work);
        fastest = if pass == 0 { fastest } else { fastest.min(seconds) };
    }
    process.close(config)?;
    Ok(fastest)
}

impl RaceResult {
    /// The seconds of both sides of a cell.
    pub(super) fn paired(&self, [ours, peer]: [usize; 2]) -> Paired {
        Paired { ours: self.seconds[ours].clone(), peer: self.seconds[peer].clone() }
    }

    /// The speedup of both sides with more threads: `few` and `many` are cells of one compute type.
    pub(super) fn scaling(&self, name: &str, few: [usize; 2], many: [usize; 2]) -> Cell {
        let side = |i: usize| quotients(&self.seconds[many[i]], &self.seconds[few[i]]);
        Cell::rate("translate", name, "times", 1.0, &Paired { ours: side(0), peer: side(1) })
    }

    /// The number of outputs that are identical on both sides, and of all outputs.
    pub(super) fn identical_outputs(&self, [ours, peer]: [usize; 2]) -> (usize, usize) {
        let pairs = self.outputs[ours].iter().zip(&self.outputs[peer]);
        (pairs.filter(|(ours, peer)| ours == peer).count(), self.outputs[ours].len())
    }
}

fn quotients(above: &[f64], below: &[f64]) -> Vec<f64> {
    above.iter().zip(below).map(|(above, below)| above / below).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speedups_are_computed_round_by_round() {
        let result = RaceResult {
            pairs: Vec::new(),
            sides: Vec::new(),
            seconds: vec![vec![1.0, 2.0], vec![4.0, 8.0], vec![0.5, 1.0], vec![4.0, 4.0]],
            batches: Vec::new(),
            tokens: Vec::new(),
            outputs: vec![vec![vec![1], vec![2]], vec![vec![1], vec![3]]],
        };
        let scaling = result.scaling("2t over 1t", [0, 1], [2, 3]);
        assert_eq!((scaling.ours(), scaling.ratio()), (2.0, 1.5));
        assert_eq!(result.identical_outputs([0, 1]), (1, 2));
        assert_eq!(result.paired([0, 1]).peer, [4.0, 8.0]);
    }
}
