//! `heedful explain lens`: the predictions of every layer.

use anyhow::Result;
use heedful::explain::lens::Lens;

use super::inspected::{InspectArguments, Views};

/// Show what every layer predicts: the logit lens
///
/// The state of each layer goes through the model's own final norm and output matrix, at every position. For
/// each layer and position: the most probable tokens, and probability and rank of the target, which is the
/// token of the text or translation, the best token for a <mask>, or the label. Layers count from 0; the
/// embedding is the input of layer 0, and the last layer predicts what the model predicts. For models of the
/// Transformer family.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct Arguments {
    #[command(flatten)]
    inspect: InspectArguments,
    /// The text; with <mask> where a masked language model should predict a token
    #[arg(value_name = "TEXT")]
    text: String,
    /// Follow this translation, or this label of a classifier, instead of the model's own
    #[arg(long, value_name = "TEXT")]
    target: Option<String>,
    /// Number of tokens of each layer and position
    #[arg(long, value_name = "N", default_value_t = 5, help_heading = "Output")]
    top: usize,
}

const EXAMPLES: &str = "\
Examples:
  heedful explain lens run 'A dog runs.'
  heedful explain lens run 'A dog runs.' --target 'Ein Hund läuft.' -o lens.html
  heedful explain lens reader 'the <mask> drives' -o lens.svg";

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let opened = arguments.inspect.open("the logit lens")?;
    let text = opened.text(&arguments.text, arguments.target.as_deref())?;
    let lens = Lens::new(&text, arguments.top)?;
    drop(text);
    opened.write(&Views {
        numbers: &lens,
        tables: vec![lens.table()],
        svg: &|| lens.svg(),
        report: &|model| lens.report(&format!("{model}: {}", arguments.text)),
    })
}
