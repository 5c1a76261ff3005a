//! Hints for arguments that other programs have.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Flags of other programs, and how to get their effect here: command (empty: any), flag, hint.
const HINTS: &[(&str, &str, &str)] = &[
    ("train", "epochs", "training is measured in steps or time: --steps 20000, or --time 20m"),
    ("train", "batch-size", "batches are measured in tokens: --batch-tokens 4096"),
    ("train", "layers", "--encoder-layers N and --decoder-layers N, or --preset tiny|small|base|big"),
    ("train", "num-layers", "--encoder-layers N and --decoder-layers N, or --preset tiny|small|base|big"),
    ("train", "hidden-size", "--d-model N and --d-ff N"),
    ("train", "output-dir", "-o FOLDER"),
    ("train", "save-dir", "-o FOLDER"),
    ("train", "gpu", "--device cuda"),
    (
        "train",
        "gpus",
        "--device cuda; several GPUs: mpirun -n N heedful train … --distributed mpi --device cuda",
    ),
    ("train", "fp16", "--compute bf16 is the default"),
    ("train", "bf16", "--compute bf16 is the default"),
    ("train", "lang", "the languages come from the names of the files: train.en, train.de"),
    ("", "gpu", "--device cuda"),
    ("", "cuda", "--device cuda"),
    ("", "cpu", "--device cpu"),
    ("", "beam-size", "--beam N"),
    ("", "num-beams", "--beam N"),
    ("", "batch-size", "batches are measured in tokens: --batch-tokens N"),
    ("", "int8", "--compute int8, or convert the model: heedful quantize MODEL --to int8 -o SMALL"),
    ("generate", "max-len", "--tokens N"),
    ("generate", "max-length", "--tokens N"),
    ("generate", "max-new-tokens", "--tokens N"),
    ("", "max-len", "--max-length N"),
    ("", "input", "the text file is an argument without a flag; --text \"…\" takes a text itself"),
    ("", "src-lang", "a model has one direction: give the folder of the model for yours"),
];

/// The hint for an error of clap's, if there is one whose first option is among the `flags` of the command.
pub(super) fn find(error: &clap::Error, arguments: &[OsString], flags: &[String]) -> Option<&'static str> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else { return None };
    let unknown = unknown.strip_prefix("--")?.split('=').next()?.replace('_', "-");
    let is_here = |command: &str| {
        command.is_empty() || arguments.iter().skip(1).any(|argument| argument.to_str() == Some(command))
    };
    let fits = |hint: &str| match hint.split("--").nth(1) {
        Some(rest) => flags
            .iter()
            .any(|flag| rest.split(|c| c != '-' && !char::is_alphanumeric(c)).next() == Some(flag.as_str())),
        None => true,
    };
    let hints = HINTS.iter().filter(|(command, name, _)| *name == unknown && is_here(command));
    hints.map(|(_, _, hint)| *hint).find(|hint| fits(hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(line: &str, flags: &[&str]) -> Option<&'static str> {
        let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let flags: Vec<String> = flags.iter().map(|&flag| flag.to_owned()).collect();
        let mut error = clap::Error::new(ErrorKind::UnknownArgument);
        error.insert(
            ContextKind::InvalidArg,
            ContextValue::String(arguments.last()?.to_string_lossy().into_owned()),
        );
        find(&error, &arguments, &flags)
    }

    #[test]
    fn hints_name_options_that_the_command_has() {
        assert_eq!(hint("heedful translate --num_beams=4", &["beam"]), Some("--beam N"));
        assert_eq!(hint("heedful evaluate --num-beams", &["ref"]), None);
        assert_eq!(hint("heedful generate --max-len", &["tokens"]), Some("--tokens N"));
        assert!(
            hint("heedful train --epochs", &["steps", "time"]).is_some_and(|hint| hint.contains("--steps"))
        );
        assert!(hint("heedful translate --src-lang", &[]).is_some_and(|hint| hint.contains("one direction")));
        assert_eq!(hint("heedful translate --nonsense", &["beam"]), None);
    }
}
