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

use anyhow::{Context, Result};
use heedful::models::Model;
use heedful::tasks::masked::{Filled, Filler};
use serde_json::{Value, json};

use crate::attention_file::{AttendedTokens, AttentionArguments, AttentionFile};
use crate::long_text::{LongTexts, LongWhole, MaxTokens};
use crate::machine::Machine;
use crate::output::Force;
use crate::progress::{Bar, Quiet};

/// Predict the masked tokens of a text with a masked language model
///
/// Every <mask> stands for one token, which is predicted from the text on both sides of it.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Folder of a masked language model or of its training run, or its package
    model: PathBuf,
    /// Text with <mask> where a token is missing; repeatable
    #[arg(required = true)]
    text: Vec<String>,
    /// Number of predictions for each <mask>, most probable first
    #[arg(long, default_value_t = 5, value_name = "N")]
    top: usize,
    /// What to do with a text of more tokens than --max-tokens
    #[arg(long, value_enum, value_name = "WHAT", default_value = "error", help_heading = "Long text")]
    long: LongWhole,
    #[command(flatten)]
    max_tokens: MaxTokens,
    /// Print one JSON object per text
    #[arg(long, help_heading = "Output")]
    json: bool,
    #[command(flatten)]
    attention: AttentionArguments,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    quiet: Quiet,
    #[command(flatten)]
    machine: Machine,
}

const EXAMPLES: &str = "\
Examples:
  heedful fill reader 'the <mask> drives through the rain'
  heedful fill reader 'the <mask> drives through the <mask>' --top 10 --json
  heedful fill reader 'the <mask> drives' --attention weights.json --raw-scores

Train a masked language model with: heedful train --task mlm --text all.txt --out reader";

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let verbosity = arguments.quiet.verbosity();
    arguments.machine.set_up(verbosity)?;
    let mut attention = arguments.attention.create(None, &arguments.force, &[&arguments.model])?;
    let mut filler = Filler::open_with(&arguments.model, &arguments.machine.opening())?;
    arguments.max_tokens.tokens.map_or(Ok(()), |tokens| filler.set_max_tokens(tokens))?;
    let mut long_texts = LongTexts::new("cut", filler.limit());
    let mut out = io::stdout().lock();
    let bar = Bar::for_streamed_results(verbosity, arguments.text.len(), None);
    for (number, text) in arguments.text.iter().enumerate() {
        bar.show(number, 0.0, || format!("text {}", number + 1));
        let place = || format!("text {}", number + 1);
        let tokens = long_texts.read(text, |text| filler.encode(text), arguments.long, place)?;
        if let Some(file) = &mut attention {
            let mut pass = arguments.attention.pass(filler.compute());
            let (filled, maps) = filler.attend_in(&mut pass, tokens.clone(), 1).with_context(place)?;
            file.add(number, &attended(&filler, &tokens, &filled), &maps)?;
        }
        let filled = filler.fill_tokens(tokens, arguments.top).with_context(place)?;
        if arguments.json {
            writeln!(out, "{}", object(text, &filled))?;
        } else {
            write!(out, "{}", plain(&filled))?;
        }
    }
    bar.finish();
    long_texts.finish();
    attention.map_or(Ok(()), AttentionFile::finish)
}

/// The tokens of a text with its gaps, and the best prediction for each.
fn attended(filler: &Filler, tokens: &[u32], filled: &Filled) -> AttendedTokens {
    let special = filler.model().special_tokens();
    let piece = |&id: &u32| match id == special.mask {
        true => "<mask>".to_owned(),
        false => filler.tokenizer().piece(id),
    };
    let best =
        |gap: &Vec<heedful::tasks::masked::Guess>| gap.first().map(|best| best.piece.replace(' ', "▁"));
    AttendedTokens {
        source: special.surrounded(tokens).iter().map(piece).collect(),
        target: filled.gaps.iter().filter_map(best).collect(),
    }
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
