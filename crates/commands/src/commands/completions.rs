//! `heedful completions`: a script that completes commands and options in a shell.

use std::io::{self, Write};

use anyhow::Result;
use clap_complete::Shell;

/// Print a script that completes heedful's commands and options in a shell
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Shell
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  heedful completions bash > ~/.local/share/bash-completion/completions/heedful
  heedful completions zsh > \"${fpath[1]}/_heedful\"
  heedful completions fish > ~/.config/fish/completions/heedful.fish";

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut crate::command_line(), "heedful", &mut script);
    io::stdout().write_all(&script)?;
    Ok(())
}
