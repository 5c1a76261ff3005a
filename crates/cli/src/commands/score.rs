//! `heedful score`: how probable given translations are.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Result, bail};
use heedful::data::corpus::CorpusFiles;
use heedful::decode::SearchOptions;
use heedful::models::transformer::HeadName;
use heedful::tasks::translate::Translator;
use heedful::tensor::DType;
use heedful::tensor::cpu::threads;
use serde_json::json;

use super::translate::compute;

/// Say how probable given translations are: one log-probability a line
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The folder of a model or of a training run
    model: PathBuf,
    /// Source text, one sentence a line
    #[arg(long, value_name = "FILE")]
    src: PathBuf,
    /// Target text, line by line the translation of the source
    #[arg(long, value_name = "FILE")]
    tgt: PathBuf,
    /// Write one JSON object a line, with the log-probability of every token
    #[arg(long)]
    json: bool,
    /// Leave this head out, such as enc.0.3 (layer and head counted from 0); may be given several times
    #[arg(long, value_name = "HEAD")]
    without_head: Vec<HeadName>,
    /// Type of the matrix products: bf16 or f32
    #[arg(long, default_value = "bf16", value_name = "TYPE", value_parser = compute)]
    compute: DType,
    /// How many threads compute [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
}

/// Pairs that are scored side by side.
const CHUNK: usize = 1024;

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if let Some(count) = arguments.threads {
        threads::set_thread_count(count.into());
    }
    let translator = Translator::open_without(&arguments.model, &arguments.without_head)?;
    let options = SearchOptions { compute: arguments.compute, ..SearchOptions::default() };
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
                "{file}, line {}: the source is blank, so no target has a probability; remove the pair",
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
