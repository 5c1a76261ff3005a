//! `cargo xtask bits`: checksums of the results of every family and task, on every instruction set of this
//! machine.
//!
//! A refactoring must keep every bit. Print the table before the change, and compare with it afterwards:
//!
//! ```sh
//! cargo xtask bits > target/before.txt
//! cargo xtask bits target/before.txt
//! ```
//!
//! Each line is a small model that the release binary trains for 20 steps and then runs: a checksum of its
//! weights and one of its output for a few texts. The command only runs the binary and links no other code of
//! the project, so that code changes cannot affect the comparison. `HEEDFUL_BITS_OF` names a binary to use
//! instead of this tree's.

mod corpus;

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::step;
use crate::workspace::{cargo, release_program, target};

/// A model to train and use: its name, its task and its flags.
#[derive(Clone)]
struct Case {
    name: &'static str,
    task: &'static str,
    flags: String,
}

/// One case per line.
const CASES: &str = "
    transformer                translate --attention-dropout 0.1 --feed-forward-dropout 0.1
    transformer-pre-gelu       translate --norm pre --activation gelu --positions learned
    transformer-silu           translate --activation silu
    transformer-window-dot     translate --window 2 --score dot --tying target-output --key-width 32 --value-width 48 --ema 0.9
    recurrent-plain            translate --family recurrent --attention none --cell gru
    recurrent-additive         translate --family recurrent --score additive
    recurrent-general          translate --family recurrent --score general --cell simple --decoder-layers 2
    recurrent-dot              translate --family recurrent --score scaled-dot --cell gru
    recurrent-hard             translate --family recurrent --attention hard
    recurrent-straight-through translate --family recurrent --attention straight-through --cell gru
    recurrent-after            translate --family recurrent --attend after --decoder-layers 2 --directions forward --recurrent-norm layer
    recurrent-after-hard       translate --family recurrent --attend after --attention hard --score-width 24
    recurrent-feeding          translate --family recurrent --attend feeding --score dot --cell gru --decoder-layers 2
    recurrent-convolution      translate --family recurrent --encoder convolutional --encoder-layers 2 --dilation 2 --positions learned
    convolutional              translate --family convolutional --taps 5
    convolutional-bias         translate --family convolutional --output-bias true
    transformer-batch-norm     translate --norm-kind batch --output-bias true
    transformer-marian         translate --decoder-layer ssru
    convolutional-dilated      translate --family convolutional --dilation 3 --encoder-layers 2 --decoder-layers 3
    convolutional-relu-norm    translate --family convolutional --convolution relu --balance norm --dilation 2 --decoder-layers 2
    classify-transformer       classify
    classify-first             classify  --pooling first --label-smoothing 0.1
    classify-last              classify  --family recurrent --pooling last
    classify-mean              classify  --pooling mean
    classify-max               classify  --family convolutional --pooling max
    classify-recurrent         classify  --family recurrent
    classify-forward           classify  --family recurrent --directions forward --recurrent-norm layer --norm-epsilon 1e-6
    classify-dilated-relu      classify  --family convolutional --convolution relu --dilation 2 --encoder-layers 3
    classify-convolutional     classify  --family convolutional --pooling-score dot
    language                   language  --block 32
    language-lines             language  --block none --norm pre --accumulate 2 --clip-norm 0.5
    language-recurrent         language  --block 32 --family recurrent
    language-gru-bias          language  --block none --family recurrent --cell gru --output-bias true
    masked                     masked
    masked-bert                masked    --activation gelu --scale-embeddings false --embedding-norm true --surround-text true
    masked-gelu-tanh           masked    --activation gelu-tanh
";

/// Flags of all training runs. The sizes are no multiples of any kernel's block, so that tails and odd rows
/// are covered.
const TRAINING: &str = "--preset tiny --steps 20 --warmup 5 --batch-tokens 300 --dropout 0.1 --seed 7 \
    --validation-every 10 --checkpoint-every 20 --log-every 5 --vocabulary-size 420 --quiet";

/// The program to check: its command line, including an emulator if it needs one.
pub(crate) struct Program {
    pub(crate) words: Vec<OsString>,
}

/// Prints the table of this tree's release binary, or of the one named by `HEEDFUL_BITS_OF`.
pub(crate) fn run(before: Option<&str>) -> Result<()> {
    let program = match std::env::var_os("HEEDFUL_BITS_OF") {
        Some(program) => program,
        None => {
            step::command(&mut cargo(["build", "--release"]))?;
            release_program().into()
        }
    };
    table(&Program { words: vec![program] }, before)
}

