//! `heedful explain MODEL TEXT`: one sentence, or a few, and all that the model looked at.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use heedful::decode::{SearchOptions, pharaoh};
use heedful::explain::{
    ExplainedOutput, Explanation, HeadChoice, LayerChoice, Level, Matrix, WeightForm, grid_svg, page,
    words_svg,
};
use heedful::models::transformer::HeadName;
use heedful::plot::{HeatMapOptions, alignment_svg, heat_map_svg};
use heedful::store::durable;
use heedful::tasks::translate::Translator;
use heedful::tensor::DType;
use heedful::tensor::cpu::threads;

use super::input;
use super::output::{Format, scale, write_picture};
use crate::commands::translate::compute;
use crate::heatmap::{self, Heatmap, Labels, Style};

/// More sentences make a page that no browser likes.
const MOST_ON_A_PAGE: usize = 100;
const FORMATS: [Format; 4] = [Format::Html, Format::Svg, Format::Png, Format::Json];

#[derive(clap::Args)]
pub(super) struct Sentence {
    /// The folder of a model or of a training run
    #[arg(required = true)]
    model: Option<PathBuf>,
    /// What to explain: texts; or one file, a sentence a line, which may be compressed; or - for standard input
    #[arg(value_name = "TEXT|FILE|-")]
    text: Vec<String>,
    /// Where it goes: .html has everything, .svg and .png one view of one sentence, .json the numbers [default: the
    /// terminal]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Explain this output instead of the one that the model finds
    #[arg(long, value_name = "TEXT")]
    target: Option<String>,

    /// What .svg and .png show
    #[arg(long, value_enum, default_value = "matrix", help_heading = "View")]
    view: View,
    /// Rows and columns [default: word for lines and words, else token]
    #[arg(long, value_enum, help_heading = "View")]
    level: Option<LevelName>,
    /// Which layer: encoder.0, decoder.1, decoder.1.cross; or encoder, decoder, cross for the sharpest of them [default:
    /// cross, and all of them for a grid]
    #[arg(long, value_name = "LAYER", help_heading = "View")]
    layer: Option<LayerChoice>,
    /// Which head, counted from 0, or mean [default: mean]
    #[arg(long, value_name = "HEAD", help_heading = "View")]
    head: Option<HeadChoice>,
    /// Pixels for each unit of a .png
    #[arg(long, value_name = "X", default_value = "2", value_parser = scale, help_heading = "View")]
    scale: f32,
    /// How .json writes the weights
    #[arg(long, value_enum, default_value = "rows", help_heading = "View")]
    weights: WeightsName,

