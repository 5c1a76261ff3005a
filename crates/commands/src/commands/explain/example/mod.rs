//! `heedful explain example`: the running example in both directions, the words that decide the translation,
//! and ablations.

mod intervention;
mod senses;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use heedful::decode::SearchOptions;
use heedful::explain::experiments::{Experiment, MAX_DECIDING_HEADS};
use heedful::explain::{Explanation, WeightForm, page};
use heedful::tasks::folder::ModelFolder;
use heedful::tasks::translate::Translator;

use self::intervention::Intervention;
use super::experiment::{FORMATS, write_experiment};
use super::output::Format;
use crate::commands::demo::{Direction, Trace, print_attention};
use crate::machine::Machine;
use crate::output::Force;
use crate::progress::Verbosity;

/// Default folders of `heedful demo`.
const DEMO_FOLDERS: [&str; 3] = ["heedful-demo", "heedful-demo/en-zh", "heedful-demo-en-zh"];

/// Show the attention of the running example, 一套自动驾驶解决方案 (an autonomous driving solution)
///
/// From Chinese to English, “an” depends on 自动驾驶, whose translation begins with a vowel. From English to
/// Chinese, the measure word 套 depends on “solution” and 辆 on “car”, at the far end of the phrase.
/// Attention weights are no proof, so heads are ablated (their output set to zero) to find those without
/// which “an” becomes “a”. Because heads can replace each other, it searches for a few heads that decide
/// together. Then it measures on --phrases other unseen phrases how often the article or the measure word
/// changes without them, compared with as many random heads. From English to Chinese, it also shows which
/// words decide whether a solution is 解决方案, 解 or 溶液. The models are those that `heedful demo` trains.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct Arguments {
    /// Folder of a model that `heedful demo` trained, in either direction; repeatable [default: heedful-demo]
    #[arg(long, value_name = "FOLDER")]
    model: Vec<PathBuf>,
    /// Also write all views to this file: .html or .json
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
    /// Number of unseen phrases on which heads are removed; 0 for the example only
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u16).range(0..=2000))]
    phrases: u16,
    /// Also write the effect of removing each head to this file: .html, .svg, .png or .json
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    effects: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    machine: Machine,
}

const EXAMPLES: &str = "\
Examples:
  heedful demo --direction both && heedful explain example
  heedful explain example --model heedful-demo -o example.html
  heedful explain example --phrases 200 --effects effects.svg";

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let format = arguments
        .output
        .as_deref()
        .map(|path| Format::of(path, &[Format::Html, Format::Json]))
        .transpose()?;
    if arguments.phrases == 0 && arguments.effects.is_some() {
        bail!("--phrases 0 measures no effects to write with --effects: remove one of them");
    }
    arguments.machine.set_up_cpu("searching", Verbosity::Normal)?;
    let folders = models(arguments)?;
    let inputs: Vec<&Path> = folders.iter().map(PathBuf::as_path).collect();
    let output = arguments.force.open_if_named(arguments.output.as_deref(), &inputs)?;
    let options =
        SearchOptions { beam: 1, compute: arguments.machine.precision(), ..SearchOptions::default() };
    let effects_format = arguments.effects.as_deref().map(|path| Format::of(path, &FORMATS)).transpose()?;
    let effects_file =
        arguments.effects.as_deref().map(|path| arguments.force.open(path, &inputs)).transpose()?;
    let (mut explanations, mut effects) = (Vec::new(), Vec::new());
    let mut shown = Vec::new();
    for folder in &folders {
        let translator = Translator::open(folder)?;
        let direction = direction(&translator, &options)
            .with_context(|| format!("{}: not a model of `heedful demo`", folder.display()))?;
        let proof = arguments.show(&translator, (direction, folder), &options)?;
        effects.extend(proof);
        for dependency in direction.contrast() {
            let translation = translator.translate([dependency.source], &options)?.remove(0);
            let form = if format == Some(Format::Html) { WeightForm::Packed } else { WeightForm::Rows };
            explanations.push(Explanation::new(
                &translator,
                dependency.source,
                &translation,
                form,
                &options,
            )?);
        }
        shown.push(direction);
    }
    if let (Some(file), Some(format)) = (output, format) {
        let contents = match format {
            Format::Json => serde_json::to_string(&explanations)?,
            _ => page(&explanations, "The running example"),
        };
        file.finish_with(contents.as_bytes())?;
    }
    if let (Some(file), Some(format)) = (effects_file, effects_format) {
        let Some(effects) = Experiment::joined(effects) else {
            bail!("no head was removed, so there is nothing to write to {}", file.path().display());
        };
        write_experiment(file, format, &effects)?;
    }
    let missing = Direction::BOTH.into_iter().filter(|direction| !shown.contains(direction));
    for direction in missing {
        eprintln!("heedful: to see {direction} too, run: {}", training_command(direction));
    }
    Ok(())
}

