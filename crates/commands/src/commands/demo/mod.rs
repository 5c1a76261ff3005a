//! `heedful demo`: trains a small translator, evaluates it, and shows its attention.

mod direction;
mod model;
mod plan;

mod folder;
mod phrases;

mod evaluation;

mod trace;

mod best_head;

mod by_length;

mod html_report;
mod text_report;

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Result, bail};
use heedful::decode::SearchOptions;
use heedful::models::DeviceChoice;
use heedful::recipe::Recipe;
use heedful::tasks::translate::Translator;
use heedful::tensor::cpu::threads;
use heedful::train::run::{self, Ending, Outcome, Start};
use heedful_grammar::Phrase;

pub(super) use self::by_length::bottleneck;
use self::direction::DirectionChoice;
pub(super) use self::direction::{Dependency, Direction};
use self::evaluation::TestResult;
use self::model::DemoModel;
use self::phrases::TextFiles;
use self::plan::{NORMAL, QUICK};
pub(super) use self::text_report::attention as print_attention;
pub(super) use self::trace::Trace;
use super::train::TrainingProgress;
use crate::interrupt::{Interrupt, Interrupted};
use crate::machine::{DeviceName, Threads};
use crate::progress::{Bar, Verbosity};

/// Train a small Chinese–English Transformer, evaluate it and show its attention
///
/// It takes half a minute to two minutes and needs no data: a built-in grammar generates 200,000 phrases,
/// such as 一套自动驾驶解决方案, an autonomous driving solution. No phrase of the test set is in the training
/// set. The result is a model folder for `heedful translate`. The same seed gives the same result with any
/// number of threads.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Use short phrases and a smaller model: takes a few seconds, less accurate
    #[arg(long)]
    quick: bool,
    /// Direction of translation
    #[arg(long, value_enum, value_name = "DIRECTION", default_value = "zh-en")]
    direction: DirectionChoice,
    /// Model to train; several, separated by commas, are trained one after the other and compared in a table
    #[arg(long, value_enum, value_delimiter = ',', value_name = "MODEL", default_value = "transformer")]
    model: Vec<DemoModel>,
    /// Also translate this phrase and show its attention; repeatable
    #[arg(long, value_name = "PHRASE")]
    text: Vec<String>,
    /// Folder for model, phrases and report; the folder of an earlier demo is replaced
    #[arg(long, value_name = "FOLDER", default_value = "heedful-demo")]
    out: PathBuf,
    /// Random seed of the phrases and of the training
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    device: DeviceName,
    #[command(flatten)]
    threads: Threads,
}

const EXAMPLES: &str = "\
Examples:
  heedful demo
  heedful demo --direction both --text 一辆红色的新车
  heedful demo --model rnn,rnn-attention,transformer
      also the predecessors of the Transformer: the table shows the effect of attention";

/// One model in one direction.
struct DemoRun<'a> {
    model: DemoModel,
    direction: Direction,
    /// The user's phrases, in the source language.
    texts: Vec<&'a str>,
    folder: PathBuf,
}

/// Maximum characters of a user's phrase; phrases of the grammar have fewer than 100.
const MAX_PHRASE_CHARACTERS: usize = 500;

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let runs = arguments.runs()?;
    arguments.threads.set_up();
    let interrupt = Interrupt::hold();
    let plan = if arguments.quick { QUICK } else { NORMAL };
    let text = TextFiles::new(&arguments.out.join("data"));
    let device = arguments.device.set_up_training(Verbosity::Normal)?;
    let mut recipes = Vec::new();
    for demo in &runs {
        let mut recipe = plan.recipe(demo.direction, &text, &demo.folder, arguments.seed);
        demo.model.adapt(&mut recipe);
        recipes.push(recipe);
    }
    folder::claim(&arguments.out)?;
    let phrases = text.write(&plan, arguments.seed)?;
    let mut results = Vec::new();
    for (demo, recipe) in runs.iter().zip(&recipes) {
        let result = demo.train_and_evaluate(device, recipe, &phrases, interrupt.clone())?;
        demo.check(&result, plan.required_exact_match)?;
        results.push(result);
    }
    if arguments.model.len() > 1 {
        for &direction in arguments.directions() {
            let of_direction = runs.iter().zip(&results).filter(|(demo, _)| demo.direction == direction);
            let columns: Vec<(&str, &TestResult)> =
                of_direction.map(|(demo, result)| (demo.model.name(), result)).collect();
            text_report::comparison(direction, &columns, &mut io::stdout().lock())?;
        }
    }
    print_next_steps(&runs, &text)
}

