//! Checks that commands in the documentation exist: each `heedful …` in a block of `sh`, with every flag, is
//! in the help.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::workspace::{files, root};
use crate::{markdown, step};

/// Fails with a list of unknown commands and flags. It only runs `--help`.
pub(crate) fn check(program: &Path) -> Result<()> {
    step::timed("the commands of the documentation", || {
        let mut helps = Helps { program, known: BTreeMap::new() };
        let mut complaints = Vec::new();
        for path in files()?.iter().filter(|path| path.ends_with(".md")) {
            let text = std::fs::read_to_string(root().join(path))?;
            for line in commands(&text) {
                complaints
                    .extend(helps.unknown(&line)?.map(|word| format!("{path}: no `{word}` in `{line}`")));
            }
        }
        if !complaints.is_empty() {
            bail!("these commands or flags do not exist:\n  {}", complaints.join("\n  "));
        }
        Ok(())
    })
}

/// The commands of all `sh` blocks, without quoted arguments and comments.
fn commands(text: &str) -> Vec<String> {
    let mut commands = Vec::new();
    for block in markdown::blocks(text).iter().filter(|block| block.language == "sh") {
        let script = block.lines.join("\n").replace("\\\n", " ");
        for line in script.lines() {
            let line = line.split(" #").next().unwrap_or(line);
            let parts = unquoted(line);
            let parts = parts.split(['|', ';', '&']).map(str::trim);
            let words = |part: &str| part.split_whitespace().collect::<Vec<_>>().join(" ");
            commands.extend(parts.filter(|part| part.starts_with("heedful ")).map(words));
        }
    }
    commands
}

/// A line with quoted text replaced by `…`.
fn unquoted(line: &str) -> String {
    let mut result = String::new();
    let mut quote = None;
    for c in line.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == '"' || c == '\'' => {
                quote = Some(c);
                result.push('…');
            }
            None => result.push(c),
        }
    }
    result
}

/// A cache of help texts by subcommand.
struct Helps<'a> {
    program: &'a Path,
    known: BTreeMap<Vec<String>, String>,
}

impl Helps<'_> {
    /// The first unknown word of a command.
    fn unknown(&mut self, command: &str) -> Result<Option<String>> {
        let words: Vec<&str> = command.split_whitespace().skip(1).collect();
        let mut path: Vec<String> = Vec::new();
        let mut help = self.of(&path)?;
        for word in &words {
            if word.starts_with('-') || !lists(&help, word) {
                break;
            }
            path.push((*word).to_owned());
            help = self.of(&path)?;
        }
        if path.is_empty() && !words[0].starts_with('-') {
            return Ok(Some(words[0].to_owned()));
        }
        let flags = words.iter().filter(|word| word.starts_with('-') && word.len() > 1 && **word != "--");
        let mut names = flags.map(|flag| flag.split('=').next().unwrap_or(flag));
        Ok(names.find(|name| !mentions(&help, name)).map(str::to_owned))
    }

    fn of(&mut self, path: &[String]) -> Result<String> {
        if let Some(help) = self.known.get(path) {
            return Ok(help.clone());
        }
        let output = Command::new(self.program).args(path).arg("--help").output();
        let output = output.with_context(|| format!("could not start {}", self.program.display()))?;
        let help = String::from_utf8(output.stdout).context("the help is not UTF-8")?;
        self.known.insert(path.to_vec(), help.clone());
        Ok(help)
    }
}

/// Whether a help text lists a subcommand of this name.
fn lists(help: &str, name: &str) -> bool {
    let listed =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    listed.filter_map(|line| line.strip_prefix("  ")).any(|line| line.split(' ').next() == Some(name))
}

/// Whether a flag has a line of its own in a help text.
fn mentions(help: &str, flag: &str) -> bool {
    let lines = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
    let mut words =
        lines.flat_map(|line| line.split([' ', ',', '[', '=']).take_while(|word| !word.starts_with('<')));
    words.any(|word| word == flag)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELP: &str = "Usage\n\nCommands:\n  explain    Show it\n             or --not\n  train  Train\n\nOptions:\n  \
        -o, --output <FILE>\n      --dashboard[=<PORT>]  Serve --this\n  -q, --quiet  Less\n";

    #[test]
    fn commands_are_found_in_shell_blocks() {
        let text = "```sh\ncargo x\nheedful a \"b -- c\" \\\n  -o d   # heedful e\necho x | heedful f && heedful g --h\n```\n```text\nheedful i\n```\n";
        assert_eq!(commands(text), ["heedful a … -o d", "heedful f", "heedful g --h"]);
    }

    #[test]
    fn help_names_subcommands_and_flags() {
        assert!(lists(HELP, "explain") && lists(HELP, "train"));
        assert!(!lists(HELP, "or") && !lists(HELP, "Usage") && !lists(HELP, "run"));
        for flag in ["-o", "--output", "--dashboard", "-q", "--quiet"] {
            assert!(mentions(HELP, flag), "{flag}");
        }
        assert!(!mentions(HELP, "--out") && !mentions(HELP, "--not"));
    }
}
