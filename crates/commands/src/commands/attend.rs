//! `heedful attend`: the attention exercise with the user's own numbers.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use heedful::explain::calculator::{EXAMPLES as EXERCISES, Exercise, ExerciseOverrides, MaskRule};
use heedful::layers::AttentionScore;

use super::explain::output::{Format, write_picture};
use crate::output::Force;

/// Compute attention over your own numbers and show every table: Q, K, V, scores, scaled, masked, softmax,
/// result
///
/// FILE is JSON: x with w_q, w_k and w_v (biases b_q, b_k, b_v), or q, k and v. With memory, keys and values
/// come from its rows (cross attention). score is scaled-dot, dot, general (with score_matrix) or additive (score_query, score_key,
/// score_bias, score_vector); mask is "causal" or rows of true (visible) and false (masked); window limits
/// the distance of keys; heads splits the columns, and w_o with b_o projects the concatenated heads; tokens
/// and memory_tokens are labels. Everything is computed in f64. Sequences have at most 64 rows, matrices 256
/// columns.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// File of numbers, or - for standard input
    #[arg(value_name = "FILE", required_unless_present = "example")]
    numbers: Option<PathBuf>,
    /// Print an example file and compute nothing
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "self", value_parser = example_names(),
        conflicts_with_all = ["numbers", "score", "mask", "window", "output", "json", "digits"])]
    example: Option<String>,
    /// Score function, instead of the file's
    #[arg(long, value_name = "SCORE", value_parser = score_names())]
    score: Option<String>,
    /// Mask, instead of the file's
    #[arg(long, value_name = "MASK", value_parser = ["none", "causal"])]
    mask: Option<String>,
    /// Maximum distance between a query and its keys, instead of the file's window
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=64))]
    window: Option<u8>,
    /// Also write a page with pictures (.html), all digits (.json), the tables (.txt) or the weights as a
    /// picture (.svg, .png)
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
    /// Print JSON with all digits instead of tables
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// Digits after the decimal point in tables
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u8).range(0..=15), help_heading = "Output")]
    digits: u8,
    #[command(flatten)]
    force: Force,
}

const EXAMPLES: &str = "\
Examples:
  heedful attend --example > numbers.json
  heedful attend numbers.json
  heedful attend numbers.json --score dot --mask none -o page.html
  heedful attend --example cross | heedful attend - --json

Other example files: --example cross, heads, additive.";

const FORMATS: [Format; 5] = [Format::Html, Format::Json, Format::Text, Format::Svg, Format::Png];

/// Maximum file size in bytes: larger than any valid exercise.
const MAX_BYTES: u64 = 8 << 20;

fn example_names() -> Vec<&'static str> {
    EXERCISES.iter().map(|(name, ..)| *name).collect()
}

fn score_names() -> Vec<&'static str> {
    AttentionScore::ALL.iter().map(|score| score.name()).collect()
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut out = io::stdout().lock();
    if let Some(name) = &arguments.example {
        let (_, _, text) = EXERCISES.iter().find(|(known, ..)| known == name).expect("a known name");
        return Ok(out.write_all(text.as_bytes())?);
    }
    let format = arguments.output.as_deref().map(|path| Format::of(path, &FORMATS)).transpose()?;
    let path = arguments.numbers.as_deref().expect("clap requires it");
    let file = arguments.force.open_if_named(arguments.output.as_deref(), &[path])?;
    let text = read(path)?;
    let name = if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() };
    let exercise =
        Exercise::parse_with(&text, &arguments.keys()).map_err(|error| anyhow!("{name}: {error}"))?;
    let solution = exercise.solve();
    let digits = usize::from(arguments.digits);
    let shown = match arguments.json {
        true => format!("{}\n", solution.to_json()),
        false => solution.to_text(digits),
    };
    if let (Some(file), Some(format)) = (file, format) {
        match format {
            Format::Svg | Format::Png => write_picture(file, &solution.weights_svg())?,
            Format::Json => file.finish_with(format!("{}\n", solution.to_json()).as_bytes())?,
            Format::Text => file.finish_with(solution.to_text(digits).as_bytes())?,
            _ => {
                file.finish_with(
                    solution.report(&format!("Attention: {name}"), digits).to_html().as_bytes(),
                )?;
            }
        }
    }
    Ok(out.write_all(shown.as_bytes())?)
}

impl Arguments {
    fn keys(&self) -> ExerciseOverrides {
        ExerciseOverrides {
            score: self.score.as_deref().and_then(AttentionScore::from_name),
            mask: self.mask.as_deref().map(|mask| (mask == "causal").then_some(MaskRule::Causal)),
            window: self.window.map(usize::from),
        }
    }
}

/// Reads a file of at most [`MAX_BYTES`].
fn read(path: &Path) -> Result<String> {
    let cannot = || format!("cannot read {}", path.display());
    let source: Box<dyn Read> = match path == Path::new("-") {
        true => Box::new(io::stdin().lock()),
        false => Box::new(File::open(path).with_context(cannot)?),
    };
    let mut bytes = Vec::new();
    source.take(MAX_BYTES + 1).read_to_end(&mut bytes).with_context(cannot)?;
    if bytes.len() as u64 > MAX_BYTES {
        bail!("{} has more than {MAX_BYTES} bytes: give a small exercise", path.display());
    }
    String::from_utf8(bytes).map_err(|_| anyhow!("{} is not text in UTF-8", path.display()))
}
