//! `heedful explain heads`: statistics of every attention head over a corpus, or its functions on one text.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use heedful::decode::SearchOptions;
use heedful::explain::heads::{HeadFunctions, HeadReport, HeadSurvey, ReferenceAlignment};
use heedful::plot::{Fact, Report, Status};
use heedful::store::output::OutputFile;
use heedful::tasks::translate::Translator;

use super::input::{aligned_lines, check_lengths, lines};
use super::model::{Model, task_of};
use super::output::Format;
use crate::long_text::MaxTokens;
use crate::machine::Machine;
use crate::output::Force;
use crate::progress::{Bar, Quiet};

/// Measure every attention head over a corpus, or its function on one text
///
/// For each head: entropy in bits, confidence (its largest weight), distance in tokens, and the share of
/// its attention on the previous, the same and the next token and on separators (punctuation, <bos>,
/// <eos>). With --alignments, also precision, recall and alignment error rate (AER) of every head and layer
/// with cross attention.
///
/// With --sentence instead of --src and --tgt, for a model of the Transformer family of any task: the mean
/// weight of each head on the previous token and, in cross attention, on the source tokens that the model
/// aligns; and on random tokens, written twice, the weight of the same token in the first copy (duplicate)
/// and of the token after it (induction).
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct Arguments {
    /// Folder of a translator (with --sentence, of a model of any task) or of its training run, or its package
    /// (`heedful pack`)
    model: PathBuf,
    /// Source text, one sentence per line
    #[arg(long, value_name = "FILE", required_unless_present = "sentence", requires = "tgt")]
    src: Option<PathBuf>,
    /// Target text: line n translates line n of the source
    #[arg(long, value_name = "FILE", requires = "src")]
    tgt: Option<PathBuf>,
    /// Reference alignments, one line per pair: 0-0 links source word 0 and target word 0 (sure), 0?0 or 0p0
    /// is a possible link; words are separated by white space and count from 0
    #[arg(long, value_name = "FILE", requires = "src")]
    alignments: Option<PathBuf>,
    /// Use the first N sentences only
    #[arg(long, value_name = "N", requires = "src", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Measure the functions of heads on this text, and on random tokens
    #[arg(long, value_name = "TEXT", conflicts_with = "src")]
    sentence: Option<String>,
    /// Number of random tokens, which are written twice [default: 25]
    #[arg(long, value_name = "N", conflicts_with = "src")]
    random_tokens: Option<usize>,
    /// Seed of the random tokens [default: 1]
    #[arg(long, value_name = "SEED", conflicts_with = "src")]
    seed: Option<u64>,
    /// Print CSV instead of a table
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    csv: bool,
    /// Print JSON instead of a table
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// Also write a report with pictures (.html) or the numbers (.csv, .json) to this file
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

const EXAMPLES: &str = "\
Examples:
  heedful explain heads run --src valid.en --tgt valid.de -o heads.html
  heedful explain heads run --src valid.en --tgt valid.de --alignments valid.align --limit 500 --csv
  heedful explain heads writer --sentence 'Once upon a time'";

/// Random tokens if their number is not given.
const RANDOM_TOKENS: usize = 25;

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let formats = [Format::Html, Format::Csv, Format::Json];
    let format = arguments.output.as_deref().map(|path| Format::of(path, &formats)).transpose()?;
    arguments.machine.set_up_cpu("measuring heads", arguments.quiet.verbosity())?;
    let files = [&arguments.model].into_iter().chain(&arguments.src).chain(&arguments.tgt);
    let files = files.chain(&arguments.alignments);
    let inputs: Vec<&Path> = files.map(PathBuf::as_path).collect();
    let output = arguments.force.open_if_named(arguments.output.as_deref(), &inputs)?;
    let (Some(src), Some(tgt)) = (&arguments.src, &arguments.tgt) else {
        return arguments.functions(output, format);
    };
    let (sources, targets) = aligned_lines(src, tgt)?;
    let links = arguments.links(sources.len())?;
    let mut translator = Translator::open(&arguments.model)?;
    arguments.max_tokens.tokens.map_or(Ok(()), |tokens| translator.set_max_tokens(tokens))?;
    let used = arguments.count(sources.len());
    check_lengths(&translator, &sources[..used], &targets[..used], "line")?;
    let report = arguments.survey(&translator, &sources, &targets, links.as_deref())?;
    if let (Some(file), Some(format)) = (output, format) {
        let contents = match format {
            Format::Csv => report.to_csv(),
            Format::Json => serde_json::to_string(&report)?,
            _ => arguments.html_report(&report).to_html(),
        };
        file.finish_with(contents.as_bytes())?;
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
    /// Measures the functions of heads on one text.
    fn functions(&self, output: Option<OutputFile>, format: Option<Format>) -> Result<()> {
        let sentence = self.sentence.as_deref().unwrap_or_default();
        if sentence.trim().is_empty() {
            bail!("--sentence is blank: give it a text");
        }
        let model = Model::open(&self.model, task_of(&self.model)?, self.max_tokens.tokens, &[])?;
        let text = model.inspected(sentence, None, self.machine.precision())?;
        let random_tokens = self.random_tokens.unwrap_or(RANDOM_TOKENS);
        let functions = HeadFunctions::new(&text, random_tokens, self.seed.unwrap_or(1))?;
        if let (Some(file), Some(format)) = (output, format) {
            let contents = match format {
                Format::Csv => functions.to_csv(),
                Format::Json => serde_json::to_string(&functions)?,
                _ => functions.report(&format!("{}: {sentence}", self.model.display())).to_html(),
            };
            file.finish_with(contents.as_bytes())?;
        }
        let mut out = io::stdout().lock();
        if self.csv {
            out.write_all(functions.to_csv().as_bytes())?;
        } else if self.json {
            writeln!(out, "{}", serde_json::to_string(&functions)?)?;
        } else {
            out.write_all(functions.table().to_markdown().as_bytes())?;
        }
        Ok(out.flush()?)
    }

    fn links(&self, sentences: usize) -> Result<Option<Vec<ReferenceAlignment>>> {
        let Some(path) = &self.alignments else { return Ok(None) };
        let lines = lines(path)?;
        if lines.len() != sentences && lines.len() != self.count(sentences) {
            bail!(
                "{} has {} lines for {sentences} sentences: line n must align line n of the texts",
                path.display(),
                lines.len()
            );
        }
        let links = lines.iter().enumerate().map(|(number, line)| {
            line.parse::<ReferenceAlignment>()
                .with_context(|| format!("{}, line {}", path.display(), number + 1))
        });
        links.collect::<Result<_>>().map(Some)
    }

    /// Number of sentences used.
    fn count(&self, sentences: usize) -> usize {
        self.limit.map_or(sentences, |limit| sentences.min(limit as usize))
    }

    fn survey(
        &self,
        translator: &Translator,
        sources: &[String],
        targets: &[String],
        links: Option<&[ReferenceAlignment]>,
    ) -> Result<HeadReport> {
        let options = SearchOptions { compute: self.machine.precision(), ..SearchOptions::default() };
        let mut survey = HeadSurvey::new(translator, &options);
        let count = self.count(sources.len());
        let bar = Bar::with_time_left(self.quiet.verbosity(), count);
        let mut blank = 0;
        for (number, (source, target)) in sources.iter().zip(targets).take(count).enumerate() {
            bar.show(number, 0.0, || format!("sentence {} of {count}", number + 1));
            if source.trim().is_empty() || target.trim().is_empty() {
                blank += 1;
                continue;
            }
            let links = links.map(|links| &links[number]);
            survey
                .add(number as u64 + 1, source, target, links)
                .with_context(|| format!("sentence {}", number + 1))?;
        }
        bar.finish();
        if blank == count {
            bail!("all {count} sentences are blank on one side: there is nothing to measure");
        }
        if blank > 0 {
            bar.println(&format!("{blank} of {count} sentences are blank on one side and were skipped"));
        }
        let report = survey.report();
        if report.heads.is_empty() {
            bail!("{} has no attention heads: it is a model without attention", self.model.display());
        }
        Ok(report)
    }

    fn html_report(&self, report: &HeadReport) -> Report {
        let best =
            report.heads.iter().filter_map(|row| row.agreement.map(|agreement| (row.name, agreement.aer)));
        let best = best.min_by(|a, b| a.1.total_cmp(&b.1));
        let mut results =
            vec![Fact::new("sentences", report.sentences), Fact::new("heads", report.heads.len())];
        results.extend(best.map(|(name, aer)| Fact::new("lowest AER", format!("{aer:.3}")).with_note(name)));
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
