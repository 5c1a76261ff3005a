//! `heedful evaluate`: scores translations (equal to sacreBLEU's scores), labels, and the perplexity of
//! texts.

mod settings;

mod lines;

mod report;

mod labels;
mod perplexity;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use heedful::metrics::{Evaluation, MetricScore, References, Resampling, UnspacedScript};

use self::lines::read_lines;
use self::report::{MetricResult, write_json, write_lines};
pub(super) use self::settings::tokenize_parser;
use self::settings::{MetricKind, MetricName, Settings};
use crate::machine::Machine;
use crate::progress::{Bar, Quiet, Verbosity};

/// Evaluate translations (BLEU, chrF, TER), labels (accuracy, F1) or a text (perplexity)
///
/// Labels are compared line by line (the text before the first tab, as `heedful classify` prints it). Their
/// metrics equal scikit-learn's, in per cent. Perplexity is computed with the language model --model, or with
/// a translator and --src.
///
/// Scores and signatures equal those of sacreBLEU 2.6.0, digit for digit, so that they can be compared with
/// published ones. Resampling draws the same samples as sacreBLEU with the same seed, but computes in double
/// precision: the last digit of an interval may differ.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Translations, labels (hypotheses) or a text, one per line; - is standard input
    #[arg(value_name = "HYP")]
    hypotheses: PathBuf,
    /// Reference translations or labels: line n belongs to line n of HYP; repeat it for several references
    #[arg(long = "ref", value_name = "REF")]
    references: Vec<PathBuf>,
    /// Metrics, separated by commas
    #[arg(long = "metric", value_name = "NAME", value_enum, value_delimiter = ',', default_value = "bleu")]
    metrics: Vec<MetricName>,
    /// The model of --metric perplexity: folder of a language model or a translator, or of its training run
    #[arg(long, value_name = "FOLDER")]
    model: Option<PathBuf>,
    /// Source text for --metric perplexity with a translator: line n of HYP translates line n
    #[arg(long, value_name = "FILE", requires = "model")]
    src: Option<PathBuf>,
    #[command(flatten)]
    settings: Settings,
    /// Add the 95 % confidence interval of each score, by bootstrap resampling
    #[arg(long, help_heading = "Significance")]
    confidence: bool,
    /// Compare with another system's translations: paired bootstrap and approximate randomisation tests
    #[arg(long, value_name = "OTHER_HYP", help_heading = "Significance")]
    compare: Option<PathBuf>,
    /// Number of bootstrap resamples of --confidence and --compare
    #[arg(long, value_name = "N", help_heading = "Significance", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    resamples: u32,
    /// Number of approximate randomisation trials of --compare
    #[arg(long, value_name = "N", help_heading = "Significance", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    trials: u32,
    /// Random seed of the resampling
    #[arg(long, value_name = "N", help_heading = "Significance", default_value_t = heedful::metrics::SACREBLEU_SEED)]
    seed: u64,
    /// Print a line of scores for each sentence, metrics separated by tabs
    #[arg(long, conflicts_with_all = ["confidence", "compare"], help_heading = "Output")]
    sentence_level: bool,
    /// Number of decimals
    #[arg(long, value_name = "N", help_heading = "Output", default_value_t = 2, value_parser = clap::value_parser!(u8).range(..=15))]
    width: u8,
    /// Print JSON: {"bleu":{"score":38.02,"signature":"…"},…}; with --sentence-level one object per line
    #[arg(long, help_heading = "Output")]
    json: bool,
    #[command(flatten)]
    quiet: Quiet,
    #[command(flatten)]
    machine: Machine,
}

