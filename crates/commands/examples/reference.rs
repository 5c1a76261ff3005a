//! Writes the reference pages of the guide, and the manual pages of a release, into a folder:
//!
//! ```text
//! commands.md      every command with its options, from clap
//! recipe.md        every key of a recipe, from the table of keys
//! openapi.json     the routes of `heedful serve MODEL`
//! man/*.1          manual pages
//! ```
//!
//! `cargo xtask site` and `cargo xtask dist` run it: `reference FOLDER [MODEL]`; without a model there
//! is no `openapi.json`.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};

use clap::{Arg, Command};
use heedful::recipe::{Recipe, SECTIONS, Section};
use heedful_server::{ModelSpec, Server, ServerOptions};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let (folder, model) = match arguments.as_slice() {
        [folder] => (folder, None),
        [folder, model] => (folder, Some(model)),
        _ => return Err("usage: reference FOLDER [MODEL]".into()),
    };
    let manual = folder.join("man");
    fs::create_dir_all(&manual)?;
    let mut command = heedful_commands::command_line();
    command.build();
    fs::write(folder.join("commands.md"), commands(&command))?;
    fs::write(folder.join("recipe.md"), recipe())?;
    clap_mangen::generate_to(command, &manual)?;
    if let Some(model) = model {
        fs::write(folder.join("openapi.json"), openapi(model)?)?;
    }
    Ok(())
}

fn commands(program: &Command) -> String {
    let mut page =
        String::from("# Commands\n\nGenerated from the program: `heedful COMMAND --help` prints the same.\n");
    for command in program.get_subcommands().filter(|command| command.get_name() != "help") {
        describe(command, "heedful", &mut page);
    }
    page
}

/// A section for a command, then one for each of its subcommands.
fn describe(command: &Command, parent: &str, page: &mut String) {
    let name = format!("{parent} {}", command.get_name());
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    let level = if parent == "heedful" { "##" } else { "###" };
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").trim();
    let _ = write!(page, "\n{level} {name}\n\n{}\n\n```text\n{usage}\n```\n", escaped(&about));
    let mut groups: Vec<(&str, Vec<&Arg>)> = vec![("Arguments", Vec::new()), ("Options", Vec::new())];
    let mut has_recipe_keys = false;
    for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
        let usual = if argument.is_positional() { "Arguments" } else { "Options" };
        let heading = argument.get_help_heading().unwrap_or(usual);
        // `[training] …` is a section of the recipe, which has a page of its own.
        if heading.starts_with('[') {
            has_recipe_keys = true;
            continue;
        }
        match groups.iter_mut().find(|(name, _)| *name == heading) {
            Some((_, arguments)) => arguments.push(argument),
            None => groups.push((heading, vec![argument])),
        }
    }
    if has_recipe_keys {
        page.push_str("\nEvery [key of a recipe](recipe.md) is an option too.\n");
    }
    for (heading, arguments) in groups.into_iter().filter(|(_, arguments)| !arguments.is_empty()) {
        let _ = write!(page, "\n| {heading} | |\n|---|---|\n");
        for argument in arguments {
            let _ = writeln!(page, "| {} | {} |", spelling(argument), explanation(argument));
        }
    }
    if let Some(examples) = command.get_after_long_help() {
        let text = examples.to_string();
        let text = text.trim_start_matches("Examples:").trim_matches('\n');
        let _ = write!(page, "\nExamples:\n\n```text\n{text}\n```\n");
    }
    for child in command.get_subcommands().filter(|child| child.get_name() != "help") {
        describe(child, &name, page);
    }
}

/// `` `-o`, `--output FILE` ``.
fn spelling(argument: &Arg) -> String {
    let values: Vec<String> =
        argument.get_value_names().unwrap_or_default().iter().map(|name| format!(" {name}")).collect();
    let values = if argument.get_action().takes_values() { values.concat() } else { String::new() };
    if argument.is_positional() {
        let name = if values.is_empty() { argument.get_id().as_str() } else { values.trim() };
        return format!("`{}`", name.replace('|', "\\|"));
    }
    let short = argument.get_short().map(|short| format!("`-{short}`"));
    let long = argument.get_long().map(|long| format!("`--{long}{values}`"));
    let aliases = argument.get_visible_aliases().unwrap_or_default();
    let aliases = aliases.into_iter().map(|alias| format!("`--{alias}`"));
    let all: Vec<String> = short.into_iter().chain(long).chain(aliases).collect();
    all.join(", ").replace('|', "\\|")
}

fn explanation(argument: &Arg) -> String {
    let help = argument.get_long_help().or(argument.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut cell = escaped(&help).replace("\n\n", "<br>").replace('\n', " ").replace('|', "\\|");
    let values = argument.get_possible_values();
    if argument.get_action().takes_values() && !values.is_empty() {
        let shown = values.iter().filter(|value| !value.is_hide_set()).map(|value| match value.get_help() {
            Some(help) => format!("`{}`: {}", value.get_name(), escaped(&help.to_string())),
            None => format!("`{}`", value.get_name()),
        });
        let _ = write!(cell, "<br>{}", shown.collect::<Vec<_>>().join("; "));
    }
    let defaults: Vec<_> =
        argument.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if argument.get_action().takes_values() && !defaults.is_empty() {
        let _ = write!(cell, " (default: `{}`)", defaults.join(" "));
    }
    cell
}

fn recipe() -> String {
    let defaults = Recipe::default();
    let mut page = String::from(
        "# Recipe keys\n\nGenerated from the program. A recipe is a TOML file with these sections; every key is also a flag of \
         `heedful train`,\nand `heedful train … --print-recipe` prints the recipe of a command.\n",
    );
    for Section { name, help, keys } in SECTIONS {
        let _ = write!(
            page,
            "\n## {name}\n\n{}\n\n| key | flag | default | |\n|---|---|---|---|\n",
            escaped(help)
        );
        for key in *keys {
            let value = key.value(&defaults).to_string();
            let value = if value.is_empty() || value == "[]" { String::new() } else { format!("`{value}`") };
            let help = escaped(key.help).replace('|', "\\|");
            let _ = writeln!(
                page,
                "| `{}` | `--{} {}` | {value} | {help} |",
                key.name,
                key.flag(),
                key.value_name
            );
        }
    }
    page
}

/// Escapes text for Markdown, where angle brackets would be parsed as HTML.
fn escaped(text: &str) -> String {
    let pieces = text.split('`').enumerate();
    let pieces = pieces.map(|(index, piece)| {
        if index % 2 == 1 { piece.to_owned() } else { piece.replace('<', "&lt;").replace('>', "&gt;") }
    });
    pieces.collect::<Vec<_>>().join("`")
}

/// The OpenAPI description of a server with this model.
fn openapi(model: &Path) -> Result<String, Box<dyn Error>> {
    let models = vec![ModelSpec::named("model", model)];
    let address = "127.0.0.1:0".parse()?;
    let server = Server::start(ServerOptions { models, address, ..ServerOptions::default() })?;
    let mut stream = TcpStream::connect(server.address())?;
    let host = server.address();
    write!(stream, "GET /openapi.json HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    server.stop();
    let (head, body) = response.split_once("\r\n\r\n").ok_or("the server sent no body")?;
    if !head.starts_with("HTTP/1.1 200") {
        return Err(format!("the server returned {}", head.lines().next().unwrap_or_default()).into());
    }
    Ok(body.to_owned())
}