/// Prints the table; with the file of an earlier table, marks lines that differ, and fails if there are any.
pub(crate) fn table(program: &Program, before: Option<&str>) -> Result<()> {
    let before =
        before.map(|file| fs::read_to_string(file).with_context(|| format!("could not read {file}")));
    let before = before.transpose()?;
    let folder = target().join("bits");
    corpus::write(&folder)?;
    let mut different = 0;
    for isa in ["portable", "neon", "avx2", "avx-vnni", "avx512", "amx"] {
        for (case, compute) in CASES
            .lines()
            .filter_map(Case::of)
            .flat_map(|case| ["f32", "bf16"].map(|compute| (case.clone(), compute)))
        {
            let Some(line) = case.line(program, &folder, isa, compute)? else { break };
            let is_known = before.as_ref().is_none_or(|before| before.lines().any(|old| old == line));
            println!("{line}{}", if is_known { "" } else { "   DIFFERENT" });
            different += usize::from(!is_known);
        }
    }
    ensure!(different == 0, "the bits of {different} results changed");
    Ok(())
}

impl Case {
    /// The case of a line that is not blank.
    fn of(line: &'static str) -> Option<Case> {
        let mut words = line.split_whitespace();
        let (name, task) = (words.next()?, words.next()?);
        Some(Case { name, task, flags: words.collect::<Vec<_>>().join(" ") })
    }

    /// Trains and runs the model, and returns its line. `None` if this machine lacks the instruction set.
    fn line(&self, program: &Program, folder: &Path, isa: &str, compute: &str) -> Result<Option<String>> {
        let run = folder.join("run");
        if run.exists() {
            fs::remove_dir_all(&run)?;
        }
        let (data, use_it) = words(self.task)?;
        let train = format!("train {data} {TRAINING} --compute {compute} --out run {}", self.flags);
        let trained = output(program, folder, isa, &train);
        if trained.with_context(|| format!("{} could not be trained", self.name))?.is_none() {
            return Ok(None);
        }
        let weights = fs::read(run.join("model.safetensors"))?;
        let mut given = Vec::new();
        for words in use_it {
            given.extend(
                output(program, folder, isa, &format!("{words} --compute {compute}"))?.unwrap_or_default(),
            );
        }
        let (weights, given) = (checksum(tensor_data(&weights)?), checksum(&given));
        Ok(Some(format!("{isa:8} {compute:4} {:26} {:016x} {:016x}", self.name, weights, given)))
    }
}

/// Training data of a task, and the commands that run the model.
fn words(task: &str) -> Result<(&'static str, &'static [&'static str])> {
    Ok(match task {
        "translate" => (
            "--src train.src --tgt train.tgt --valid-src valid.src --valid-tgt valid.tgt --vocabulary-kind word",
            &[
                "translate run valid.src --beam 1 --json",
                "translate run valid.src --beam 4 --n-best 2 --scores --align",
                "score run --src valid.src --tgt valid.tgt --json",
            ],
        ),
        "classify" => (
            "--task classify --label-text train.labels --valid-label-text valid.labels",
            &["classify run valid.src --json"],
        ),
        "language" => (
            "--task lm --text train.src --valid-text valid.src",
            &[
                "generate run --prompt one --tokens 20 --seed 3 --json",
                "generate run --prompt two --tokens 20 --beam 3 --json",
            ],
        ),
        "masked" => {
            ("--task mlm --text train.src --valid-text valid.src", &["fill run one<mask>two --top 4 --json"])
        }
        other => bail!("there is no task {other}"),
    })
}

/// The output of a command. `None` if this machine lacks the instruction set; the program then warns and uses
/// another.
fn output(program: &Program, folder: &Path, isa: &str, words: &str) -> Result<Option<Vec<u8>>> {
    let mut command = Command::new(&program.words[0]);
    command
        .args(&program.words[1..])
        .current_dir(folder)
        .args(words.split_whitespace())
        .args(["--device", "cpu"])
        .env("HEEDFUL_ISA", isa);
    let output =
        command.output().with_context(|| format!("could not start {}", program.words[0].display()))?;
    let messages = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("`heedful {words}` failed: {messages}");
    }
    // The second is the message of earlier programs.
    let is_missing = ["this machine does not support", "this machine has no"];
    Ok((!is_missing.iter().any(|message| messages.contains(message))).then_some(output.stdout))
}

/// The tensor data of a safetensors file, without its header.
fn tensor_data(file: &[u8]) -> Result<&[u8]> {
    let (length, rest) = file.split_first_chunk().context("the weights file is truncated")?;
    let header = usize::try_from(u64::from_le_bytes(*length))?;
    rest.get(header..).context("the weights file is truncated")
}

fn checksum(bytes: &[u8]) -> u64 {
    twox_hash::XxHash3_64::oneshot(bytes)
}
