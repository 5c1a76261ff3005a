//! `heedful explain`: shows a model's attention as pictures, tables and numbers.

mod sentence;

mod mask;
mod model;

mod example;

mod attribute;
mod lens;
mod neuron;
mod patch;

mod contrast;

mod inspected;

mod heads;
mod prune;

mod bottleneck;
mod experiment;
mod why;

mod pictures;

mod input;
pub(in crate::commands) mod output;

use anyhow::Result;

/// Show what a model attends to: one sentence as a page, a picture or numbers, or its heads over a corpus
///
/// `heedful explain MODEL TEXT` runs the model on a text (translates, classifies, fills gaps or predicts each
/// token, depending on the model's task) and shows the attention weights on the terminal, or writes them to a
/// file with -o. Heads are named by layer and number, both counted from 0: decoder.1.cross.2,
/// encoder.0.self.3. If a model folder has the name of a subcommand, write it with a slash: ./heads. All
/// weights are kept in memory (layers × heads × the square of the number of tokens), so a text with more
/// tokens than --max-tokens is refused.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    sentence: sentence::SentenceArguments,
}

const EXAMPLES: &str = "\
Examples:
  heedful explain run 'A dog runs.'
      the cross attention, drawn on the terminal

  heedful explain run 'A dog runs.' -o dog.html
      an interactive page with every layer and head

  heedful explain run 'A dog runs.' -o dog.svg --view grid
  heedful explain run 'A dog runs.' -o dog.png --head encoder.0.self.3
      pictures for a paper

  heedful explain run 'A dog runs.' --mask cross=mask.txt -o dog.json --raw-scores
      with a custom mask, and the scores before the softmax

  heedful explain news 'shares fell after the report'
  heedful explain writer 'Once upon a time' -o story.html
  heedful explain reader 'the <mask> drives' -o gap.svg
      classifiers, language models and masked language models

  heedful explain lens run 'A dog runs.'
  heedful explain attribute run 'A dog runs.' -o dog.html
      the predictions of every layer, and the tokens that a prediction comes from

  heedful explain patch run 'A dog runs.' 'A cat runs.'
  heedful explain neuron run 'A dog runs.' --head decoder.0.cross.0
      where the answer is decided, and the numbers behind one attention weight

  heedful explain heads run --src valid.en --tgt valid.de
  heedful explain prune run --src valid.en --ref valid.de
      statistics of each head, and the BLEU lost without it

  heedful explain scaling
  heedful explain order
  heedful explain bottleneck
  heedful explain example
      experiments on the reasons for 1/√d_k, positions and attention, and on the function of a head";

#[derive(clap::Subcommand)]
enum Command {
    Lens(lens::Arguments),
    Attribute(attribute::Arguments),
    Patch(patch::Arguments),
    Neuron(neuron::Arguments),
    Heads(heads::Arguments),
    Prune(prune::Arguments),
    Example(example::Arguments),
    Scaling(why::Scaling),
    Order(why::Order),
    Bottleneck(bottleneck::Bottleneck),
    Positions(pictures::Positions),
    Schedule(pictures::Schedule),
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    match &arguments.command {
        None => sentence::run(&arguments.sentence),
        Some(Command::Lens(arguments)) => lens::run(arguments),
        Some(Command::Attribute(arguments)) => attribute::run(arguments),
        Some(Command::Patch(arguments)) => patch::run(arguments),
        Some(Command::Neuron(arguments)) => neuron::run(arguments),
        Some(Command::Heads(arguments)) => heads::run(arguments),
        Some(Command::Prune(arguments)) => prune::run(arguments),
        Some(Command::Example(arguments)) => example::run(arguments),
        Some(Command::Scaling(arguments)) => arguments.run(),
        Some(Command::Order(arguments)) => arguments.run(),
        Some(Command::Bottleneck(arguments)) => arguments.run(),
        Some(Command::Positions(arguments)) => arguments.run(),
        Some(Command::Schedule(arguments)) => arguments.run(),
    }
}
