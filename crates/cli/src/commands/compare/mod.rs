//! `heedful compare`: layers and models side by side.

mod layers;
mod variations;

use anyhow::Result;

/// Measure the tables of “Attention Is All You Need” on this machine: layers, and variations of a model
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

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
