//! `heedful generate`: a language model continues a prompt; tokens are printed as they are generated.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;
use heedful::decode::{Sampling, SearchOptions};
use heedful::tasks::language::{Generation, Generator};
use serde_json::json;

use crate::attention_file::{AttendedTokens, AttentionArguments, AttentionFile};
use crate::long_text::{LongTexts, LongWhole, MaxTokens, refused};
use crate::machine::Machine;
use crate::output::Force;
use crate::progress::{Bar, Quiet, Verbosity};

/// Continue a text with a language model
///
/// Tokens are drawn at random (sampling); --temperature 0 is greedy and --beam searches for a probable text.
/// A single text is printed token by token.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Folder of a language model or of its training run, or its package
    model: PathBuf,
    /// Beginning of the text
    #[arg(long, default_value = "", value_name = "TEXT", allow_hyphen_values = true)]
    prompt: String,
    /// Maximum number of generated tokens
    #[arg(long, default_value_t = 100, value_name = "N")]
    tokens: usize,
    /// Number of texts to generate, at most 1000; another --seed generates different ones
    #[arg(long, default_value_t = 1, value_name = "N")]
    n: usize,

    /// Softmax temperature: below 1 sharpens the distribution, above 1 flattens it, 0 is greedy
    #[arg(
        long,
        default_value_t = 1.0,
        value_name = "T",
        allow_negative_numbers = true,
        help_heading = "Sampling"
    )]
    temperature: f32,
    /// Top-k sampling: draw from the K most probable tokens
    #[arg(long, value_name = "K", help_heading = "Sampling")]
    top_k: Option<usize>,
    /// Top-p (nucleus) sampling: draw from the fewest tokens whose probabilities sum to at least P
    #[arg(long, value_name = "P", help_heading = "Sampling")]
    top_p: Option<f32>,
    /// Random seed: the same seed gives the same text
    #[arg(long, default_value_t = 1, value_name = "N", help_heading = "Sampling")]
    seed: u64,
    /// Beam search with N hypotheses instead of sampling
    #[arg(long, value_name = "N", help_heading = "Search")]
    beam: Option<usize>,
    /// Never generate the same n-gram of N tokens twice
    #[arg(long, value_name = "N", help_heading = "Search")]
    no_repeat_ngram: Option<usize>,

    /// What to do with a prompt of more tokens than --max-tokens; cut keeps its end, which the text continues
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
  heedful generate writer --prompt 'Once upon a time' --temperature 0.8 --top-p 0.95
  heedful generate writer --prompt 'Once upon a time' --beam 4 --n 4 --json
  heedful generate writer --prompt 'Once upon a time' --attention weights.json

Train a language model with: heedful train --task lm --text book.txt --out writer";

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let verbosity = arguments.quiet.verbosity();
    arguments.machine.set_up(verbosity)?;
    let options = arguments.search_options();
    options.check()?;
    let attention = arguments.attention.create(None, &arguments.force, &[&arguments.model])?;
    let mut generator = Generator::open_with(&arguments.model, &arguments.machine.opening())?;
    arguments.max_tokens.tokens.map_or(Ok(()), |tokens| generator.set_max_tokens(tokens))?;
    let prompt = arguments.prompt(&generator)?;
    let options = generator.options(prompt.len(), arguments.tokens, &options)?;
    let mut generation = generator.begin(prompt, &options)?;
    let mut out = io::stdout().lock();
    // With several hypotheses, the best text is known only at the end.
    let streams = options.n_best == 1 && options.beam == 1 && !arguments.json;
    // Text printed token by token needs no progress bar.
    let bar = Bar::with_time_left(if streams { Verbosity::Quiet } else { verbosity }, arguments.tokens);
    let (mut shown, mut tokens) = (0, 0);
    while generation.step()? {
        tokens += 1;
        bar.show(tokens, 0.0, || format!("{tokens} tokens"));
        if streams {
            show(&generation.so_far(), &mut shown, &mut out)?;
        }
    }
    bar.finish();
    for (number, text) in generation.texts().iter().enumerate() {
        if arguments.json {
            writeln!(out, "{}", json!({ "prompt": arguments.prompt, "text": text }))?;
        } else {
            if number > 0 {
                writeln!(out, "---")?;
            }
            writeln!(out, "{}", &text[shown.min(text.len())..])?;
        }
    }
    out.flush()?;
    attention.map_or(Ok(()), |file| write_attention(file, &generator, &generation, arguments))
}

/// Writes the attention weights of every text: prompt and continuation.
fn write_attention(
    mut file: AttentionFile,
    generator: &Generator,
    generation: &Generation<'_>,
    arguments: &Arguments,
) -> Result<()> {
    for (number, tokens) in generation.tokens().iter().enumerate() {
        let (_, maps) = generator.attend_in(&mut arguments.attention.pass(generator.compute()), tokens)?;
        file.add(number, &AttendedTokens::of_line(generator, tokens), &maps)?;
    }
    file.finish()
}

/// Prints the text generated since the last call; a character with missing bytes is held back.
fn show(text: &str, shown: &mut usize, out: &mut impl Write) -> Result<()> {
    let complete = text.trim_end_matches('\u{FFFD}');
    if let Some(new) = complete.get(*shown..).filter(|new| !new.is_empty()) {
        out.write_all(new.as_bytes())?;
        out.flush()?;
        *shown = complete.len();
    }
    Ok(())
}

impl Arguments {
    /// The tokens of the prompt.
    fn prompt(&self, generator: &Generator) -> Result<Vec<u32>> {
        let (limit, encode) = (generator.limit(), |text: &str| generator.encode(text));
        match (limit.encode(&self.prompt, encode), self.long) {
            (Ok(tokens), _) => Ok(tokens),
            (Err(error), LongWhole::Error) => Err(refused("--prompt", error, "--long cut or --max-tokens N")),
            (Err(_), LongWhole::Cut) => {
                LongTexts::new("cut", limit).add("--prompt");
                Ok(limit.last(&self.prompt, encode).tokens)
            }
        }
    }

    fn search_options(&self) -> SearchOptions {
        let sampling =
            Sampling { temperature: self.temperature, top_k: self.top_k, top_p: self.top_p, seed: self.seed };
        let samples = self.beam.is_none() && self.temperature != 0.0;
        SearchOptions {
            beam: self.beam.unwrap_or(1),
            n_best: self.n,
            sampling: samples.then_some(sampling),
            no_repeat_ngram: self.no_repeat_ngram,
            compute: self.machine.precision(),
            ..SearchOptions::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_shown_piece_by_piece_and_whole_characters_only() {
        let (mut shown, mut out) = (0, Vec::new());
        for text in ["", "He", "He", "He\u{FFFD}", "He\u{FFFD}\u{FFFD}", "He你", "He你 x"] {
            show(text, &mut shown, &mut out).expect("memory");
        }
        assert_eq!(String::from_utf8(out).expect("text"), "He你 x");
    }
}
