//! `heedful explain neuron`: the numbers of one attention weight and one path.

use anyhow::Result;
use heedful::explain::neuron::NeuronView;
use heedful::models::HeadName;

use super::inspected::{InspectArguments, Views};

/// Show the numbers behind one attention weight, and one token's path to its logits
///
/// For a query and a key of one head: q, k and q ∘ k element by element, whose sum, scaled, is the score
/// before the softmax. For the query's token: its states from the embedding through every layer, and the
/// largest logits at its position. For models of the Transformer family.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct Arguments {
    #[command(flatten)]
    inspect: InspectArguments,
    /// The text; with <mask> where a masked language model should predict a token
    #[arg(value_name = "TEXT")]
    text: String,
    /// Use this translation, or this label of a classifier, instead of the model's own
    #[arg(long, value_name = "TEXT")]
    target: Option<String>,
    /// The head: encoder.LAYER.self.HEAD, decoder.LAYER.self.HEAD or decoder.LAYER.cross.HEAD, counted from 0
    /// [default: head 0 of the first layer of the stack that predicts]
    #[arg(long, value_name = "HEAD")]
    head: Option<HeadName>,
    /// Position of the token that attends, counted from 0 with special tokens [default: the last]
    #[arg(long, value_name = "N")]
    query: Option<usize>,
    /// Position of the token that it attends to [default: the one with the largest weight]
    #[arg(long, value_name = "N")]
    key: Option<usize>,
    /// Number of logits
    #[arg(long, value_name = "N", default_value_t = 10, help_heading = "Output")]
    top: usize,
}

const EXAMPLES: &str = "\
Examples:
  heedful explain neuron run 'A dog runs.' --head decoder.1.cross.2 --query 2 --key 1
  heedful explain neuron run 'A dog runs.' --head encoder.0.self.0 -o neuron.html";

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let opened = arguments.inspect.open("the neuron view")?;
    let text = opened.text(&arguments.text, arguments.target.as_deref())?;
    let head = arguments.head.unwrap_or_else(|| NeuronView::first_head(&text));
    let view = NeuronView::new(&text, head, [arguments.query, arguments.key], arguments.top)?;
    drop(text);
    opened.write(&Views {
        numbers: &view,
        tables: view.tables(),
        svg: &|| view.svg(),
        report: &|model| view.report(&format!("{model}: {}", arguments.text)),
    })
}
