//! `heedful fill`: a masked language model fills the gaps of a text.
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
use serde_json::{Value, json};

use crate::machine::Machine;
use crate::progress::Verbosity;

/// Predict the masked tokens of a text with a masked language model
///
/// Every <mask> stands for one token, and is predicted from the text on both sides of it.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Folder of a masked language model or of its training run
    model: PathBuf,
    /// Text with <mask> where a token is missing; repeatable
    #[arg(required = true)]
    text: Vec<String>,
    /// Number of predictions for each <mask>, most probable first
    #[arg(long, default_value_t = 5, value_name = "N")]
    top: usize,
    /// Print one JSON object per text
    #[arg(long, help_heading = "Output")]
    json: bool,
    #[command(flatten)]
    machine: Machine,
}

const EXAMPLES: &str = "\
Examples:
  heedful fill reader 'the <mask> drives through the rain'
  heedful fill reader 'the <mask> drives through the <mask>' --top 10 --json

Train a masked language model with: heedful train --task mlm --text all.txt --out reader";

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    arguments.machine.set_up("filling gaps", Verbosity::Normal)?;
    let filler = Filler::open(&arguments.model)?;
    let mut out = io::stdout().lock();
    for text in &arguments.text {
        let filled = filler.fill(text, arguments.top, arguments.machine.compute())?;
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
