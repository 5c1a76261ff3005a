//! The race of one cell: our process and one process for each mode of the peer, in alternating turns.

use std::process::Command;

use anyhow::{Context, Result, bail};
use heedful_bench::{Cell, Paired, Peer, Quartiles, Turn, print, take_turns};
use serde_json::{Value, json};

const OURS: &str = "ours";

/// The settings of a race.
pub(crate) struct RaceOptions {
    /// The peer's interpreter.
    pub(crate) python: String,
    pub(crate) modes: Vec<String>,
    pub(crate) rounds: usize,
    /// Seconds of one turn.
    pub(crate) seconds: f64,
}

/// A training process, and the results of its rounds.
struct Side {
    name: String,
    process: Peer,
    rounds: Vec<Value>,
}

pub(crate) fn run(cell: &str, options: &RaceOptions) -> Result<()> {
    let mut ours = Command::new(std::env::current_exe().context("this program has no path")?);
    let mut started = vec![Side::start(OURS, ours.args(["--serve", cell]))?];
    // All peers compile in parallel.
    for mode in &options.modes {
        let mut peer = Command::new(&options.python);
        peer.arg("-B").arg(Peer::folder().join("gpu.py")).args(["serve", cell, mode]);
        started.push(Side::start(mode, &mut peer)?);
    }
    compete(cell, started, options)
}

fn compete(cell: &str, started: Vec<Side>, options: &RaceOptions) -> Result<()> {
    let mut sides = Vec::new();
    for mut side in started {
        match side.process.ask(&json!({"op": "ready"})) {
            Ok(_) => sides.push(side),
            Err(error) if side.name == OURS => return Err(error),
            Err(error) => println!("{cell}: {} does not take part: {error:#}", side.name),
        }
    }
    if sides.len() < 2 {
        bail!("{cell}: the peer has no mode that runs");
    }
    let mut turns: Vec<Turn<'_>> = Vec::new();
    for side in &mut sides {
        turns.push(Box::new(|| side.turn(options.seconds)));
    }
    let times = take_turns(options.rounds, &mut turns)?;
    drop(turns);

    let mut cells = Vec::new();
    for (side, peer) in sides.iter().zip(&times).skip(1) {
        let paired = Paired { ours: times[0].clone(), peer: peer.clone() };
        cells.push(Cell::rate("gpu", &format!("{cell}, {}", side.name), "tokens/s", 1.0, &paired));
    }
    let [ours_held, ours_reserved] = sides[0].memory()?;
    for side in &sides[1..] {
        let [held, reserved] = side.memory()?;
        let name = format!("{cell}, {}", side.name);
        cells.push(Cell::memory("gpu", &format!("{name}, held"), ours_held, held));
        cells.push(Cell::memory("gpu", &format!("{name}, reserved"), ours_reserved, reserved));
    }
    print(&cells);
    // Measured last: it allocates memory in the peer's process.
    let limit = sides[1].process.ask(&json!({"op": "products"}))?;
    let limit = number(&limit, "tokens")? / number(&limit, "seconds")?;
    println!("{cell}: the GEMMs alone would allow {limit:.0} target tokens/s");
    for (side, times) in sides.iter().zip(&times) {
        let rate = 1.0 / Quartiles::of(times).median;
        let milliseconds = side.milliseconds()?;
        let share = 100.0 * rate / limit;
        println!(
            "{cell}, {}: {rate:.0} target tokens/s, {milliseconds:.2} ms a step, {share:.0} % of that",
            side.name
        );
    }
    println!();
    Ok(())
}

impl Side {
    fn start(name: &str, command: &mut Command) -> Result<Side> {
        Ok(Side { name: name.to_owned(), process: Peer::spawn(name, command)?, rounds: Vec::new() })
    }

    /// Trains for some seconds; returns the seconds per target token.
    fn turn(&mut self, seconds: f64) -> Result<f64> {
        let round = self.process.ask(&json!({"op": "round", "seconds": seconds}))?;
        let each = number(&round, "seconds")? / number(&round, "tokens")?;
        self.rounds.push(round);
        Ok(each)
    }

    /// The median milliseconds of a step.
    fn milliseconds(&self) -> Result<f64> {
        let step = |round: &Value| Ok(1e3 * number(round, "seconds")? / number(round, "steps")?);
        let steps: Vec<f64> = self.rounds.iter().map(step).collect::<Result<_>>()?;
        Ok(Quartiles::of(&steps).median)
    }

    /// Peak bytes held and reserved.
    fn memory(&self) -> Result<[f64; 2]> {
        let last = self.rounds.last().context("no rounds")?;
        Ok([number(last, "held")?, number(last, "reserved")?])
    }
}

fn number(answer: &Value, field: &str) -> Result<f64> {
    answer[field].as_f64().with_context(|| format!("no number `{field}` in the answer {answer}"))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// A shell that answers every request with the same line.
    fn side(name: &str, answer: &Value) -> Side {
        let script = format!("while read -r _; do echo '{answer}'; done");
        Side::start(name, Command::new("sh").args(["-c", &script])).unwrap()
    }

    fn answer(seconds: f64) -> Value {
        json!({"tokens": 1000, "seconds": seconds, "steps": 4, "held": 1 << 20, "reserved": 1 << 21})
    }

    #[test]
    fn a_failing_peer_mode_is_skipped_but_our_failure_is_an_error() {
        let options = RaceOptions { python: String::new(), modes: Vec::new(), rounds: 2, seconds: 0.0 };
        let broken = json!({"error": "it does not compile"});
        let sides = vec![side(OURS, &answer(1.0)), side("eager", &broken), side("compile", &answer(2.0))];
        compete("cell", sides, &options).unwrap();
        let error = compete("cell", vec![side(OURS, &broken), side("compile", &answer(2.0))], &options);
        assert!(error.unwrap_err().to_string().contains("does not compile"));
        assert!(compete("cell", vec![side(OURS, &answer(1.0)), side("eager", &broken)], &options).is_err());
    }
}
