//! `heedful score`: the log-probability of given translations.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Result, bail};
use heedful::data::corpus::CorpusFiles;
use heedful::decode::SearchOptions;
use heedful::models::HeadName;
use heedful::tasks::translate::Translator;
use serde_json::json;

use crate::machine::Machine;
use crate::progress::Verbosity;

/// Score given translations: one log-probability per line
///
/// log p(target | source), summed over the target's tokens and <eos>, natural logarithm. It is the number that
/// `heedful translate --json` reports for a translation of its own, to the bit.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Folder of a translator or of its training run
    model: PathBuf,
    /// Source text, one sentence per line
    #[arg(long, value_name = "FILE")]
    src: PathBuf,
    /// Target text: line n translates line n of the source
    #[arg(long, value_name = "FILE")]
    tgt: PathBuf,
    /// Prune an attention head, for example enc.0.3 (layer and head count from 0); repeatable
    #[arg(long, value_name = "HEAD")]
    without_head: Vec<HeadName>,
    /// Print one JSON object per line, with the log-probability of every token
    #[arg(long, help_heading = "Output")]
    json: bool,
    #[command(flatten)]
    machine: Machine,
}

const EXAMPLES: &str = "\
Examples:
  heedful score run --src valid.en --tgt valid.de
  heedful score run --src valid.en --tgt valid.de --json | jq .tokens";

/// Pairs that are scored side by side.
const CHUNK: usize = 1024;

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    arguments.machine.set_up("scoring", Verbosity::Normal)?;
    let translator = Translator::open_without(&arguments.model, &arguments.without_head)?;
    let options = SearchOptions { compute: arguments.machine.compute(), ..SearchOptions::default() };
    let mut out = BufWriter::new(io::stdout().lock());
    let mut pairs = CorpusFiles::parallel(&arguments.src, &arguments.tgt).pairs();
    let mut line = 0;
    loop {
        let chunk = pairs.by_ref().take(CHUNK).collect::<Result<Vec<_>, _>>()?;
        if chunk.is_empty() {
            return Ok(out.flush()?);
        }
        let texts: Vec<(&str, &str)> =
            chunk.iter().map(|pair| (pair.source.as_str(), pair.target.as_str())).collect();
        if let Some(blank) = texts.iter().position(|(source, _)| source.trim().is_empty()) {
            let file = arguments.src.display();
            bail!(
                "{file}, line {}: the source is blank, so its target has no probability; remove the line from both files",
                line + blank + 1
            );
        }
        for score in translator.score(&texts, &options)? {
            if arguments.json {
                writeln!(
                    out,
                    "{}",
                    json!({ "log_probability": score.log_probability, "tokens": score.tokens })
                )?;
            } else {
                writeln!(out, "{:.6}", score.log_probability)?;
            }
        }
        line += chunk.len();
    }
}
