//! `cargo xtask study classify|language DATA [SEEDS]`: the quality of heedful's classifiers and language models, compared
//! with the same models in PyTorch, trained on the same tokens with the same recipe.
//!
//! DATA is a folder of data sets that are not part of the project (`bench/README.md` names them), so no test runs this.
//! Trained models stay in `target/study`: an interrupted study resumes.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::python::Environment;
use crate::workspace::{cargo, release_program, root, target};
use crate::{python, step};

/// A corpus with the training budget of both sides.
struct Corpus {
    name: &'static str,
    steps: &'static str,
    batch_tokens: &'static str,
    vocabulary: &'static [&'static str],
}

const BPE: &[&str] = &["--vocabulary-size", "8000"];
const CHARACTERS: &[&str] = &["--vocabulary-kind", "character", "--vocabulary-size", "400"];

const LABELLED: [Corpus; 3] = [
    Corpus { name: "ag-news-10k", steps: "600", batch_tokens: "4096", vocabulary: BPE },
    Corpus { name: "thucnews-titles-20k", steps: "600", batch_tokens: "2048", vocabulary: BPE },
    Corpus { name: "zh-online-shopping", steps: "400", batch_tokens: "2048", vocabulary: BPE },
];
const FAMILIES: [&str; 3] = ["recurrent", "convolutional", "transformer"];
const CLASSIFIER: &str = "--d-model 256 --encoder-layers 2 --dropout 0.3 --warmup 60 --over-long cut";
const TRANSFORMER: &str = "--d-ff 512 --heads 4";

const PLAIN: [Corpus; 2] = [
    Corpus { name: "wikitext2-raw", steps: "1000", batch_tokens: "2048", vocabulary: BPE },
    Corpus { name: "tinyshakespeare", steps: "1000", batch_tokens: "2048", vocabulary: CHARACTERS },
];
const LANGUAGE: &str = "--d-model 256 --d-ff 1024 --heads 4 --decoder-layers 4 --dropout 0.1 --warmup 100";

/// Programs and folders.
struct Study {
    heedful: PathBuf,
    python: PathBuf,
    folder: PathBuf,
}

pub(crate) fn run(kind: &str, data: &str, seeds: Option<&str>) -> Result<()> {
    let seeds: u32 =
        seeds.unwrap_or("1").parse().context("SEEDS is a number: how often each model is trained")?;
    let study = Study::prepare(Path::new(data))?;
    match kind {
        "classify" => study.classify(seeds),
        "language" => study.language(seeds),
        other => bail!("there is no study `{other}`; there are: classify, language"),
    }
}

impl Study {
    fn prepare(data: &Path) -> Result<Study> {
        let python = python::environment(Environment::Peers)?;
        let folder = target().join("study");
        let build = ["build", "--release", "--package", "heedful-cli"];
        step::command(&mut cargo(build))?;
        let heedful = release_program();
        let mut unpack = peer(&python, "study_data.py");
        step::command(unpack.arg(data).arg(&folder))?;
        Ok(Study { heedful, python, folder })
    }

    fn classify(&self, seeds: u32) -> Result<()> {
        let mut rows = Vec::new();
        for corpus in &LABELLED {
            let test = self.folder.join(format!("{}.test.tsv", corpus.name));
            for (family, seed) in
                FAMILIES.iter().flat_map(|family| (1..=seeds).map(move |seed| (family, seed)))
            {
                let name = format!("{}-{family}-{seed}", corpus.name);
                let train = self.folder.join(format!("{}.train.tsv", corpus.name));
                // The test set is evaluated once, after the last step: nothing is selected by it.
                let files = [("--label-text", &train), ("--valid-label-text", &test)];
                let mut command = self.training(&name, corpus, &files);
                command.args(["--task", "classify", "--family", family]).args(CLASSIFIER.split(' '));
                if *family == "transformer" {
                    command.args(TRANSFORMER.split(' '));
                }
                let run = self.trained(&name, seed, &mut command)?;
                let held_out = self.encoded(corpus, "classify", ("--label-text", &test), &run)?;
                let ours = last_values(&run, ["valid_accuracy", "valid_macro_f1"])?;
                let theirs = self.theirs("study_classify.py", &run, &held_out, seed)?;
                let [accuracy, f1] = ours.map(|share| format!("{:.1}", 100.0 * share));
                let theirs = ["accuracy", "macro_f1"].map(|key| theirs[key].to_string());
                rows.push(format!(
                    "| {} | {family} | {seed} | {accuracy} / {f1} | {} / {} |",
                    corpus.name, theirs[0], theirs[1]
                ));
            }
        }
        println!(
            "| data | model | seed | ours, accuracy / macro F1 | PyTorch, accuracy / macro F1 |\n|---|---|---|---|---|"
        );
        println!("{}", rows.join("\n"));
        Ok(())
    }

