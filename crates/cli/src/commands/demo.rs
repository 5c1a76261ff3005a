//! `heedful demo`: a Transformer learns to reverse words while you watch, then shows where it looked.

mod progress;
mod words;

use std::io::{self, Write};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use heedful::decode::{GreedyOptions, greedy};
use heedful::layers::{AttentionMap, Kind, Pass};
use heedful::tensor::cpu::isa::{self, Isa};
use heedful::tensor::cpu::threads;
use heedful::tensor::{DType, Device};
use heedful::train::{Schedule, Trainer, TrainerOptions};
use heedful::transformer::{Transformer, TransformerConfig};

use self::progress::Progress;
use self::words::{BOS, EOS, VOCABULARY, Words};
use crate::heatmap::{self, Heatmap, Labels, Style};

/// Train a small Transformer to reverse words, then show where it looked.
///
/// It reads `attention` and writes `noitnetta`. All words are random letters, made as they are needed; the words of
/// the test are never trained on. The same seed gives the same result, with any number of threads.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// A few seconds with words of 3 to 6 letters; says how far it came and never fails
    #[arg(long)]
    quick: bool,
    /// Decides the words and the first values of the model
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// How many threads compute [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
}

/// How much there is to learn, and how long it takes.
struct Task {
    longest: usize,
    steps: u64,
    batch: usize,
    shown: &'static [&'static str],
}

const NORMAL: Task = Task {
    longest: 12,
    steps: 1500,
    batch: 128,
    shown: &["attention", "heedful", "transformer", "encoder", "key"],
};
const QUICK: Task =
    Task { longest: 6, steps: 500, batch: 64, shown: &["heed", "query", "value", "tensor", "key"] };

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if let Some(count) = arguments.threads {
        threads::set_thread_count(count.into());
    }
    let task = if arguments.quick { QUICK } else { NORMAL };
    let start = Instant::now();
    let words = Words::new(task.longest, arguments.seed, task.shown);
    let trained = train(&task, &words, arguments.seed)?;
    let accuracy = exact_match(&trained, &words)?;
    report(&task, &trained, &words, &accuracy, start.elapsed())?;
    match (arguments.quick, accuracy.is_perfect()) {
        (_, true) => Ok(()),
        (true, false) => {
            eprintln!("that was the quick demo; without --quick it learns longer words, to 100 %");
            Ok(())
        }
        (false, false) => bail!(
            "the model did not learn to reverse every word: {accuracy}. Another --seed may do; if several fail, this \
             is a bug"
        ),
    }
}

/// bf16 where the processor multiplies it in tiles, else f32.
fn compute_type() -> DType {
    if isa::current() == Isa::Amx { DType::Bf16 } else { DType::F32 }
}

fn train(task: &Task, words: &Words, seed: u64) -> Result<Transformer> {
    // One encoder layer is enough to learn it; with a second one every letter knows its place, and the picture is sharp.
    let config = TransformerConfig { encoder_layers: 2, ..TransformerConfig::tiny(VOCABULARY) };
    let compute = compute_type();
    let model = Transformer::new(config, seed)?;
    let layers = (model.config().encoder_layers, model.config().decoder_layers);
    eprintln!(
        "A Transformer ({}+{} layers, {} parameters) learns to reverse words of 3 to {} letters, in {compute} on {}, \
         {} threads.",
        layers.0,
        layers.1,
        crate::numbers::thousands(model.params().count() as u64),
        task.longest,
        Device::Cpu,
        threads::thread_count()
    );
    let schedule = Schedule::Cosine { peak: 3e-3, floor: 2e-5, warmup: 100, total: task.steps };
    let mut trainer = Trainer::new(model, TrainerOptions::new(compute, seed, schedule));
    let mut progress = Progress::new(task.steps);
    for step in 1..=task.steps {
        let report = trainer.step(&words.batch(step, task.batch)?)?;
        progress.after(&report);
    }
    progress.finish();
    Ok(trainer.into_model())
}

/// Words of the test reversed without a mistake.
struct ExactMatch {
    right: usize,
    words: usize,
}

impl ExactMatch {
    fn is_perfect(&self) -> bool {
        self.right == self.words
    }
}

impl std::fmt::Display for ExactMatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Rounded down: 999 of 1000 is not 100 %.
        let percent = (1000 * self.right / self.words) as f64 / 10.0;
        write!(f, "{} of {} held-out words are right ({percent} %)", self.right, self.words)
    }
}

fn reversed(model: &Transformer, sources: &[Vec<u32>]) -> Result<Vec<Vec<u32>>> {
    let options = GreedyOptions { bos: BOS, eos: EOS, beyond_source: 3, compute: compute_type() };
    Ok(greedy(model, sources, options)?)
}

fn exact_match(model: &Transformer, words: &Words) -> Result<ExactMatch> {
    let outputs = reversed(model, words.held_out())?;
    let right =
        words.held_out().iter().zip(&outputs).filter(|(word, output)| word.iter().rev().eq(*output)).count();
    Ok(ExactMatch { right, words: outputs.len() })
}

fn report(
    task: &Task,
    model: &Transformer,
    words: &Words,
    accuracy: &ExactMatch,
    time: Duration,
) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{accuracy}, after {:.1} s\n", time.as_secs_f64())?;
    let mut examples: Vec<Vec<u32>> = task.shown.iter().map(|word| words::encode(word)).collect();
    examples.extend(words.held_out().iter().rev().take(3).cloned());
    let outputs = reversed(model, &examples).map_err(io::Error::other)?;
    for (word, output) in examples.iter().zip(&outputs) {
        let verdict = if word.iter().rev().eq(output) { "" } else { "   wrong" };
        writeln!(out, "  {:>12} → {}{verdict}", words::decode(word), words::decode(output))?;
    }

    let map = cross_attention(model, &examples[0], &outputs[0], words).map_err(io::Error::other)?;
    let letters = |tokens: &[u32]| words::decode(tokens).chars().map(String::from).collect::<Vec<_>>();
    let mut labels = Labels { rows: letters(&outputs[0]), columns: letters(&examples[0]) };
    labels.rows.push("end".to_owned());
    let mut pictures = vec![Heatmap::new("all heads", map.mean_over_heads(0))];
    for (head, weights) in map.weights[0].iter().enumerate() {
        pictures.push(Heatmap::new(&format!("head {head}"), weights.clone()));
    }
    writeln!(out, "\n{}: where the model looked (columns) when it wrote each letter (rows)\n", map.place)?;
    Heatmap::write_side_by_side(&pictures, &labels, Style::of_stdout(), heatmap::stdout_width(), &mut out)?;
    writeln!(
        out,
        "\nThe bright line from the upper right to the lower left is the reversal: to write its first letter the model \
         looks at the last one, then goes back through the word."
    )
}

/// The attention of the last decoder layer at a word, while the model says `output`.
fn cross_attention(model: &Transformer, word: &[u32], output: &[u32], words: &Words) -> Result<AttentionMap> {
    let mut pass = Pass::inference(compute_type()).recording();
    model.logits(&words.pair(word, output)?, &mut pass);
    let maps = pass.take_attention();
    let last = maps.into_iter().rfind(|map| map.place.kind == Kind::Cross);
    Ok(last.expect("a decoder has cross attention"))
}