const EXAMPLES: &str = "\
Examples:
  heedful evaluate news.de --ref news.ref.de
  heedful evaluate out.zh --ref ref.zh --tokenize zh --metric bleu,chrf,ter
  heedful evaluate baseline.de --ref ref.de --compare improved.de
  heedful evaluate labels.txt --ref valid.tsv --metric accuracy,f1
  heedful evaluate rest.txt --model writer --metric perplexity";

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    arguments.settings.check()?;
    let kind = arguments.kind()?;
    // Perplexity runs a model; all other metrics only compare texts.
    if kind == MetricKind::Text {
        return perplexity::run(arguments);
    }
    arguments.machine.set_up_cpu("evaluation", arguments.quiet.verbosity())?;
    if kind == MetricKind::Labels {
        return labels::run(arguments);
    }
    let corpus = Corpus::read(arguments)?;
    if arguments.metrics.contains(&MetricName::Ter) {
        corpus.check_edits(arguments)?;
    }
    if arguments.quiet.verbosity() == Verbosity::Normal {
        corpus.warn_of_tokenized_text(arguments);
        corpus.hint_at_tokenizer(arguments);
    }
    let mut metrics = arguments.metrics.clone();
    metrics.sort();
    metrics.dedup();
    let bar = Bar::with_time_left(arguments.quiet.verbosity(), metrics.len());
    if arguments.sentence_level {
        return write_sentences(arguments, &metrics, &corpus, &bar);
    }
    let result = |(done, &name): (usize, &MetricName)| {
        bar.show(done, 0.0, || format!("computing {}", name.key()));
        corpus_result(arguments, name, &corpus)
    };
    let results: Vec<MetricResult> = metrics.iter().enumerate().map(result).collect();
    bar.finish();
    let mut out = io::stdout().lock();
    if arguments.json {
        write_json(&results, &mut out)?;
    } else {
        write_lines(&results, &mut out)?;
    }
    Ok(out.flush()?)
}

impl Arguments {
    /// The kind of the metrics. Refuses metrics of different kinds, and flags without effect on them.
    fn kind(&self) -> Result<MetricKind> {
        let kind = self.metrics.first().map_or(MetricKind::Translations, |metric| metric.kind());
        if let Some(other) = self.metrics.iter().find(|metric| metric.kind() != kind) {
            bail!(
                "--metric {} and {} measure different things: run heedful evaluate for each",
                self.metrics[0].key(),
                other.key()
            );
        }
        if kind != MetricKind::Text && self.model.is_some() {
            bail!("--model has no effect without --metric perplexity: remove it");
        }
        if kind != MetricKind::Text && self.machine.has_compute() {
            bail!("--compute has no effect without --metric perplexity: remove it");
        }
        if kind != MetricKind::Text && self.references.is_empty() {
            bail!("{} needs references: add --ref REF", lines::name(&self.hypotheses));
        }
        let resampled = [
            ("--confidence", self.confidence),
            ("--compare", self.compare.is_some()),
            ("--sentence-level", self.sentence_level),
        ];
        if let Some((flag, _)) =
            resampled.iter().find(|(_, given)| *given && kind != MetricKind::Translations)
        {
            bail!("{flag} applies only to metrics of translations: remove it");
        }
        Ok(kind)
    }
}

/// Hypotheses and references, with the same number of lines, at least one.
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

    /// Warns as sacreBLEU does, with its threshold.
    fn warn_of_tokenized_text(&self, arguments: &Arguments) {
        let tokenized = self.hypotheses.iter().filter(|line| line.ends_with(" .")).count();
        let measured = arguments.metrics.contains(&MetricName::Bleu) && arguments.settings.tokenizes();
        if measured && tokenized >= 100 {
            eprintln!(
                "heedful: {tokenized} lines of {} end in ` .`, as if the text had been tokenized. BLEU expects plain text: \
                 scores of tokenized text cannot be compared with others",
                lines::name(&arguments.hypotheses)
            );
        }
    }
}

/// Maximum cells of TER's edit-distance table for a line: words of the line × words of its reference.
const MAX_EDIT_CELLS: usize = 1 << 24;