impl Arguments {
    fn runs(&self) -> Result<Vec<DemoRun<'_>>> {
        let directions = self.directions();
        if let Some(twice) = self.model.iter().enumerate().find(|(i, model)| self.model[..*i].contains(model))
        {
            bail!("--model names {} twice: name each model once", twice.1.name());
        }
        for text in &self.text {
            let characters = text.chars().count();
            if characters > MAX_PHRASE_CHARACTERS {
                bail!("--text has {characters} characters: a phrase has at most {MAX_PHRASE_CHARACTERS}");
            }
            let needed = Direction::of_text(text)?;
            if !directions.contains(&needed) {
                bail!("“{text}” needs {needed}: add --direction {} or --direction both", needed.name());
            }
        }
        let models =
            self.model.iter().flat_map(|&model| directions.iter().map(move |&direction| (model, direction)));
        let run = |(number, (model, direction)): (usize, (DemoModel, Direction))| DemoRun {
            model,
            direction,
            texts: self
                .text
                .iter()
                .filter(|text| Direction::of_text(text).is_ok_and(|needed| needed == direction))
                .map(String::as_str)
                .collect(),
            // The first model is written to the folder itself, so that the default name works in other
            // commands.
            folder: match (number, self.model.first() == Some(&model)) {
                (0, _) => self.out.clone(),
                (_, true) => self.out.join(direction.name()),
                (_, false) if directions.len() == 1 => self.out.join(model.name()),
                (_, false) => self.out.join(format!("{}-{}", model.name(), direction.name())),
            },
        };
        Ok(models.enumerate().map(run).collect())
    }

    fn directions(&self) -> &'static [Direction] {
        self.direction.directions()
    }
}

impl DemoRun<'_> {
    /// Trains the model, evaluates it on the test set, and prints the result and the
    /// attention of a few phrases.
    fn train_and_evaluate(
        &self,
        device: DeviceChoice,
        recipe: &Recipe,
        test_set: &[Phrase],
        interrupt: Interrupt,
    ) -> Result<TestResult> {
        let start = Instant::now();
        let compute = recipe.training.compute;
        let (on, threads) = (device.for_training()?.device, threads::thread_count());
        eprintln!("{}: {}, in {compute} on {on}, {threads} threads", self.direction, self.model);
        let outcome = train(device, recipe, interrupt)?;
        let translator = Translator::open(&self.folder)?;
        // Greedy search is enough: a phrase has one translation.
        let options = SearchOptions { beam: 1, compute: Some(compute.into()), ..SearchOptions::default() };
        let bar = Bar::with_time_left(Verbosity::Normal, 0);
        bar.show(0, 0.0, || format!("translating {} phrases of the test set", test_set.len()));
        let result = TestResult::evaluate(&translator, self.direction, test_set, &options)?;
        bar.finish();
        let texts = [self.direction.example()[0]].into_iter().chain(self.texts.iter().copied());
        let traces: Vec<Trace<'_>> =
            texts.map(|text| Trace::new(&translator, text, &options)).collect::<Result<_>>()?;
        let path = self.folder.join("report.html");
        let report = run::report(recipe, &outcome)?;
        html_report::write(report, (self.model, self.direction), &result, &traces, &path)?;
        eprintln!("trained and evaluated in {:.1} s\n", start.elapsed().as_secs_f64());
        self.print(&result, &traces)?;
        Ok(result)
    }

    /// Returns an error if a Transformer is less accurate than expected. Other models may reach any accuracy.
    fn check(&self, result: &TestResult, required: f64) -> Result<()> {
        let found = result.exact_match();
        if self.model == DemoModel::Transformer && found.share() < required {
            bail!(
                "only {} of the test phrases were translated correctly instead of at least {:.0} %. Try another --seed; if several \
                 fail, this is a bug",
                found.percent(),
                100.0 * required
            );
        }
        Ok(())
    }

    fn print(&self, result: &TestResult, traces: &[Trace<'_>]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        text_report::test_result((self.model, self.direction), result, &mut out)?;
        for (number, trace) in traces.iter().enumerate() {
            let dependency = (number == 0).then(|| self.direction.dependency());
            text_report::attention(trace, dependency.as_ref(), &[], &mut out)?;
        }
        writeln!(out)
    }
}

/// Trains the recipe, with a progress bar.
fn train(device: DeviceChoice, recipe: &Recipe, interrupt: Interrupt) -> Result<Outcome> {
    let mut progress = TrainingProgress::new(Verbosity::Normal, interrupt);
    let outcome = run::train_on(device, recipe, Start::Fresh, &mut progress);
    progress.finish();
    let outcome = outcome?;
    if outcome.ending == Ending::Interrupted {
        let message = format!(
            "interrupted after step {}: a demo cannot be resumed, the next one starts from the beginning",
            outcome.step
        );
        return Err(Interrupted::with_message(message).into());
    }
    Ok(outcome)
}

/// Prints commands to try next.
fn print_next_steps(runs: &[DemoRun<'_>], text: &TextFiles) -> Result<()> {
    let mut out = io::stdout().lock();
    for DemoRun { direction, folder, .. } in runs {
        let name = folder.display();
        let [source, reference] = text.test(*direction).map(|file| file.display().to_string());
        let tokenize = direction.tokenize().name();
        writeln!(
            out,
            "{direction}: the model is in {name}, curves and attention are in {name}/report.html. Try:\n\n  \
             echo '{}' | heedful translate {name}\n  \
             heedful translate {name} {source} -o out.txt\n  \
             heedful evaluate out.txt --ref {reference} --tokenize {tokenize}\n",
            direction.example()[0]
        )?;
    }
    Ok(())
}
