//! `heedful train`: from text files to a model.

mod arguments;

use std::io::{self, Write};

use anyhow::{Result, bail};
use heedful::tensor::cpu::threads;

pub(crate) use self::arguments::Arguments;

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let recipe = arguments.recipe()?;
    if arguments.print_recipe {
        return Ok(io::stdout().lock().write_all(recipe.to_toml().as_bytes())?);
    }
    if let Some(count) = arguments.threads {
        threads::set_thread_count(count.into());
    }
    bail!("this build can only print recipes (--print-recipe): the training loop is not part of it")
}
