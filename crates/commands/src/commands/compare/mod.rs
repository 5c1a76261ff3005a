//! `heedful compare`: measures layers and variations of a model.

mod builtin;
mod layers;
mod variations;

use anyhow::Result;

/// Measure the tables of “Attention Is All You Need” on this machine: layers, and variations of a model
///
/// Both print a table in Markdown; with --out they also write it as CSV, and a report with charts.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  heedful compare layers --out layers
  heedful compare variations recipe.toml --out table
  heedful compare variations norm";

#[derive(clap::Subcommand)]
enum Command {
    Layers(layers::Arguments),
    Variations(variations::Arguments),
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    match &arguments.command {
        Command::Layers(arguments) => layers::run(arguments),
        Command::Variations(arguments) => variations::run(arguments),
    }
}