/// The folders of the models to show.
fn models(arguments: &Arguments) -> Result<Vec<PathBuf>> {
    if !arguments.model.is_empty() {
        return Ok(arguments.model.clone());
    }
    let is_model = |folder: &&str| ModelFolder::open(Path::new(folder)).is_ok();
    let found: Vec<PathBuf> = DEMO_FOLDERS.into_iter().filter(is_model).map(PathBuf::from).collect();
    if found.is_empty() {
        let [one, other] = Direction::BOTH.map(training_command);
        bail!(
            "no model of `heedful demo` was found here. Name its folder with --model FOLDER, or train one:\n  {one}\n  {other}"
        );
    }
    Ok(found)
}

fn training_command(direction: Direction) -> String {
    match direction {
        Direction::ChineseToEnglish => "heedful demo --out heedful-demo".to_owned(),
        Direction::EnglishToChinese => "heedful demo --direction en-zh --out heedful-demo-en-zh".to_owned(),
    }
}

/// The direction in which the model translates, found by translating the example.
fn direction(translator: &Translator, options: &SearchOptions) -> Result<Direction> {
    let translated = |source: &str| -> Result<String> {
        Ok(translator.translate([source], options)?.remove(0).best().to_owned())
    };
    for direction in Direction::BOTH {
        let [source, target] = direction.example();
        let output = translated(source)?;
        if !output.is_empty() && Direction::of_text(&output).ok() == Direction::of_text(target).ok() {
            return Ok(direction);
        }
    }
    bail!("it translates neither Chinese to English nor English to Chinese")
}

impl Arguments {
    /// Shows the attention of the example and the effect of removing the deciding heads; then the effect over
    /// many phrases.
    fn show(
        &self,
        translator: &Translator,
        (direction, folder): (Direction, &Path),
        options: &SearchOptions,
    ) -> Result<Option<Experiment>> {
        let mut out = io::stdout().lock();
        writeln!(out, "{direction}")?;
        let [source, expected] = direction.example();
        let output = translator.translate([source], options)?.remove(0).best().to_owned();
        let intervention = Intervention { translator, direction, options };
        let count = usize::from(self.phrases);
        // Or the reason why the model is trained too little.
        let phrases = if output == expected {
            intervention.phrases(count)?.map_err(|undertrained| undertrained.to_string())
        } else {
            Err(format!("The model is trained too little: its output is “{output}” instead of “{expected}”"))
        };
        let heads = phrases.as_ref().map_or(Ok(Vec::new()), |phrases| intervention.deciding(phrases))?;
        for dependency in direction.contrast() {
            let trace = Trace::new(translator, dependency.source, options)?;
            print_attention(&trace, Some(&dependency), &heads, &mut out)?;
            if !heads.is_empty() {
                intervention.show(&dependency, &heads, &mut out)?;
            }
        }
        let phrases = match phrases {
            Ok(phrases) => phrases,
            Err(undertrained) => {
                writeln!(out, "\n{undertrained}. Train it longer: {}", training_command(direction))?;
                return Ok(None);
            }
        };
        if direction == Direction::EnglishToChinese {
            senses::show(translator, options, &mut out)?;
        }
        if count == 0 {
            return Ok(None);
        }
        if heads.is_empty() {
            writeln!(
                out,
                "\nNo {MAX_DECIDING_HEADS} heads decide {} together: without them it stays the same in more than half of the phrases.",
                direction.decided()
            )?;
            return Ok(None);
        }
        let found = intervention.measure(&phrases, &heads, &folder.display().to_string())?;
        writeln!(out, "\n{}", found.to_text())?;
        Ok(Some(found))
    }
}
