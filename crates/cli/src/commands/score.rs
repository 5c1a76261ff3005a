//! `heedful score`: the log-probability of given translations.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use anyhow::Result;
use heedful::data::{CorpusFiles, Pair, TextLimit};
use heedful::decode::{SearchOptions, TargetScore};
use heedful::models::HeadName;
use heedful::tasks::translate::Translator;
use serde_json::json;

use crate::long_text::{LongTexts, LongWhole, MaxTokens, refused};
use crate::machine::Machine;
use crate::output::check_standard_output;
use crate::progress::{Bar, Quiet, line_count};

/// Score given translations: one log-probability per line
///
/// log p(target | source), summed over the target's tokens and <eos>, natural logarithm. It is the number that
/// `heedful translate --json` reports for a translation of its own, to the bit. The translation of a blank line is blank: it
/// has the log-probability 0, and any other target of a blank line has -inf (null in JSON).
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
    /// What to do with a line of more tokens than --max-tokens, source or target
    #[arg(long, value_enum, value_name = "WHAT", default_value = "error", help_heading = "Long text")]
    long: LongWhole,
    #[command(flatten)]
    max_tokens: MaxTokens,
    /// Print one JSON object per line, with the log-probability of every token
    #[arg(long, help_heading = "Output")]
    json: bool,
    #[command(flatten)]
    quiet: Quiet,
    #[command(flatten)]
    machine: Machine,
}

const EXAMPLES: &str = "\
Examples:
  heedful score run --src valid.en --tgt valid.de
  heedful score run --src valid.en --tgt valid.de --json | jq .tokens";

/// Pairs that are read, and scored, side by side.
const CHUNK: usize = 1024;
/// Bytes of such pairs, but for the last one.
const CHUNK_BYTES: usize = 4 << 20;

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let verbosity = arguments.quiet.verbosity();
    arguments.machine.set_up("scoring", verbosity)?;
    check_standard_output(&[&arguments.src, &arguments.tgt])?;
    let mut translator = Translator::open_without(&arguments.model, &arguments.without_head)?;
    arguments.max_tokens.tokens.map_or(Ok(()), |tokens| translator.set_max_tokens(tokens))?;
    let options =
        SearchOptions { compute: arguments.machine.compute([&arguments.model]), ..SearchOptions::default() };
    let mut out = BufWriter::new(io::stdout().lock());
    let limits = [translator.source_limit(), translator.target_limit()];
    let files = CorpusFiles::parallel(&arguments.src, &arguments.tgt);
    let mut pairs = files.pairs().cut_at(limits.map(|limit| limit.bytes_to_read()));
    let mut reader = PairReader { translator: &translator, arguments, line: 0, long_texts: limits.map(cut) };
    let bar = Bar::beside_results(verbosity, line_count(Some(&arguments.src)), None);
    loop {
        let (mut chunk, mut bytes) = (Vec::new(), 0);
        while chunk.len() < CHUNK
            && bytes < CHUNK_BYTES
            && let Some(pair) = pairs.next().transpose()?
        {
            bytes += pair.source.len() + pair.target.len();
            chunk.push(reader.tokens(&pair)?);
        }
        if chunk.is_empty() {
            bar.finish();
            reader.long_texts.iter().for_each(LongTexts::finish);
            return Ok(out.flush()?);
        }
        for score in scores(&translator, &chunk, &options)? {
            writeln!(out, "{}", if arguments.json { object(&score) } else { plain(&score) })?;
        }
        // Whoever reads them need not wait for all.
        out.flush()?;
        bar.show(reader.line, 0.0, || format!("{} pairs scored", reader.line));
    }
}

fn cut(limit: TextLimit) -> LongTexts {
    LongTexts::new("cut", limit)
}

/// From lines to what the model reads of them.
struct PairReader<'a> {
    translator: &'a Translator,
    arguments: &'a Arguments,
    /// Lines so far.
    line: usize,
    long_texts: [LongTexts; 2],
}

impl PairReader<'_> {
    fn tokens(&mut self, pair: &Pair) -> Result<(Vec<u32>, Vec<u32>)> {
        self.line += 1;
        let translator = self.translator;
        let source = self.side(0, &pair.source, translator.source_limit(), |text| translator.encode(text))?;
        let encode = |text: &str| translator.encode_target(text);
        let target = self.side(1, &pair.target, translator.target_limit(), encode)?;
        Ok((source, target))
    }

    fn side(
        &mut self,
        side: usize,
        text: &str,
        limit: TextLimit,
        encode: impl Fn(&str) -> Vec<u32>,
    ) -> Result<Vec<u32>> {
        let file = [&self.arguments.src, &self.arguments.tgt][side];
        let place = format!("{}, line {}", file.display(), self.line);
        match (limit.encode(text, &encode), self.arguments.long) {
            (Ok(tokens), _) => Ok(tokens),
            (Err(error), LongWhole::Error) => Err(refused(place, error, "--long cut or --max-tokens N")),
            (Err(_), LongWhole::Cut) => {
                self.long_texts[side].add(place);
                Ok(limit.first(text, encode).tokens)
            }
        }
    }
}

/// The scores of a chunk of pairs. A blank source has a blank translation, with certainty: no other has a probability.
fn scores(
    translator: &Translator,
    pairs: &[(Vec<u32>, Vec<u32>)],
    options: &SearchOptions,
) -> Result<Vec<TargetScore>> {
    let filled: Vec<_> = pairs.iter().filter(|(source, _)| !source.is_empty()).cloned().collect();
    let mut found = translator.score_tokens(&filled, options)?.into_iter();
    let of_blank = |target: &Vec<u32>| TargetScore {
        log_probability: if target.is_empty() { 0.0 } else { f64::NEG_INFINITY },
        tokens: Vec::new(),
        alternatives: Vec::new(),
    };
    let score = |(source, target): &(Vec<u32>, Vec<u32>)| match source.is_empty() {
        true => Some(of_blank(target)),
        false => found.next(),
    };
    Ok(pairs.iter().filter_map(score).collect())
}

fn plain(score: &TargetScore) -> String {
    format!("{:.6}", score.log_probability)
}

/// JSON has no infinity: there the logarithm of 0 is null.
fn object(score: &TargetScore) -> String {
    json!({ "log_probability": score.log_probability, "tokens": score.tokens }).to_string()
}
