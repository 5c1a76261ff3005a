//! `heedful explain patch`: states of a clean text, put into the run of a corrupted one.

use anyhow::Result;
use clap::ValueEnum;
use heedful::explain::patching::{PatchUnit, Patching};

use super::inspected::{InspectArguments, Views};

/// Show where the answer is decided: put states of one text into the run of another
///
/// Two texts with the same number of tokens have different answers: the first token in which their
/// translations differ, the next token of a language model, the best token for the first <mask>, or the label.
/// The effect of a patch is how far it moves log p(answer) − log p(wrong answer) of the corrupted text towards
/// that of the clean text: 0 is no effect, 1 is the clean text's. For models of the Transformer family.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct Arguments {
    #[command(flatten)]
    inspect: InspectArguments,
    /// The text whose states are put into the other
    #[arg(value_name = "TEXT")]
    clean: String,
    /// The text whose run is changed
    #[arg(value_name = "TEXT")]
    corrupted: String,
    /// The unit that a patch replaces
    #[arg(long, value_enum, default_value = "states")]
    unit: UnitName,
    /// The answer: a translation, a label, or a token [default: the model's for the clean text]
    #[arg(long, value_name = "TEXT")]
    answer: Option<String>,
    /// The wrong answer [default: the model's for the corrupted text]
    #[arg(long, value_name = "TEXT")]
    wrong: Option<String>,
    /// Which picture goes into an .svg or .png, counted from 0: encoder before decoder
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Output")]
    picture: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum UnitName {
    /// The residual stream at one position after one layer
    States,
    /// One head of an attention layer, at all positions
    Heads,
}

const EXAMPLES: &str = "\
Examples:
  heedful explain patch run 'A dog runs.' 'A cat runs.'
  heedful explain patch run 'A dog runs.' 'A cat runs.' --unit heads -o heads.html
  heedful explain patch reader 'the <mask> barks' 'the <mask> meows' -o states.svg";

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let opened = arguments.inspect.open("patching")?;
    let texts = [&arguments.clean, &arguments.corrupted].map(String::as_str);
    let answers = [&arguments.answer, &arguments.wrong].map(Option::as_deref);
    let ([clean, corrupted], contrast) = opened.contrast(texts, answers)?;
    let unit = match arguments.unit {
        UnitName::States => PatchUnit::States,
        UnitName::Heads => PatchUnit::Heads,
    };
    let patching = Patching::new(&clean, &corrupted, contrast, unit)?;
    drop((clean, corrupted));
    opened.write(&Views {
        numbers: &patching,
        tables: patching.tables(),
        svg: &|| patching.svg(arguments.picture),
        report: &|model| patching.report(&format!("{model}: {} / {}", texts[0], texts[1])),
    })
}
