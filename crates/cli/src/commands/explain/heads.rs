//! `heedful explain heads`: what every head does, over a corpus.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use heedful::decode::SearchOptions;
use heedful::explain::heads::{HeadReport, HeadSurvey, Links};
use heedful::plot::{Fact, Report, Status};
use heedful::store::durable;
use heedful::tasks::translate::Translator;
use heedful::tensor::DType;
use heedful::tensor::cpu::threads;

use super::input::{aligned_lines, lines};
use super::output::Format;
use crate::commands::compare::bar::Bar;
use crate::commands::train::Voice;
use crate::commands::translate::compute;

/// Say what every head does over a corpus, and how well it agrees with given alignments
///
/// For each head: entropy in bits, confidence (its largest weight), distance in tokens, and how much of its attention
/// goes to the previous, the same and the next token and to separators (punctuation, <bos>, <eos>). With --alignments, for
/// each head and layer that looks at the source: precision, recall and alignment error rate.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The folder of a model or of a training run
    model: PathBuf,
    /// Source text, one sentence a line
    #[arg(long, value_name = "FILE")]
    src: PathBuf,
    /// Target text, line by line the translation of the source
    #[arg(long, value_name = "FILE")]
    tgt: PathBuf,
    /// Alignments, line by line: 0-0 for a sure link of source and target word, 0?0 or 0p0 for a possible one, words
    /// counted from 0 as white space separates them
    #[arg(long, value_name = "FILE")]
    alignments: Option<PathBuf>,
    /// Only the first N sentences
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Print CSV instead of a table
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
    /// Also write a page with pictures (.html), or the numbers (.csv, .json)
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

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let formats = [Format::Html, Format::Csv, Format::Json];
    let format = arguments.output.as_deref().map(|path| Format::of(path, &formats)).transpose()?;
    if let Some(count) = arguments.threads {
        threads::set_thread_count(count.into());
    }
    let (sources, targets) = aligned_lines(&arguments.src, &arguments.tgt)?;
    let links = arguments.links(sources.len())?;
    let translator = Translator::open(&arguments.model)?;
    let report = arguments.survey(&translator, &sources, &targets, links.as_deref())?;
    if let (Some(path), Some(format)) = (&arguments.output, format) {
        let contents = match format {
            Format::Csv => report.to_csv(),
            Format::Json => serde_json::to_string(&report)?,
            _ => arguments.page(&report).to_html(),
        };
        durable::write_bytes(path, contents.as_bytes())?;
    }
    let mut out = io::stdout().lock();
    if arguments.csv {
        out.write_all(report.to_csv().as_bytes())?;
    } else if arguments.json {
        writeln!(out, "{}", serde_json::to_string(&report)?)?;
    } else {
        out.write_all(report.table().to_markdown().as_bytes())?;
    }
    Ok(out.flush()?)
}

impl Arguments {
    fn links(&self, sentences: usize) -> Result<Option<Vec<Links>>> {
        let Some(path) = &self.alignments else { return Ok(None) };
        let lines = lines(path)?;
        if lines.len() != sentences {
            bail!(
                "{} has {} lines for {sentences} sentences: line n must belong to line n of the texts",
                path.display(),
                lines.len()
            );
        }
        let links = lines.iter().enumerate().map(|(number, line)| {
            line.parse::<Links>().with_context(|| format!("{}, line {}", path.display(), number + 1))
        });
        links.collect::<Result<_>>().map(Some)
    }

    fn survey(
        &self,
        translator: &Translator,
        sources: &[String],
        targets: &[String],
        links: Option<&[Links]>,
    ) -> Result<HeadReport> {
        let options = SearchOptions { compute: self.compute, ..SearchOptions::default() };
        let mut survey = HeadSurvey::new(translator, &options);
        let count = self.limit.map_or(sources.len(), |limit| sources.len().min(limit as usize));
        let bar = Bar::new(if self.quiet { Voice::Silent } else { Voice::Talking }, count);
        let mut blank = 0;
        for (number, (source, target)) in sources.iter().zip(targets).take(count).enumerate() {
            bar.show(number, 0.0, || format!("sentence {} of {count}", number + 1));
            if source.trim().is_empty() || target.trim().is_empty() {
                blank += 1;
                continue;
            }
            let links = links.map(|links| &links[number]);
            survey.add(source, target, links).with_context(|| format!("sentence {}", number + 1))?;
        }
        bar.finish();
        if blank == count {
            bail!("all {count} sentences are blank: there is nothing to look at");
        }
        if blank > 0 {
            bar.say(&format!("{blank} of {count} sentences are blank on one side and were left out"));
        }
        let report = survey.report();
        if report.heads.is_empty() {
            bail!("{} has no attention: there are no heads to look at", self.model.display());
        }
        Ok(report)
    }

    fn page(&self, report: &HeadReport) -> Report {
        let best =
            report.heads.iter().filter_map(|row| row.agreement.map(|agreement| (row.name, agreement.aer)));
        let best = best.min_by(|a, b| a.1.total_cmp(&b.1));
        let mut results =
            vec![Fact::new("sentences", report.sentences), Fact::new("heads", report.heads.len())];
        results.extend(best.map(|(name, aer)| Fact::new("lowest AER", format!("{aer:.3}")).noted(name)));
        Report {
            title: "What the heads do".to_owned(),
            subtitle: self.model.display().to_string(),
            status: Status::Absent,
            results,
            pictures: report.pictures(),
            tables: vec![report.table()],
            ..Report::default()
        }
    }
}
