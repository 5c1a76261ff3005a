//! The short help, `-h`: what most people need, on one screen; `--help` has everything.

use clap::Command;

/// Commands with more options than one screen has lines, and those options that the short help shows.
const SHOWN: &[(&str, &[&str])] = &[
    (
        "train",
        &[
            "src",
            "tgt",
            "valid-src",
            "valid-tgt",
            "task",
            "out",
            "preset",
            "family",
            "vocabulary-size",
            "encoder-layers",
            "decoder-layers",
            "batch-tokens",
            "steps",
            "time",
            "lr",
            "resume",
            "device",
        ],
    ),
    ("variations", &["out", "only", "seeds", "steps", "time", "device", "set"]),
    (
        "translate",
        &[
            "text",
            "beam",
            "length-penalty",
            "n-best",
            "terms",
            "sample",
            "seed",
            "output",
            "scores",
            "align",
            "json",
            "quiet",
            "compute",
            "device",
        ],
    ),
    (
        "serve",
        &[
            "model",
            "source",
            "target",
            "runs",
            "host",
            "port",
            "keys",
            "allow-host",
            "watch",
            "beam",
            "compute",
            "device",
        ],
    ),
    ("explain", &["target", "output", "view", "layer", "head", "device"]),
    (
        "generate",
        &[
            "prompt",
            "tokens",
            "n",
            "temperature",
            "top-k",
            "top-p",
            "beam",
            "seed",
            "json",
            "compute",
            "device",
        ],
    ),
    (
        "evaluate",
        &[
            "ref",
            "metric",
            "tokenize",
            "lowercase",
            "src",
            "model",
            "confidence",
            "compare",
            "json",
            "device",
        ],
    ),
    ("score", &["src", "tgt", "text", "label-text", "output", "json", "compute", "device"]),
    ("classify", &["text", "label-text", "report", "output", "json", "compute", "device"]),
];

/// Hides the other options of such a command in `-h`, which refers to `--help`.
pub(super) fn of(command: Command) -> Command {
    let Some((_, shown)) = SHOWN.iter().find(|(name, _)| *name == command.get_name()) else { return command };
    let mut hidden = 0;
    let command = command.mut_args(|argument| {
        let is_shown =
            argument.is_positional() || argument.get_long().is_some_and(|name| shown.contains(&name));
        hidden += usize::from(!is_shown);
        argument.hide_short_help(!is_shown)
    });
    command.after_help(format!("{hidden} more options: --help"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find<'c>(command: &'c Command, name: &str) -> Option<&'c Command> {
        if command.get_name() == name {
            return Some(command);
        }
        command.get_subcommands().find_map(|child| find(child, name))
    }

    #[test]
    fn every_option_of_the_short_help_exists() {
        let program = crate::command_line();
        for (name, shown) in SHOWN {
            let command = find(&program, name).unwrap_or_else(|| panic!("there is no command {name}"));
            for option in *shown {
                let exists = command.get_arguments().any(|argument| argument.get_long() == Some(option));
                assert!(exists, "{name} has no option --{option}");
            }
        }
    }
}
