//! `heedful compare`: layers and models side by side.

pub(super) mod bar;
mod layers;
mod variations;

use anyhow::Result;

/// Make the paper's tables on this machine: layers by time and memory, variations of a model by what they learn.
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
