//! `heedful fill`: a masked language model completes the gaps of a text.
//!
//! ```text
//! $ heedful fill RUN "the <mask> drives fast" --top 2
//! the car drives fast
//! gap 1    0.4213  car
//!          0.1021  bus
//! ```

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;
use heedful::tasks::masked::{Filled, Filler};
use heedful::tensor::DType;
use heedful::tensor::cpu::threads;
use serde_json::{Value, json};

use super::translate::compute;

/// Complete the gaps of a text
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The folder of a masked language model or of its training run
    model: PathBuf,
    /// A text with <mask> where a token is missing; several texts may be given
    #[arg(required = true)]
    text: Vec<String>,
    /// So many guesses for each gap, best first
    #[arg(long, default_value_t = 5, value_name = "N")]
    top: usize,
    /// Write one JSON object for each text
    #[arg(long)]
    json: bool,
    /// Type of the matrix products: bf16 or f32
    #[arg(long, default_value = "bf16", value_name = "TYPE", value_parser = compute)]
    compute: DType,
    /// How many threads compute [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if let Some(count) = arguments.threads {
        threads::set_thread_count(count.into());
    }
    let filler = Filler::open(&arguments.model)?;
    let mut out = io::stdout().lock();
    for text in &arguments.text {
        let filled = filler.fill(text, arguments.top, arguments.compute)?;
        if arguments.json {
            writeln!(out, "{}", object(text, &filled))?;
        } else {
            write!(out, "{}", plain(&filled))?;
        }
    }
    Ok(())
}

fn plain(filled: &Filled) -> String {
    let mut lines = format!("{}\n", filled.text);
    for (gap, guesses) in filled.gaps.iter().enumerate() {
        for (rank, guess) in guesses.iter().enumerate() {
            let name = if rank == 0 { format!("gap {}", gap + 1) } else { String::new() };
            lines += &format!("{name:<7} {:.4}  {}\n", guess.probability, guess.piece.trim_start());
        }
    }
    lines
}

fn object(text: &str, filled: &Filled) -> Value {
    let gap = |guesses: &Vec<heedful::tasks::masked::Guess>| -> Vec<Value> {
        guesses
            .iter()
            .map(|guess| json!({ "piece": guess.piece, "probability": guess.probability }))
            .collect()
    };
    let gaps: Vec<Vec<Value>> = filled.gaps.iter().map(gap).collect();
    json!({ "text": text, "filled": filled.text, "gaps": gaps })
}
