//! `heedful explain prune`: measures the BLEU that the model loses without each attention head.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;
use heedful::decode::SearchOptions;
use heedful::metrics::{BleuOptions, BleuTokenizer, corpus_bleu};
use heedful::models::{HeadError, HeadName};
use heedful::plot::{Fact, Report, Status, Table};
use heedful::tasks::translate::Translator;
use serde_json::json;

use super::input::{aligned_lines, check_lengths};
use super::output::Format;
use crate::commands::evaluate::tokenize_parser;
use crate::long_text::MaxTokens;
use crate::machine::Machine;
use crate::output::Force;
use crate::progress::{Bar, Quiet};

/// Prune each attention head in turn and measure the BLEU that it costs, most important head first
///
/// The corpus is translated once with the whole model and once without each head.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct Arguments {
    /// Folder of a Transformer or of its training run
    model: PathBuf,
    /// Source text, one sentence per line
    #[arg(long, value_name = "FILE")]
    src: PathBuf,
    /// Reference translations: line n translates line n of the source
    #[arg(long = "ref", value_name = "FILE")]
    reference: PathBuf,
    /// Heads to prune, one at a time: all, or names separated by commas: encoder.0.self.3,decoder.1.cross.0
    /// (layers and heads count from 0)
    #[arg(long, value_name = "LIST", default_value = "all", value_parser = head_selection)]
    heads: HeadSelection,
    /// Use the first N sentences only
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Tokenizer of BLEU [default: zh for Chinese and Japanese references, else 13a]
    #[arg(long, value_name = "NAME", value_parser = tokenize_parser())]
    tokenize: Option<BleuTokenizer>,
    /// Beam size: hypotheses kept at every step; 1 is greedy, and fastest
    #[arg(long, default_value_t = 1, value_name = "N", help_heading = "Search")]
    beam: usize,
    /// Also write a report (.html) or the numbers (.csv, .json) to this file
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    max_tokens: MaxTokens,
    #[command(flatten)]
    quiet: Quiet,
    #[command(flatten)]
    machine: Machine,
}

#[derive(Clone, Debug)]
enum HeadSelection {
    All,
    Named(Vec<HeadName>),
}

/// The sources to translate, their references and the BLEU settings.
struct Corpus {
    sources: Vec<String>,
    references: Vec<String>,
    bleu: BleuOptions,
}

/// BLEU of the whole model and without each head, most important head first.
struct HeadCosts {
    whole: f64,
    without: Vec<(HeadName, f64)>,
}

fn head_selection(text: &str) -> Result<HeadSelection, String> {
    if text == "all" {
        return Ok(HeadSelection::All);
    }
    let heads: Result<Vec<HeadName>, _> = text.split(',').map(str::parse).collect();
    heads.map(HeadSelection::Named).map_err(|error| error.to_string())
}

const EXAMPLES: &str = "\
Examples:
  heedful explain prune run --src valid.en --ref valid.de -o prune.html
  heedful explain prune run --src valid.en --ref valid.de --heads decoder.0.cross.0,decoder.0.cross.1 --limit 200";

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let formats = [Format::Html, Format::Csv, Format::Json];
    let format = arguments.output.as_deref().map(|path| Format::of(path, &formats)).transpose()?;
    arguments.machine.set_up_cpu("searching", arguments.quiet.verbosity())?;
    let compute = arguments.machine.precision();
    let options = SearchOptions { beam: arguments.beam, compute, ..SearchOptions::default() };
    options.check()?;
    let inputs = [&arguments.model, &arguments.src, &arguments.reference].map(PathBuf::as_path);
    let output = arguments.force.open_if_named(arguments.output.as_deref(), &inputs)?;
    let corpus = arguments.corpus()?;
    let mut translator = Translator::open(&arguments.model)?;
    arguments.max_tokens.tokens.map_or(Ok(()), |tokens| translator.set_max_tokens(tokens))?;
    check_lengths(&translator, &corpus.sources, &[], "line")?;
    let heads = match &arguments.heads {
        HeadSelection::All => translator.model().heads(),
        HeadSelection::Named(heads) => heads.clone(),
    };
    if translator.model().heads().is_empty() {
        return Err(HeadError::NoHeads.into());
    }
    translator.model().check_heads(&heads)?;
    let costs = arguments.measure(&translator, &corpus, &heads, &options)?;
    if let (Some(file), Some(format)) = (output, format) {
        let contents = match format {
            Format::Csv => costs.to_csv(),
            Format::Json => costs.to_json(),
            _ => arguments.report(&costs).to_html(),
        };
        file.finish_with(contents.as_bytes())?;
    }
    Ok(io::stdout().lock().write_all(costs.table().to_markdown().as_bytes())?)
}