    /// Hypotheses that are followed at a time; 1 is greedy
    #[arg(long, default_value_t = 4, value_name = "N", help_heading = "Search")]
    beam: usize,
    /// So many outputs of each text, best first; pictures show the best
    #[arg(long, default_value_t = 1, value_name = "N", help_heading = "Search")]
    n_best: usize,
    /// Leave this head out, such as enc.0.3; may be given several times
    #[arg(long, value_name = "HEAD", help_heading = "Search")]
    without_head: Vec<HeadName>,
    /// Type of the matrix products: bf16 or f32
    #[arg(long, default_value = "bf16", value_name = "TYPE", value_parser = compute, help_heading = "Machine")]
    compute: DType,
    /// How many threads compute [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), help_heading = "Machine")]
    threads: Option<u16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum View {
    /// One layer and head: what was said × what was looked at
    Matrix,
    /// Every layer × every head, small
    Grid,
    /// Two sentences joined by lines
    Lines,
    /// The sentence once for each word that was said, shaded by where that word looked
    Words,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LevelName {
    /// As the model reads and says it
    Token,
    /// As people do
    Word,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum WeightsName {
    /// Rows of numbers
    Rows,
    /// Base 64 of 16-bit integers: a quarter of the size
    Packed,
    /// Not at all
    None,
}

pub(super) fn run(arguments: &Sentence) -> Result<()> {
    let model = arguments.model.as_deref().context("name the folder of a model")?;
    let format = arguments.output.as_deref().map(|path| Format::of(path, &FORMATS)).transpose()?;
    if let Some(count) = arguments.threads {
        threads::set_thread_count(count.into());
    }
    let options = SearchOptions {
        beam: arguments.beam,
        n_best: arguments.n_best,
        compute: arguments.compute,
        ..SearchOptions::default()
    };
    options.check()?;
    let texts = input::texts(&arguments.text)?;
    arguments.check(&texts, format)?;
    let translator = Translator::open_without(model, &arguments.without_head)?;
    let explanations = explain(&translator, &texts, arguments, &options, format)?;
    let first = || spoken(&explanations[0]);
    match (&arguments.output, format) {
        (Some(path), Some(Format::Json)) => {
            Ok(durable::write_bytes(path, &serde_json::to_vec(&explanations)?)?)
        }
        (Some(path), Some(Format::Html)) => {
            Ok(durable::write_bytes(path, page(&explanations, &title(model)).as_bytes())?)
        }
        (Some(path), _) => {
            write_picture(path, &arguments.picture(&explanations[0], first()?)?, arguments.scale)
        }
        (None, _) => explanations.iter().try_for_each(|explanation| arguments.show(explanation)),
    }
}

/// The best output of a text that is not blank.
fn spoken(explanation: &Explanation) -> Result<&ExplainedOutput> {
    explanation.outputs.first().context("the text is blank: there is nothing to explain")
}

/// What a page is called.
fn title(model: &Path) -> String {
    model.file_name().map_or_else(|| "heedful".to_owned(), |name| name.to_string_lossy().into_owned())
}

fn explain(
    translator: &Translator,
    texts: &[String],
    arguments: &Sentence,
    options: &SearchOptions,
    format: Option<Format>,
) -> Result<Vec<Explanation>> {
    let translations = match &arguments.target {
        Some(_) if texts[0].trim().is_empty() => bail!("the text is blank: no output has a probability"),
        Some(target) => vec![translator.force(&texts[0], target, options)?],
        None => translator.translate(&texts.iter().map(String::as_str).collect::<Vec<_>>(), options)?,
    };
    let form = match (format, arguments.weights) {
        (Some(Format::Html), _) | (Some(Format::Json), WeightsName::Packed) => WeightForm::Packed,
        (Some(Format::Json), WeightsName::None) => WeightForm::None,
        _ => WeightForm::Rows,
    };
    let both = texts.iter().zip(&translations);
    both.map(|(text, translation)| Ok(Explanation::new(translator, text, translation, form, options)?))
        .collect()
}

impl Sentence {
    /// What contradicts itself, before the model is read.
    fn check(&self, texts: &[String], format: Option<Format>) -> Result<()> {
        let is_picture = matches!(format, Some(Format::Svg | Format::Png));
        if is_picture && texts.len() > 1 {
            bail!("a picture shows one sentence, and {} were given: write .html or .json", texts.len());
        }
        if format == Some(Format::Html) && texts.len() > MOST_ON_A_PAGE {
            bail!(
                "{} sentences are too many for one page, which holds {MOST_ON_A_PAGE}: choose some of them, or write .json",
                texts.len()
            );
        }
        if self.target.is_some() && texts.len() > 1 {
            bail!("--target is the output of one text, and {} were given", texts.len());
        }
        if self.view == View::Grid && (self.head.is_some() || self.level == Some(LevelName::Word)) {
            bail!("a grid shows the tokens of all heads: leave --head and --level away");
        }
        Ok(())
    }

    fn matrix(&self, explanation: &Explanation, output: &ExplainedOutput) -> Result<Matrix> {
        let level = match (self.level, self.view) {
            (Some(LevelName::Word), _) | (None, View::Lines | View::Words) => Level::Word,
            _ => Level::Token,
        };
        let layer = self.layer.unwrap_or(LayerChoice::CROSS);
        Ok(Matrix::of(explanation, output, layer, self.head.unwrap_or_default(), level)?)
    }

    /// The view as SVG.
    fn picture(&self, explanation: &Explanation, output: &ExplainedOutput) -> Result<String> {
        if self.view == View::Grid {
            if let Some(layer) = self.layer {
                layer.find(output)?;
            }
            return Ok(grid_svg(
                output,
                self.layer,
                &format!("{} → {}", explanation.source.text, output.text),
            ));
        }
        let matrix = self.matrix(explanation, output)?;
        Ok(match self.view {
            View::Lines => alignment_svg(&matrix.weights, &matrix.rows, &matrix.columns),
            View::Words => words_svg(&matrix),
            View::Matrix | View::Grid => {
                let options = HeatMapOptions { title: matrix.title, ..HeatMapOptions::default() };
                heat_map_svg(&matrix.weights, &matrix.rows, &matrix.columns, &options)
            }
        })
    }

    /// On the terminal: the output, its alignment, and one matrix.
    fn show(&self, explanation: &Explanation) -> Result<()> {
        let mut out = io::stdout().lock();
        let Some(best) = explanation.outputs.first() else { return Ok(writeln!(out)?) };
        writeln!(out, "\n  {}\n  → {}\n", explanation.source.text, best.text)?;
        writeln!(
            out,
            "  log-probability {:.3}, score {:.3}, alignment {}\n",
            best.log_probability,
            best.score,
            pharaoh(&best.alignment)
        )?;
        let matrix = self.matrix(explanation, best)?;
        let labels = Labels { rows: matrix.rows, columns: matrix.columns };
        let picture = Heatmap::new(&matrix.title, matrix.weights);
        Heatmap::write_side_by_side(
            &[picture],
            &labels,
            Style::of_stdout(),
            heatmap::stdout_width(),
            &mut out,
        )?;
        Ok(())
    }
}
