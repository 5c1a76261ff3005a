//! `heedful explain prune`: what each head is worth, as the BLEU that the model loses without it.

mod journal;

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use heedful::decode::SearchOptions;
use heedful::explain::heads::{Corpus, Pruning};
use heedful::metrics::{BleuOptions, Tokenize};
use heedful::models::transformer::HeadName;
use heedful::plot::{Fact, Report, Status, Table};
use heedful::store::durable;
use heedful::tensor::DType;
use heedful::tensor::cpu::threads;
use serde_json::json;

use self::journal::Journal;
use super::input::aligned_lines;
use super::output::Format;
use crate::commands::compare::bar::Bar;
use crate::commands::train::Voice;
use crate::commands::translate::compute;
use crate::interrupt::Interrupt;

/// Leave out each head in turn and say what BLEU it costs, dearest first
///
/// The corpus is translated once for the whole model and once for each head. With --journal, what was measured is kept: a
/// run that was stopped goes on where it was.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The folder of a Transformer or of its training run
    model: PathBuf,
    /// Source text, one sentence a line
    #[arg(long, value_name = "FILE")]
    src: PathBuf,
    /// Reference translations, line by line
    #[arg(long = "ref", value_name = "FILE")]
    reference: PathBuf,
    /// all, or names separated by commas, counted from 0: enc.0.3,cross.1.0
    #[arg(long, value_name = "LIST", default_value = "all", value_parser = wanted)]
    heads: Wanted,
    /// Only the first N sentences
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// How BLEU divides text into tokens [default: zh for Chinese and Japanese, else 13a]
    #[arg(long, value_name = "NAME", value_parser = tokenize_parser())]
    tokenize: Option<Tokenize>,
    /// Hypotheses that are followed at a time; 1 is greedy, and fast
    #[arg(long, default_value_t = 1, value_name = "N")]
    beam: usize,
    /// Keep what was measured in this file, and go on from it
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// Also write a page (.html), or the numbers (.csv, .json)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Say nothing but errors
    #[arg(long)]
    quiet: bool,
    /// Type of the matrix products: bf16 or f32
    #[arg(long, default_value = "bf16", value_name = "TYPE", value_parser = compute)]
    compute: DType,
    /// How many threads compute [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
}

#[derive(Clone, Debug)]
enum Wanted {
    All,
    These(Vec<HeadName>),
}

/// Scores of the whole model and without each head, dearest first.
struct Found {
    whole: f64,
    without: Vec<(HeadName, f64)>,
}

fn wanted(text: &str) -> Result<Wanted, String> {
    if text == "all" {
        return Ok(Wanted::All);
    }
    let heads: Result<Vec<HeadName>, _> = text.split(',').map(str::parse).collect();
    heads.map(Wanted::These).map_err(|error| error.to_string())
}

fn tokenize_parser() -> impl TypedValueParser<Value = Tokenize> {
    let names = PossibleValuesParser::new(Tokenize::ALL.map(Tokenize::name));
    names.map(|name| Tokenize::named(&name).expect("clap has compared it with the names"))
}

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let formats = [Format::Html, Format::Csv, Format::Json];
    let format = arguments.output.as_deref().map(|path| Format::of(path, &formats)).transpose()?;
    if let Some(count) = arguments.threads {
        threads::set_thread_count(count.into());
    }
    let options =
        SearchOptions { beam: arguments.beam, compute: arguments.compute, ..SearchOptions::default() };
    options.check()?;
    let pruning = Pruning::open(&arguments.model, arguments.corpus()?, &options)?;
    let heads = match &arguments.heads {
        Wanted::All => pruning.heads(),
        Wanted::These(heads) => heads.clone(),
    };
    pruning.check(&heads)?;
    let found = arguments.measure(&pruning, &heads)?;
    if let (Some(path), Some(format)) = (&arguments.output, format) {
        let contents = match format {
            Format::Csv => found.to_csv(),
            Format::Json => found.to_json(),
            _ => arguments.page(&found).to_html(),
        };
        durable::write_bytes(path, contents.as_bytes())?;
    }
    Ok(io::stdout().lock().write_all(found.table().to_markdown().as_bytes())?)
}

impl Arguments {
    fn corpus(&self) -> Result<Corpus> {
        let (mut sources, mut references) = aligned_lines(&self.src, &self.reference)?;
        let count = self.limit.map_or(sources.len(), |limit| sources.len().min(limit as usize));
        sources.truncate(count);
        references.truncate(count);
        let tokenize =
            self.tokenize.unwrap_or_else(|| Tokenize::suited_to(references.iter().map(String::as_str)));
        Ok(Corpus { sources, references, bleu: BleuOptions { tokenize, ..BleuOptions::default() } })
    }

    fn measure(&self, pruning: &Pruning, heads: &[HeadName]) -> Result<Found> {
        let interrupt = Interrupt::listen()?;
        let mut journal = Journal::open(self.journal.as_deref(), &pruning.fingerprint())?;
        let bar = Bar::new(if self.quiet { Voice::Silent } else { Voice::Talking }, heads.len() + 1);
        let mut score = |done: usize, name: &str, heads: &[HeadName]| -> Result<f64> {
            bar.show(done, 0.0, || format!("without {name}"));
            if let Some(known) = journal.score(name) {
                return Ok(known);
            }
            if interrupt.is_asked() {
                bar.finish();
                match &self.journal {
                    Some(path) => bail!("interrupted: the same command goes on from {}", path.display()),
                    None => bail!("interrupted: with --journal FILE the next run would go on from here"),
                }
            }
            let score = pruning.bleu_without(heads)?;
            journal.add(name, score)?;
            Ok(score)
        };
        let whole = score(0, "nothing", &[])?;
        let mut without = Vec::new();
        for (number, &head) in heads.iter().enumerate() {
            without.push((head, score(number + 1, &head.to_string(), &[head])?));
        }
        bar.finish();
        // The lower the score, the dearer the head; the order of layers among equals.
        without.sort_by(|a, b| a.1.total_cmp(&b.1));
        Ok(Found { whole, without })
    }

    fn page(&self, found: &Found) -> Report {
        Report {
            title: "What each head is worth".to_owned(),
            subtitle: self.model.display().to_string(),
            status: Status::Absent,
            results: vec![Fact::new("BLEU with all heads", format!("{:.2}", found.whole))],
            tables: vec![found.table()],
            ..Report::default()
        }
    }
}

impl Found {
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
