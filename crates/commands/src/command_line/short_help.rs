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
            "text",
            "label-text",
            "out",
            "preset",
            "family",
            "vocabulary-size",
            "d-model",
            "encoder-layers",
            "decoder-layers",
            "heads",
            "batch-tokens",
            "steps",
            "time",
            "dropout",
            "lr",
            "warmup",
            "seed",
            "resume",
            "init-from",
            "device",
        ],
    ),
    ("variations", &["out", "only", "seeds", "steps", "time", "device", "threads", "set"]),
    (
        "translate",
        &[
            "text",
            "beam",
            "length-penalty",
            "n-best",
            "prefix",
            "terms",
            "sample",
            "seed",
            "output",
            "scores",
            "align",
            "attention",
            "json",
            "quiet",
            "compute",
            "device",
            "threads",
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
            "threads",
        ],
    ),
    (
        "explain",
        &["target", "output", "view", "layer", "head", "level", "mask", "compute", "device", "threads"],
    ),
    (
        "generate",
        &[
            "prompt",
            "max-tokens",
            "temperature",
            "top-k",
            "top-p",
            "beam",
            "seed",
            "output",
            "compute",
            "device",
            "threads",
        ],
    ),
    (
        "evaluate",
        &["ref", "metric", "tokenize", "lowercase", "src", "model", "compare", "json", "output", "device"],
    ),
    ("score", &["src", "tgt", "text", "output", "json", "compute", "device", "threads"]),
    ("classify", &["text", "top", "label-text", "report", "output", "json", "compute", "device", "threads"]),
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
