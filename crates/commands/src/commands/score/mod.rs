//! `heedful score`: prints the log-probability of given translations, texts or labels.

mod labels;
mod texts;
mod translations;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use heedful::data::Tokenizer;
use heedful::decode::TargetScore;
use heedful::models::HeadName;
use heedful::tasks::Task;
use heedful::tasks::folder::ModelFolder;
use serde_json::json;

use crate::attention_file::AttentionArguments;
use crate::long_text::{LongWhole, MaxTokens};
use crate::machine::Machine;
use crate::output::Force;
use crate::progress::Quiet;
use crate::results::Results;

/// Score given translations, texts or labels: one log-probability per line
///
/// A translator scores log p(target | source), a language model log p(text), a classifier log p(label |
/// text): natural logarithms, summed over the tokens and <eos>. Scoring a translation of `heedful translate
/// --json` gives the log-probability reported there, bit for bit. The translation of a blank line is blank:
/// it has the log-probability 0, and any other target of a blank line has -inf (null in JSON). A blank text
/// has 0 and does not count. For a language model, the perplexity per token, word and byte is printed on
/// standard error at the end.
///
/// A language model trained on single lines (with --block none) scores each line of --text separately. One
/// trained on continuous text, such as GPT-2, processes the file as one text: a line is predicted from the
/// preceding lines in the same block, whose size is in the model's config.json. To score lines separately
/// with such a model, put each into its own file.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Folder of a translator, a language model or a classifier, or of its training run, or its package
    model: PathBuf,
    /// Source text of a translator, one sentence per line
    #[arg(long, value_name = "FILE", requires = "tgt")]
    src: Option<PathBuf>,
    /// Target text: line n translates line n of the source
    #[arg(long, value_name = "FILE", requires = "src")]
    tgt: Option<PathBuf>,
    /// Text for a language model; - is standard input
    #[arg(long, value_name = "FILE")]
    text: Option<PathBuf>,
    /// Labelled texts for a classifier, one per line: label, tab, text
    #[arg(long, value_name = "FILE")]
    label_text: Option<PathBuf>,
    /// Prune an attention head of a translator, for example decoder.0.cross.3 (layers and heads
    /// count from 0); repeatable
    #[arg(long, value_name = "HEAD")]
    without_head: Vec<HeadName>,
    /// What to do with a line of more tokens than --max-tokens, source or target
    #[arg(long, value_enum, value_name = "WHAT", default_value = "error", help_heading = "Long text")]
    long: LongWhole,
    #[command(flatten)]
    max_tokens: MaxTokens,
    /// Write the scores to this file, once all of them are computed [default: standard output]
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
    /// Print one JSON object per line: the log-probabilities of the line and of every token, with the token
    /// pieces, or of every label
    #[arg(long, help_heading = "Output")]
    json: bool,
    #[command(flatten)]
    attention: AttentionArguments,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    quiet: Quiet,
    #[command(flatten)]
    machine: Machine,
}

const EXAMPLES: &str = "\
Examples:
  heedful score run --src valid.en --tgt valid.de
  heedful score run --src valid.en --tgt valid.de --json | jq -c '[.pieces, .tokens] | transpose'
  heedful score writer --text rest.txt
  heedful score news --label-text valid.tsv --json";

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    arguments.machine.set_up(arguments.quiet.verbosity())?;
    let task = ModelFolder::open(&arguments.model)?.config.task();
    arguments.check(task)?;
    let results = Results::open(arguments.output.as_deref(), &arguments.force, &arguments.inputs())?;
    match task {
        Task::Translate => translations::run(arguments, results),
        Task::Language => texts::run(arguments, results),
        Task::Classify => labels::run(arguments, results),
        Task::Masked => bail!(
            "{} contains a masked language model, which predicts masked tokens but does not compute text probabilities: use heedful fill",
            arguments.model.display()
        ),
    }
}

impl Arguments {
    /// The input files.
    fn files(&self) -> Vec<&Path> {
        [&self.src, &self.tgt, &self.text, &self.label_text]
            .into_iter()
            .flatten()
            .map(PathBuf::as_path)
            .collect()
    }

    /// The input files and the model.
    fn inputs(&self) -> Vec<&Path> {
        std::iter::once(self.model.as_path()).chain(self.files()).collect()
    }

    /// Checks that the input files fit the model's task.
    fn check(&self, task: Task) -> Result<()> {
        let given = [("--src", &self.src), ("--text", &self.text), ("--label-text", &self.label_text)];
        let wanted = match task {
            Task::Translate => "--src",
            Task::Language => "--text",
            Task::Classify => "--label-text",
            Task::Masked => return Ok(()),
        };
        let needs = if task == Task::Translate {
            "--src FILE --tgt FILE".to_owned()
        } else {
            format!("{wanted} FILE")
        };
        let (name, model) = (self.model.display(), task.model());
        if let Some((flag, _)) = given.iter().find(|(flag, file)| *flag != wanted && file.is_some()) {
            bail!("{name} contains {model}, which does not take {flag}: give {needs}");
        }
        if given.iter().all(|(_, file)| file.is_none()) {
            bail!("{name} contains {model}: give {needs}");
        }
        if task != Task::Translate && !self.without_head.is_empty() {
            bail!("--without-head is for translators: leave it out");
        }
        Ok(())
    }

    /// The output line of a text with these tokens.
    fn line(&self, score: &TargetScore, tokenizer: &Tokenizer, tokens: &[u32]) -> String {
        if self.json {
            let pieces: Vec<String> = tokens.iter().map(|&id| tokenizer.piece(id)).collect();
            // JSON has no infinity: the logarithm of 0 becomes null.
            json!({ "log_probability": score.log_probability, "tokens": score.tokens, "pieces": pieces })
                .to_string()
        } else {
            format!("{:.6}", score.log_probability)
        }
    }
}