impl Corpus {
    /// Refuses lines whose edit-distance table would not fit into memory.
    fn check_edits(&self, arguments: &Arguments) -> Result<()> {
        let words = |line: &String| arguments.settings.max_ter_words(line);
        for system in [Some(&self.hypotheses), self.other.as_ref()].into_iter().flatten() {
            for (index, hypothesis) in system.iter().enumerate() {
                let reference = self.references.iter().map(|lines| words(&lines[index])).max().unwrap_or(0);
                let (hypothesis, line) = (words(hypothesis), index + 1);
                if hypothesis.saturating_mul(reference) > MAX_EDIT_CELLS {
                    bail!(
                        "line {line} has {hypothesis} words, and its reference {reference}: too many for TER, which \
                         compares all pairs of words. Split the line, or leave out --metric ter"
                    );
                }
            }
        }
        Ok(())
    }

    /// Recommends a tokenizer for references whose words are not separated by spaces.
    fn hint_at_tokenizer(&self, arguments: &Arguments) {
        let references = self.references.iter().flatten().map(String::as_str);
        let measures =
            [MetricName::Bleu, MetricName::BleuTeaching].iter().any(|name| arguments.metrics.contains(name));
        if measures
            && arguments.settings.splits_at_spaces()
            && let Some(script) = UnspacedScript::of(references)
        {
            let name = lines::name(&arguments.references[0]);
            let (language, advice) = match script {
                UnspacedScript::Chinese => ("Chinese", "use --tokenize zh"),
                UnspacedScript::Japanese => (
                    "Japanese",
                    "use --tokenize char; to compare with scores by sacreBLEU's ja-mecab, split all texts with MeCab and use \
                     --tokenize none",
                ),
                UnspacedScript::SoutheastAsian => (
                    "in a script without spaces between words",
                    "use --tokenize char; to compare with scores by sacreBLEU's flores200, split all texts with its \
                     SentencePiece model and use --tokenize none",
                ),
            };
            eprintln!(
                "heedful: {name} is {language}, and this tokenizer treats whole sentences as single words: {advice}"
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
        "{} has {} and {} has {}: line {} has no counterpart. Line n of each file must belong to line n of the others; look \
         for a missing or an extra line break",
        lines::name(shorter.0),
        lines::counted(shorter.1),
        lines::name(longer.0),
        lines::counted(longer.1),
        shorter.1 + 1
    )
}

fn corpus_result(arguments: &Arguments, name: MetricName, corpus: &Corpus) -> MetricResult {
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
    MetricResult { name, score, comparison: comparison.zip(other), digits: arguments.width.into() }
}

fn write_sentences(arguments: &Arguments, metrics: &[MetricName], corpus: &Corpus, bar: &Bar) -> Result<()> {
    let references = References::new(&corpus.references);
    let columns: Vec<Vec<MetricScore>> = metrics
        .iter()
        .enumerate()
        .map(|(done, &name)| {
            bar.show(done, 0.0, || format!("computing {}", name.key()));
            let metric = arguments.settings.sentence_metric(name);
            Evaluation::new(metric.as_ref(), &corpus.hypotheses, &references).sentences().collect()
        })
        .collect();
    bar.finish();
    let digits = usize::from(arguments.width);
    let mut out = io::BufWriter::new(io::stdout().lock());
    for sentence in 0..corpus.hypotheses.len() {
        let scores = metrics.iter().zip(&columns).map(|(&name, column)| (name, &column[sentence]));
        if arguments.json {
            let results: Vec<MetricResult> = scores
                .map(|(name, score)| MetricResult { name, score: score.clone(), comparison: None, digits })
                .collect();
            write_json(&results, &mut out)?;
        } else {
            let scores: Vec<String> = scores.map(|(_, score)| format!("{:.digits$}", score.score)).collect();
            writeln!(out, "{}", scores.join("\t"))?;
        }
    }
    Ok(out.flush()?)
}
