//! `heedful generate`: a language model goes on with a prompt, and shows each token when it is there.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;
use heedful::decode::{Sampling, SearchOptions};
use heedful::tasks::language::Generator;
use heedful::tensor::DType;
use heedful::tensor::cpu::threads;
use serde_json::json;

use super::translate::compute;

/// Go on with a text
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The folder of a language model or of its training run
    model: PathBuf,
    /// How the text begins
    #[arg(long, default_value = "", value_name = "TEXT", allow_hyphen_values = true)]
    prompt: String,
    /// The most tokens that are added
    #[arg(long, default_value_t = 100, value_name = "N")]
    tokens: usize,
    /// So many texts
    #[arg(long, default_value_t = 1, value_name = "N")]
    n: usize,

    /// Below 1 bolder, above 1 more even; 0 takes the most probable token each time
    #[arg(
        long,
        default_value_t = 1.0,
        value_name = "T",
        allow_negative_numbers = true,
        help_heading = "Sampling"
    )]
    temperature: f32,
    /// Draw from the K most probable tokens only
    #[arg(long, value_name = "K", help_heading = "Sampling")]
    top_k: Option<usize>,
    /// Draw from the most probable tokens that have this probability together
    #[arg(long, value_name = "P", help_heading = "Sampling")]
    top_p: Option<f32>,
    /// Decides the draws: the same seed gives the same text
    #[arg(long, default_value_t = 1, value_name = "N", help_heading = "Sampling")]
    seed: u64,
    /// Search for probable texts with so many hypotheses instead of drawing them
    #[arg(long, value_name = "N", help_heading = "Search")]
    beam: Option<usize>,
    /// No sequence of N tokens occurs twice in what is added
    #[arg(long, value_name = "N", help_heading = "Search")]
    no_repeat_ngram: Option<usize>,

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
    let options = arguments.search_options();
    options.check()?;
    let generator = Generator::open(&arguments.model)?;
    let options = generator.options(&arguments.prompt, arguments.tokens, &options)?;
    let mut generation = generator.begin(&arguments.prompt, &options)?;
    let mut out = io::stdout().lock();
    // Of several hypotheses none is the text before all are complete.
    let shows_progress = options.n_best == 1 && options.beam == 1 && !arguments.json;
    let mut shown = 0;
    while generation.step()? {
        if shows_progress {
            show(&generation.so_far(), &mut shown, &mut out)?;
        }
    }
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
    Ok(())
}

/// Writes what is new of a text; a character of which bytes are missing waits for them.
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
    fn search_options(&self) -> SearchOptions {
        let sampling =
            Sampling { temperature: self.temperature, top_k: self.top_k, top_p: self.top_p, seed: self.seed };
        let is_drawn = self.beam.is_none() && self.temperature != 0.0;
        SearchOptions {
            beam: self.beam.unwrap_or(1),
            n_best: self.n,
            sampling: is_drawn.then_some(sampling),
            no_repeat_ngram: self.no_repeat_ngram,
            compute: self.compute,
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