impl Arguments {
    fn corpus(&self) -> Result<Corpus> {
        let (mut sources, mut references) = aligned_lines(&self.src, &self.reference)?;
        let count = self.limit.map_or(sources.len(), |limit| sources.len().min(limit as usize));
        sources.truncate(count);
        references.truncate(count);
        let tokenize =
            self.tokenize.unwrap_or_else(|| BleuTokenizer::suited_to(references.iter().map(String::as_str)));
        Ok(Corpus { sources, references, bleu: BleuOptions { tokenize, ..BleuOptions::default() } })
    }

    fn measure(
        &self,
        translator: &Translator,
        corpus: &Corpus,
        heads: &[HeadName],
        options: &SearchOptions,
    ) -> Result<HeadCosts> {
        let bar = Bar::with_time_left(self.quiet.verbosity(), heads.len() + 1);
        let sources: Vec<&str> = corpus.sources.iter().map(String::as_str).collect();
        let score = |done: usize, name: &str, heads: &[HeadName]| -> Result<f64> {
            bar.show(done, 0.0, || format!("without {name}"));
            let options = SearchOptions { without_heads: heads.to_vec(), ..options.clone() };
            let found = translator.translate(&sources, &options)?;
            let outputs: Vec<String> =
                found.iter().map(|translation| translation.best().to_owned()).collect();
            Ok(corpus_bleu(&outputs, std::slice::from_ref(&corpus.references), &corpus.bleu).score)
        };
        let whole = score(0, "nothing", &[])?;
        let mut without = Vec::new();
        for (number, &head) in heads.iter().enumerate() {
            without.push((head, score(number + 1, &head.to_string(), &[head])?));
        }
        bar.finish();
        // The lower the BLEU without a head, the more important the head; ties in the order of layers.
        without.sort_by(|a, b| a.1.total_cmp(&b.1));
        Ok(HeadCosts { whole, without })
    }

    fn report(&self, costs: &HeadCosts) -> Report {
        Report {
            title: "Importance of each head".to_owned(),
            subtitle: self.model.display().to_string(),
            status: Status::Absent,
            results: vec![Fact::new("BLEU with all heads", format!("{:.2}", costs.whole))],
            tables: vec![costs.table()],
            ..Report::default()
        }
    }
}

impl HeadCosts {
    fn table(&self) -> Table {
        let row = |name: String, score: f64| {
            vec![name, format!("{score:.2}"), format!("{:.2}", self.whole - score)]
        };
        let rows = self.without.iter().map(|&(head, score)| row(head.to_string(), score));
        Table {
            title: format!("BLEU {:.2} with all heads", self.whole),
            columns: ["without", "BLEU", "cost"].map(str::to_owned).to_vec(),
            rows: rows.collect(),
        }
    }

    fn to_csv(&self) -> String {
        let rows =
            self.without.iter().map(|(head, score)| format!("{head},{score},{}\n", self.whole - score));
        format!("without,bleu,cost\nnothing,{},0\n{}", self.whole, rows.collect::<String>())
    }

    fn to_json(&self) -> String {
        let row = |(head, score): &(HeadName, f64)| json!({ "without": head.to_string(), "bleu": score, "cost": self.whole - score });
        let rows: Vec<_> = self.without.iter().map(row).collect();
        json!({ "bleu": self.whole, "heads": rows }).to_string()
    }
}
