//! A training step on a GPU: target tokens a second of the base model (25,600 tokens a side, 32,000 subwords)
//! and of the IWSLT model (4,096 tokens, 10,000 subwords), for equal and for log-normal lengths.
//!
//! ```text
//! gpu [--seconds S] [--rounds R] [--cell CELL] [--peer PYTHON] [--modes eager,compile,reduce-overhead,packed]
//! gpu --about        prints the name of the GPU
//! ```
//!
//! CELL is a substring of a cell's name. With `--peer PYTHON` it is a race against PyTorch.

mod ours;
mod race;
mod work;

use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Parser;
use heedful::tensor::cuda;
use race::RaceOptions;
use work::cells;

/// A training step on a GPU, alone or against PyTorch
#[derive(Parser)]
struct Options {
    /// Seconds of a turn [default: 3 alone, 1 in a race]
    #[arg(long)]
    seconds: Option<f64>,
    #[arg(long, default_value = "5", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Cells whose name contains this
    #[arg(long, default_value = "")]
    cell: String,
    /// Python with PyTorch: race against it
    #[arg(long)]
    peer: Option<String>,
    /// Modes of PyTorch
    #[arg(long, value_delimiter = ',', default_value = "eager,compile,reduce-overhead,packed")]
    modes: Vec<String>,
    /// Only print the name of the GPU
    #[arg(long)]
    about: bool,
    /// Train this cell on request, for a race
    #[arg(long, hide = true)]
    serve: Option<String>,
}

fn main() -> Result<()> {
    let options = Options::parse();
    if let Some(cell) = &options.serve {
        return ours::serve(cells(cell).first().with_context(|| format!("there is no cell {cell}"))?);
    }
    if options.about {
        return about();
    }
    let chosen = cells(&options.cell);
    if chosen.is_empty() {
        bail!("no cell has {} in its name", options.cell);
    }
    if let Some(python) = options.peer {
        let seconds = options.seconds.unwrap_or(1.0);
        let race_options =
            RaceOptions { python, modes: options.modes, rounds: options.rounds as usize, seconds };
        return chosen.iter().try_for_each(|work| race::run(work.name, &race_options));
    }
    let seconds = options.seconds.unwrap_or(3.0);
    if let [work] = &chosen[..] {
        about()?;
        return ours::print(work, seconds);
    }
    // Memory is counted per process.
    for work in &chosen {
        let program = std::env::current_exe().context("this program has no path")?;
        let status =
            Command::new(program).args(["--seconds", &seconds.to_string(), "--cell", work.name]).status()?;
        if !status.success() {
            bail!("{} failed ({status})", work.name);
        }
    }
    Ok(())
}

fn about() -> Result<()> {
    let gpu = cuda::gpu()?;
    println!("{} {}", gpu.name(), gpu.architecture());
    Ok(())
}