    fn language(&self, seeds: u32) -> Result<()> {
        let mut rows = Vec::new();
        for (corpus, seed) in PLAIN.iter().flat_map(|corpus| (1..=seeds).map(move |seed| (corpus, seed))) {
            let name = format!("{}-{seed}", corpus.name);
            let [train, valid] =
                ["train", "valid"].map(|role| self.folder.join(format!("{}.{role}.txt", corpus.name)));
            let mut command = self.training(&name, corpus, &[("--text", &train), ("--valid-text", &valid)]);
            command.args(["--task", "lm"]).args(LANGUAGE.split(' '));
            let run = self.trained(&name, seed, &mut command)?;
            let held_out = self.encoded(corpus, "lm", ("--text", &valid), &run)?;
            let [perplexity] = last_values(&run, ["valid_perplexity"])?;
            let theirs = self.theirs("study_language.py", &run, &held_out, seed)?;
            rows.push(format!("| {} | {seed} | {perplexity:.2} | {} |", corpus.name, theirs["perplexity"]));
        }
        println!("| data | seed | ours, perplexity | PyTorch, perplexity |\n|---|---|---|---|");
        println!("{}", rows.join("\n"));
        Ok(())
    }

    /// The command that trains heedful's model; the caller adds task and model.
    fn training(&self, name: &str, corpus: &Corpus, files: &[(&str, &PathBuf)]) -> Command {
        let mut command = Command::new(&self.heedful);
        command.arg("train").arg("--out").arg(self.folder.join(name)).args(corpus.vocabulary);
        command.args(["--steps", corpus.steps, "--validation-every", corpus.steps]);
        command.args([
            "--batch-tokens",
            corpus.batch_tokens,
            "--schedule",
            "cosine",
            "--checkpoint-average",
            "none",
        ]);
        for (flag, file) in files {
            command.arg(flag).arg(file);
        }
        command
    }

    /// The run's folder, once it has its final model.
    fn trained(&self, name: &str, seed: u32, command: &mut Command) -> Result<PathBuf> {
        let run = self.folder.join(name);
        if !run.join("done").exists() {
            discard(&run)?;
            step::command(command.arg("--seed").arg(seed.to_string()))?;
            fs::write(run.join("done"), "").with_context(|| format!("cannot write to {}", run.display()))?;
        }
        Ok(run)
    }

    /// The held-out texts as token ids, in the vocabulary of `run`: a run of one step leaves them behind.
    fn encoded(
        &self,
        corpus: &Corpus,
        task: &str,
        (flag, file): (&str, &Path),
        run: &Path,
    ) -> Result<PathBuf> {
        let folder = self.folder.join(format!("{}-held-out", corpus.name));
        if !folder.join("corpus.bin").exists() {
            discard(&folder)?;
            let mut command = Command::new(&self.heedful);
            command.args(["train", "--task", task, "--preset", "tiny", "--steps", "1"]);
            if task == "classify" {
                command.args(["--max-tokens", "none"]);
            }
            command.arg(flag).arg(file).arg("--vocabulary-file").arg(run.join("tokenizer.json"));
            step::command(command.arg("--out").arg(&folder))?;
        }
        Ok(folder)
    }

    /// The peer's results.
    fn theirs(&self, script: &str, run: &Path, held_out: &Path, seed: u32) -> Result<Value> {
        let file = run.join("pytorch.json");
        if !file.exists() {
            let mut command = peer(&self.python, script);
            command.args([run.as_os_str(), held_out.as_os_str(), OsStr::new("--seed")]).arg(seed.to_string());
            let output = step::timed(script, || command.output().context("could not start the peer"))?;
            if !output.status.success() {
                bail!("{script} failed: {}", String::from_utf8_lossy(&output.stderr));
            }
            fs::write(&file, &output.stdout).with_context(|| format!("cannot write {}", file.display()))?;
        }
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        serde_json::from_str(&text).with_context(|| format!("{} is no JSON", file.display()))
    }
}

fn peer(python: &Path, script: &str) -> Command {
    let mut command = Command::new(python);
    command.arg("-B").arg(root().join("bench/peers").join(script));
    command
}

/// Removes the files of an interrupted run.
fn discard(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    Ok(())
}

/// The newest values of these names in a run's `metrics.jsonl`.
fn last_values<const N: usize>(run: &Path, names: [&str; N]) -> Result<[f64; N]> {
    let file = run.join("metrics.jsonl");
    let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let mut values = [f64::NAN; N];
    for line in text.lines() {
        let record: Value =
            serde_json::from_str(line).with_context(|| format!("{}: no JSON", file.display()))?;
        for (value, name) in values.iter_mut().zip(names) {
            *value = record[name].as_f64().unwrap_or(*value);
        }
    }
    match names.iter().zip(values).find(|(_, value)| value.is_nan()) {
        Some((name, _)) => bail!("{} has no {name}", file.display()),
        None => Ok(values),
    }
}
