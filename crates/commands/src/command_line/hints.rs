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
    ("", "max-len", "--max-length N"),
    ("", "input", "the text file is an argument without a flag; --text \"…\" takes a text itself"),
    ("", "src-lang", "a model has one direction: give the folder of the model for yours"),
];

/// The hint for an error of clap's, if there is one.
pub(super) fn find(error: &clap::Error, arguments: &[OsString]) -> Option<&'static str> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else { return None };
    let flag = unknown.strip_prefix("--")?.split('=').next()?.replace('_', "-");
    let is_here = |command: &str| {
        command.is_empty() || arguments.iter().skip(1).any(|argument| argument.to_str() == Some(command))
    };
    HINTS.iter().find(|(command, name, _)| *name == flag && is_here(command)).map(|(_, _, hint)| *hint)
}
