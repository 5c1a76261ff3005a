//! A training step on a card: target tokens a second of the base model (25,600 tokens a side, 32,000 subwords) and of the IWSLT
//! model (4,096 tokens, 10,000 subwords), for equal and for log-normal lengths.
//!
//! ```text
//! card [SECONDS] [CELL]
//! card [--seconds S] [--rounds R] [--cell CELL] [--peer PYTHON] [--modes eager,compile,reduce-overhead,packed]
//! card --about        which card it is
//! ```
//!
//! CELL is a part of a cell's name. With an interpreter that has PyTorch it is a race.

mod ours;
mod race;
mod work;

use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use heedful::tensor::cuda;
use race::Rules;
use work::cells;

const USAGE: &str =
    "usage: card [--seconds S] [--rounds R] [--cell CELL] [--peer PYTHON] [--modes MODE,…] | --about";
const MODES: &str = "eager,compile,reduce-overhead,packed";

struct Options {
    seconds: Option<f64>,
    rounds: usize,
    cell: String,
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
    if let [flag, cell] = &arguments[..]
        && flag == "--serve"
    {
        return ours::serve(cells(cell).first().with_context(|| format!("there is no cell {cell}"))?);
    }
    if arguments == ["--about"] {
        return about();
    }
    let options = parse(arguments)?;
    let chosen = cells(&options.cell);
    if chosen.is_empty() {
        bail!("no cell has {} in its name", options.cell);
    }
    if let Some(python) = options.peer {
        let modes = options.modes.split(',').map(str::to_owned).collect();
        let seconds = options.seconds.unwrap_or(1.0);
        let rules = Rules { python, modes, rounds: options.rounds, seconds };
        return chosen.iter().try_for_each(|work| race::run(work.name, &rules));
    }
    let seconds = options.seconds.unwrap_or(3.0);
    if let [work] = &chosen[..] {
        about()?;
        return ours::print(work, seconds);
    }
    // Memory is counted per process.
    for work in &chosen {
        let program = std::env::current_exe().context("this program has no path")?;
        let status = Command::new(program).args([&seconds.to_string(), work.name]).status()?;
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

fn parse(arguments: Vec<String>) -> Result<Options> {
    let mut options =
        Options { seconds: None, rounds: 5, cell: String::new(), peer: None, modes: MODES.to_owned() };
    let mut words = arguments.into_iter();
    let mut place = 0;
    while let Some(word) = words.next() {
        let mut value = || words.next().context(USAGE);
        match word.as_str() {
            "--seconds" => options.seconds = Some(value()?.parse().context(USAGE)?),
            "--rounds" => options.rounds = value()?.parse().context(USAGE)?,
            "--cell" => options.cell = value()?,
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
