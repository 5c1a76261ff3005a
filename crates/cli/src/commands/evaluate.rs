//! `heedful evaluate`: how good are translations? sacreBLEU's numbers without Python.

mod lines;
mod report;
mod settings;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use heedful::metrics::{Evaluation, References, Resampling, Score};

use self::lines::read_lines;
use self::report::{Entry, write_json, write_lines};
use self::settings::{MetricName, Settings};

/// Score translations against references: BLEU, chrF, chrF++ and TER, equal to sacreBLEU's.
///
/// Scores and signatures are those of sacreBLEU 2.6.0, digit for digit, so that they can be put beside published ones.
/// Resampling draws what sacreBLEU draws from the same seed, but computes in double precision: the last digit of an
/// interval may differ.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Translations, one a line; `-` is standard input
    #[arg(value_name = "HYP")]
    hypotheses: PathBuf,
    /// References, line by line; give it once for each reference translation
    #[arg(long = "ref", value_name = "REF", required = true)]
    references: Vec<PathBuf>,
    /// What to compute, separated by commas
    #[arg(long = "metric", value_name = "NAME", value_enum, value_delimiter = ',', default_value = "bleu")]
    metrics: Vec<MetricName>,
    #[command(flatten)]
    settings: Settings,
    /// One line of scores for each sentence, metrics between tabs
    #[arg(long, conflicts_with_all = ["confidence", "compare"])]
    sentence_level: bool,
    /// Also print the 95 % interval of each score, by bootstrap resampling
    #[arg(long)]
    confidence: bool,
    /// Another system's translations: is the difference more than chance? (paired bootstrap and approximate
    /// randomisation)
    #[arg(long, value_name = "OTHER_HYP")]
    compare: Option<PathBuf>,
    /// How many corpora --confidence and --compare draw
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    resamples: u32,
    /// How many trials of approximate randomisation --compare makes
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    trials: u32,
    /// Decides what is drawn
    #[arg(long, value_name = "N", default_value_t = heedful::metrics::SACREBLEU_SEED)]
    seed: u64,
    /// Digits after the point
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(..=15))]
    width: u8,
    /// Print JSON: {"bleu":{"score":38.02,"signature":"…"},…}, with --sentence-level one such object a line
    #[arg(long)]
    json: bool,
    /// No warnings
    #[arg(long, short)]
    quiet: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    arguments.settings.check()?;
    let corpus = Corpus::read(arguments)?;
    if !arguments.quiet {
        corpus.warn_of_tokenized_text(arguments);
    }
    let mut metrics = arguments.metrics.clone();
    metrics.sort();
    metrics.dedup();
    if arguments.sentence_level {
        return write_sentences(arguments, &metrics, &corpus);
    }
    let entries: Vec<Entry> = metrics.iter().map(|&name| corpus_entry(arguments, name, &corpus)).collect();
    let mut out = io::stdout().lock();
    if arguments.json {
        write_json(&entries, &mut out)?;
    } else {
        write_lines(&entries, &mut out)?;
    }
    Ok(out.flush()?)
}

/// What was read: as many lines everywhere, and at least one.
struct Corpus {
    hypotheses: Vec<String>,
    other: Option<Vec<String>>,
    references: Vec<Vec<String>>,
}

impl Corpus {
    fn read(arguments: &Arguments) -> Result<Corpus> {
        let others = arguments.compare.iter().chain(&arguments.references);
        let names = || std::iter::once(&arguments.hypotheses).chain(others.clone());
        if names().filter(|path| path.as_os_str() == "-").count() > 1 {
            bail!("standard input (`-`) can be read only once: write one of the texts to a file");
        }
        let hypotheses = read_lines(&arguments.hypotheses)?;
        let read = |path: &PathBuf| {
            let lines = read_lines(path)?;
            check_alignment((&arguments.hypotheses, hypotheses.len()), (path, lines.len()))?;
            Ok(lines)
        };
        let other = arguments.compare.as_ref().map(read).transpose()?;
        let references = arguments.references.iter().map(read).collect::<Result<_>>()?;
        Ok(Corpus { hypotheses, other, references })
    }

    /// sacreBLEU's warning, and its threshold.
    fn warn_of_tokenized_text(&self, arguments: &Arguments) {
        let tokenized = self.hypotheses.iter().filter(|line| line.ends_with(" .")).count();
        let measured = arguments.metrics.contains(&MetricName::Bleu) && arguments.settings.tokenizes();
        if measured && tokenized >= 100 {
            eprintln!(
                "heedful: {tokenized} lines of {} end in ` .`, as if the text had been tokenized. BLEU wants plain text; \
                 scores of tokenized text cannot be compared",
                lines::name(&arguments.hypotheses)
            );
        }
    }
}

fn check_alignment(first: (&Path, usize), second: (&Path, usize)) -> Result<()> {
    if first.1 == second.1 {
        return Ok(());
    }
    let (shorter, longer) = if first.1 < second.1 { (first, second) } else { (second, first) };
    bail!(
        "{} has {} and {} has {}: line {} has no partner. Line n of each file must belong to line n of the others; look \
         for a missing or an extra line break",
        lines::name(shorter.0),
        lines::counted(shorter.1),
        lines::name(longer.0),
        lines::counted(longer.1),
        shorter.1 + 1
    )
}

fn corpus_entry(arguments: &Arguments, name: MetricName, corpus: &Corpus) -> Entry {
    let metric = arguments.settings.metric(name);
    let references = References::new(&corpus.references);
    let evaluation = Evaluation::new(metric.as_ref(), &corpus.hypotheses, &references);
    let (resamples, trials) = (arguments.resamples as usize, arguments.trials as usize);
    let mut score = if arguments.confidence {
        evaluation.score_with_confidence(resamples, arguments.seed)
    } else {
        evaluation.score()
    };
    let comparison = corpus.other.as_ref().map(|other| {
        let resampling =
            Resampling { bootstrap: Some(resamples), randomisation: Some(trials), seed: arguments.seed };
        score.signature.resampling = Some(resampling);
        evaluation.compare(&Evaluation::new(metric.as_ref(), other, &references), resampling)
    });
    let other = arguments.compare.as_deref().map(lines::name);
    Entry { name, score, comparison: comparison.zip(other), digits: arguments.width.into() }
}

fn write_sentences(arguments: &Arguments, metrics: &[MetricName], corpus: &Corpus) -> Result<()> {
    let references = References::new(&corpus.references);
    let columns: Vec<Vec<Score>> = metrics
        .iter()
        .map(|&name| {
            let metric = arguments.settings.sentence_metric(name);
            Evaluation::new(metric.as_ref(), &corpus.hypotheses, &references).sentences().collect()
        })
        .collect();
    let digits = usize::from(arguments.width);
    let mut out = io::BufWriter::new(io::stdout().lock());
    for sentence in 0..corpus.hypotheses.len() {
        let scores = metrics.iter().zip(&columns).map(|(&name, column)| (name, &column[sentence]));
        if arguments.json {
            let entries: Vec<Entry> = scores
                .map(|(name, score)| Entry { name, score: score.clone(), comparison: None, digits })
                .collect();
            write_json(&entries, &mut out)?;
        } else {
            let scores: Vec<String> = scores.map(|(_, score)| format!("{:.digits$}", score.score)).collect();
            writeln!(out, "{}", scores.join("\t"))?;
        }
    }
    Ok(out.flush()?)
}
