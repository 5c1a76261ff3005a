//! `heedful models`: lists models that can be imported, and where to download them.

use std::io::{self, Write};

use anyhow::{Result, bail};
use heedful::exchange::zoo::Zoo;

/// List models of other projects that heedful imports, with licence, size and checksum
///
/// Nothing is downloaded. With NAME, prints the shell commands that download the model, verify and import it.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A model of the list
    name: Option<String>,
    /// Print the list as JSON
    #[arg(long, conflicts_with = "name")]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  heedful models
  heedful models bergamot-en-pt
  heedful models bergamot-en-pt | sh";

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let zoo = Zoo::known();
    let text = match &arguments.name {
        Some(name) => script(&zoo, name)?,
        None if arguments.json => serde_json::to_string_pretty(&zoo)? + "\n",
        None => list(&zoo),
    };
    Ok(io::stdout().lock().write_all(text.as_bytes())?)
}

fn list(zoo: &Zoo) -> String {
    let mut text = String::from("Models whose output was compared with the original implementation:\n\n");
    for model in &zoo.models {
        let megabytes = model.bytes.div_ceil(1_000_000);
        text +=
            &format!("  {:18} {:10} {:>4} MB   {}\n", model.name, model.languages, megabytes, model.licence);
        text += &format!("  {:18} {}\n", "", model.what);
    }
    text += "\nCommands that download, verify and import one: heedful models NAME\n\nKinds of models:\n\n";
    for family in &zoo.families {
        text += &format!("  {:18} {}\n", family.name, family.what);
        text += &format!("  {:18} licence: {}\n", "", family.licence);
        text += &format!("  {:18} {}\n", "", family.fetch);
        text += &format!("  {:18} heedful import {} -o MODEL\n", "", family.path);
    }
    text
}

fn script(zoo: &Zoo, name: &str) -> Result<String> {
    if let Some(model) = zoo.model(name) {
        return Ok(model.script());
    }
    if let Some(family) = zoo.families.iter().find(|family| family.name == name) {
        bail!("`{name}` is a kind of models: fetch one (`{}`) and import it", family.fetch);
    }
    let names = zoo.models.iter().map(|model| model.name.as_str());
    let near = names.clone().min_by_key(|known| strsim::osa_distance(name, known));
    match near.filter(|near| strsim::osa_distance(name, near) <= 3) {
        Some(near) => bail!("there is no model `{name}` in the list; did you mean `{near}`?"),
        None => bail!("there is no model `{name}` in the list: {}", names.collect::<Vec<_>>().join(", ")),
    }
}
