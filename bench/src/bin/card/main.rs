//! A training step on a card: target tokens a second of the base model (25,600 tokens a side, 32,000 subwords) and of the IWSLT
//! model (4,096 tokens, 10,000 subwords), for equal and for log-normal lengths.
//!
//! ```text
//! card [SECONDS] [CELL]
//! card [--seconds S] [--rounds R] [--cell CELL] [--compute bf16,fp8] [--peer PYTHON] [--modes eager,compile,reduce-overhead,packed]
//! card --about        which card it is
//! ```
//!
//! CELL is a part of a cell's name. With an interpreter that has PyTorch, or with several number types, it is a race: of the first type
//! with the others and with the peer, which computes in bf16.

mod ours;
mod race;
mod work;

use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use heedful::tensor::{Precision, cuda};
use race::Rules;
use work::cells;

const USAGE: &str = "usage: card [--seconds S] [--rounds R] [--cell CELL] [--compute bf16|fp8,…] [--peer PYTHON] [--modes MODE,…] | --about";
const MODES: &str = "eager,compile,reduce-overhead,packed";

struct Options {
    seconds: Option<f64>,
    rounds: usize,
    cell: String,
    computes: Vec<Precision>,
    peer: Option<String>,
    modes: String,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, cell, compute] = &arguments[..]
        && flag == "--serve"
    {
        let work = cells(cell);
        return ours::serve(
            work.first().with_context(|| format!("there is no cell {cell}"))?,
            precision(compute)?,
        );
    }
    if arguments == ["--about"] {
        return about();
    }
    let options = parse(arguments)?;
    let chosen = cells(&options.cell);
    if chosen.is_empty() {
        bail!("no cell has {} in its name", options.cell);
    }
    if options.peer.is_some() || options.computes.len() > 1 {
        let modes = options.modes.split(',').map(str::to_owned).collect();
        let (seconds, computes) = (options.seconds.unwrap_or(1.0), options.computes);
        let rules = Rules { computes, peer: options.peer, modes, rounds: options.rounds, seconds };
        return chosen.iter().try_for_each(|work| race::run(work.name, &rules));
    }
    let seconds = options.seconds.unwrap_or(3.0);
    if let [work] = &chosen[..] {
        about()?;
        return ours::print(work, options.computes[0], seconds);
    }
    // Memory is counted per process.
    for work in &chosen {
        let program = std::env::current_exe().context("this program has no path")?;
        let compute = options.computes[0].to_string();
        let arguments = [&seconds.to_string(), work.name, "--compute", &compute];
        let status = Command::new(program).args(arguments).status()?;
        if !status.success() {
            bail!("{} failed ({status})", work.name);
        }
    }
    Ok(())
}

fn about() -> Result<()> {
    let card = cuda::card()?;
    println!("{} {}", card.name(), card.architecture());
    Ok(())
}

fn precision(name: &str) -> Result<Precision> {
    match name {
        "bf16" => Ok(Precision::Bf16),
        "fp8" => Ok(Precision::Fp8),
        _ => bail!(USAGE),
    }
}

fn parse(arguments: Vec<String>) -> Result<Options> {
    let mut options = Options {
        seconds: None,
        rounds: 5,
        cell: String::new(),
        computes: vec![Precision::Bf16],
        peer: None,
        modes: MODES.to_owned(),
    };
    let mut words = arguments.into_iter();
    let mut place = 0;
    while let Some(word) = words.next() {
        let mut value = || words.next().context(USAGE);
        match word.as_str() {
            "--seconds" => options.seconds = Some(value()?.parse().context(USAGE)?),
            "--rounds" => options.rounds = value()?.parse().context(USAGE)?,
            "--cell" => options.cell = value()?,
            "--compute" => options.computes = value()?.split(',').map(precision).collect::<Result<_>>()?,
            "--peer" => options.peer = Some(value()?),
            "--modes" => options.modes = value()?,
            flag if flag.starts_with('-') => bail!(USAGE),
            plain => {
                match place {
                    0 => options.seconds = Some(plain.parse().context(USAGE)?),
                    1 => options.cell = plain.to_owned(),
                    _ => bail!(USAGE),
                }
                place += 1;
            }
        }
    }
    if options.rounds == 0 {
        bail!(USAGE);
    }
    Ok(options)
}
