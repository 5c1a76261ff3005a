//! `heedful explain example`: the running example in both directions, with the words that decide.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use heedful::decode::SearchOptions;
use heedful::explain::{Explanation, WeightForm, page};
use heedful::store::durable;
use heedful::tasks::folder::ModelFolder;
use heedful::tasks::translate::Translator;
use heedful::tensor::DType;

use super::output::Format;
use crate::commands::demo::{Direction, Traced, print_alignment};
use crate::commands::translate::compute;

/// Where `heedful demo` leaves its models unless told otherwise.
const DEMO_FOLDERS: [&str; 3] = ["heedful-demo", "heedful-demo/en-zh", "heedful-demo-en-zh"];

/// Show the running example, 一套自动驾驶解决方案 and an autonomous driving solution, and which words decide
///
/// Chinese to English, “an” must look at 自动驾驶, whose translation begins with a vowel. English to Chinese, the measure
/// word 套 must look at “solution” and 辆 at “car”, far away from it. It needs models that `heedful demo` has trained.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The folder of a demo's model, in either direction; may be given several times [default: heedful-demo, if it is
    /// here]
    #[arg(long, value_name = "FOLDER")]
    model: Vec<PathBuf>,
    /// Also write all views to this file: .html or .json
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Type of the matrix products: bf16 or f32
    #[arg(long, default_value = "bf16", value_name = "TYPE", value_parser = compute)]
    compute: DType,
}

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let format = arguments
        .output
        .as_deref()
        .map(|path| Format::of(path, &[Format::Html, Format::Json]))
        .transpose()?;
    let options = SearchOptions { beam: 1, compute: arguments.compute, ..SearchOptions::default() };
    let mut explanations = Vec::new();
    let mut shown = Vec::new();
    for folder in models(arguments)? {
        let translator = Translator::open(&folder)?;
        let direction = direction(&translator, &options)
            .with_context(|| format!("{} translates between other languages", folder.display()))?;
        show(&translator, direction, &options)?;
        for lesson in direction.lessons() {
            let translation = translator.translate(&[lesson.source], &options)?.remove(0);
            let form = if format == Some(Format::Html) { WeightForm::Packed } else { WeightForm::Rows };
            explanations.push(Explanation::new(&translator, lesson.source, &translation, form, &options)?);
        }
        shown.push(direction);
    }
    if let (Some(path), Some(format)) = (&arguments.output, format) {
        let contents = match format {
            Format::Json => serde_json::to_string(&explanations)?,
            _ => page(&explanations, "The running example"),
        };
        durable::write_bytes(path, contents.as_bytes())?;
    }
    let missing = Direction::BOTH.into_iter().filter(|direction| !shown.contains(direction));
    for direction in missing {
        eprintln!("heedful: for {direction}: {}", how_to_make(direction));
    }
    Ok(())
}

/// The folders to look into.
fn models(arguments: &Arguments) -> Result<Vec<PathBuf>> {
    if !arguments.model.is_empty() {
        return Ok(arguments.model.clone());
    }
    let is_model = |folder: &&str| ModelFolder::open(Path::new(folder)).is_ok();
    let found: Vec<PathBuf> = DEMO_FOLDERS.into_iter().filter(is_model).map(PathBuf::from).collect();
    if found.is_empty() {
        let [one, other] = Direction::BOTH.map(how_to_make);
        bail!(
            "there is no demo's model here. Name one with --model FOLDER, or make one:\n  {one}\n  {other}"
        );
    }
    Ok(found)
}

fn how_to_make(direction: Direction) -> String {
    match direction {
        Direction::ChineseToEnglish => "heedful demo --out heedful-demo".to_owned(),
        Direction::EnglishToChinese => "heedful demo --direction en-zh --out heedful-demo-en-zh".to_owned(),
    }
}

/// The direction that the model translates in, told by what it makes of the example.
fn direction(translator: &Translator, options: &SearchOptions) -> Result<Direction> {
    let says = |source: &str| -> Result<String> {
        Ok(translator.translate(&[source], options)?.remove(0).best().to_owned())
    };
    for direction in Direction::BOTH {
        let [source, target] = direction.example();
        let said = says(source)?;
        if !said.is_empty() && Direction::of_text(&said).ok() == Direction::of_text(target).ok() {
            return Ok(direction);
        }
    }
    bail!("it makes no English of Chinese and no Chinese of English")
}

fn show(translator: &Translator, direction: Direction, options: &SearchOptions) -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{direction}")?;
    for lesson in direction.lessons() {
        let traced = Traced::new(translator, lesson.source, options)?;
        print_alignment(&traced, Some(&lesson), &mut out)?;
    }
    Ok(writeln!(out)?)
}
