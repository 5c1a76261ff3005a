//! `heedful explain MODEL TEXT`: shows the attention weights of one or a few texts, for a model of any task.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use heedful::decode::{SearchOptions, pharaoh};
use heedful::explain::{
    AttentionMatrix, ExplainOptions, ExplainedOutput, Explanation, Granularity, LayerChoice, NamedHead,
    RawScores, WeightForm, grid_svg, page, words_svg,
};
use heedful::models::HeadName;
use heedful::plot::{HeatMapOptions, alignment_svg, heat_map_svg, with_colour_scale};
use heedful::tasks::Task;

use super::input;
use super::mask::MaskArgument;
use super::model::{Model, task_of};
use super::output::{Format, write_picture};
use crate::heatmap::{self, Heatmap, Labels, Style};
use crate::long_text::MaxTokens;
use crate::machine::Machine;
use crate::output::Force;
use crate::progress::{Bar, Quiet};

/// A page with more sentences is too large for browsers.
const MAX_SENTENCES_PER_PAGE: usize = 100;
const FORMATS: [Format; 4] = [Format::Html, Format::Svg, Format::Png, Format::Json];

#[derive(clap::Args)]
pub(super) struct SentenceArguments {
    /// Folder of a model of any task, or of its training run, or its package (`heedful pack`)
    #[arg(required = true)]
    model: Option<PathBuf>,
    /// Texts to explain (for a masked language model, with <mask> where it should predict a token); or one
    /// file with a sentence per line, which may be compressed; or - for standard input
    #[arg(value_name = "TEXT|FILE|-")]
    text: Vec<String>,
    /// Explain this translation instead of the model's own
    #[arg(long, value_name = "TEXT")]
    pub(super) target: Option<String>,
    /// Apply a custom attention mask: a file with rows of 0 and 1 as text or JSON, one row per query and one
    /// number per key; 0 masks the key. KIND is encoder, decoder, cross or pooling; only translators need it
    /// (default: decoder for language models, encoder for others). Repeatable; for a single text.
    /// Translations are searched without masks; their probabilities and attention are computed with them
    #[arg(long, value_name = "[KIND=]FILE")]
    mask: Vec<MaskArgument>,

    /// Write to this file: .html contains everything, .svg and .png one view of one sentence, .json the
    /// numbers [default: draw on the terminal]
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
    /// View in an .svg or .png
    #[arg(long, value_enum, default_value = "matrix", help_heading = "Output")]
    view: View,
    /// Rows and columns of the matrix [default: word for the views lines and words, else token]
    #[arg(long, value_enum, help_heading = "Output")]
    level: Option<LevelName>,
    /// Layer: encoder.0.self, decoder.1.self, decoder.1.cross; or encoder, decoder, cross, pooling for the
    /// layer of that kind with the sharpest attention [default: cross or pooling, else self attention; all
    /// layers in a grid]
    #[arg(long, value_name = "LAYER", help_heading = "Output")]
    layer: Option<LayerChoice>,
    /// Head: its number in the layer, counted from 0, or its full name (decoder.1.cross.2), or mean for the
    /// mean of all heads [default: mean]
    #[arg(long, value_name = "HEAD|mean", help_heading = "Output")]
    head: Option<NamedHead>,
    /// Encoding of the attention weights in .json
    #[arg(long, value_enum, default_value = "rows", help_heading = "Output")]
    weights: WeightsName,
    /// Add the scores before the softmax to a .json or .html: null for masked keys
    #[arg(long, help_heading = "Output")]
    raw_scores: bool,
    #[command(flatten)]
    quiet: Quiet,

    /// Beam size of a translator: hypotheses kept at every step; 1 is greedy [default: 4]
    #[arg(long, value_name = "N", help_heading = "Search")]
    beam: Option<usize>,
    /// Number of translations or labels of each text, best first; pictures show the best [default: 1]
    #[arg(long, value_name = "N", help_heading = "Search")]
    n_best: Option<usize>,
    /// Prune an attention head, for example encoder.0.self.3 or decoder.0.cross.3 (layers and heads
    /// count from 0); repeatable
    #[arg(long, value_name = "HEAD", help_heading = "Search")]
    pub(super) without_head: Vec<HeadName>,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    pub(super) max_tokens: MaxTokens,
    #[command(flatten)]
    machine: Machine,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum View {
    /// Heat map of one layer and head: queries × keys
    Matrix,
    /// Small heat maps of every layer × every head
    Grid,
    /// Source and translation, joined by lines
    Lines,
    /// The source once for each word of the translation, shaded by that word's attention
    Words,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LevelName {
    /// Subword tokens, the model's units
    Token,
    /// Whole words: attention is summed over the tokens of a key word and averaged over those of a query word
    Word,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum WeightsName {
    /// Lists of numbers, row by row
    Rows,
    /// Base64 of 16-bit integers: a quarter of the size
    Packed,
    /// Omitted
    None,
}

pub(super) fn run(arguments: &SentenceArguments) -> Result<()> {
    let model =
        arguments.model.as_deref().context("the folder of a model is missing: heedful explain MODEL TEXT")?;
    let format = arguments.output.as_deref().map(|path| Format::of(path, &FORMATS)).transpose()?;
    arguments.machine.set_up_cpu("searching", arguments.quiet.verbosity())?;
    let task = task_of(model)?;
    arguments.check_task(task)?;
    let options = arguments.options(task, format)?;
    let text_file = arguments.text.first().map_or(Path::new("-"), Path::new);
    let masks = arguments.mask.iter().map(|mask| mask.file().as_path());
    let inputs: Vec<&Path> = [model, text_file].into_iter().chain(masks).collect();
    let output = arguments.force.open_if_named(arguments.output.as_deref(), &inputs)?;
    let texts = input::texts(&arguments.text)?;
    arguments.check(&texts, format)?;
    if texts.iter().all(|text| text.trim().is_empty()) {
        bail!("the text is blank: give a text to explain");
    }
    let opened = Model::open(model, task, arguments.max_tokens.tokens, &arguments.without_head)?;
    let bar = Bar::with_time_left(arguments.quiet.verbosity(), texts.len());
    let explanations = opened.explain(&texts, arguments, &options, |number| {
        bar.show(number, 0.0, || format!("explaining text {}", number + 1));
    })?;
    bar.finish();
    let best = || best_output(&explanations[0]);
    match (output, format) {
        (Some(file), Some(Format::Json)) => Ok(file.finish_with(&serde_json::to_vec(&explanations)?)?),
        (Some(file), Some(Format::Html)) => {
            Ok(file.finish_with(page(&explanations, &title(model)).as_bytes())?)
        }
        (Some(file), _) => write_picture(file, &arguments.picture(&explanations[0], best()?)?),
        (None, _) => {
            // Checked for all texts first, so that an unknown layer or head is refused before anything is
            // drawn.
            let drawn = |explanation: &Explanation| {
                let best = explanation.outputs.first();
                best.map(|best| arguments.matrix(explanation, best)).transpose()
            };
            let matrices = explanations.iter().map(drawn).collect::<Result<Vec<_>>>()?;
            explanations.iter().zip(matrices).try_for_each(|(explanation, matrix)| show(explanation, matrix))
        }
    }
}

/// The best output of a text; an error if the text is blank.
fn best_output(explanation: &Explanation) -> Result<&ExplainedOutput> {
    explanation.outputs.first().context("the text is blank: give a text to explain")
}

/// The title of the page.
fn title(model: &Path) -> String {
    model.file_name().map_or_else(|| "heedful".to_owned(), |name| name.to_string_lossy().into_owned())
}

impl SentenceArguments {
    pub(super) fn n_best(&self) -> usize {
        self.n_best.unwrap_or(1)
    }

    /// Refuses flags that the model's task does not support.
    fn check_task(&self, task: Task) -> Result<()> {
        let is_translator = task == Task::Translate;
        let given = [
            ("--target", self.target.is_some() && !is_translator),
            ("--beam", self.beam.is_some() && !is_translator),
            ("--without-head", !self.without_head.is_empty() && !is_translator),
            ("--n-best", self.n_best.is_some() && !is_translator && task != Task::Classify),
        ];
        if let Some((flag, _)) = given.iter().find(|(_, is_wrong)| *is_wrong) {
            bail!("{flag} is not for {}: leave it out", task.model());
        }
        Ok(())
    }

    fn options(&self, task: Task, format: Option<Format>) -> Result<ExplainOptions> {
        let search = SearchOptions {
            beam: self.beam.unwrap_or(4),
            n_best: self.n_best(),
            compute: self.machine.precision(),
            without_heads: self.without_head.clone(),
            ..SearchOptions::default()
        };
        if task == Task::Translate {
            search.check()?;
        } else if self.n_best() == 0 {
            bail!("--n-best must be at least 1");
        }
        let form = match (format, self.weights) {
            (Some(Format::Html), _) | (Some(Format::Json), WeightsName::Packed) => WeightForm::Packed,
            (Some(Format::Json), WeightsName::None) => WeightForm::None,
            _ => WeightForm::Rows,
        };
        let masks = self.mask.iter().map(|mask| mask.read(task)).collect::<Result<_>>()?;
        let scores = if self.raw_scores { RawScores::Include } else { RawScores::Omit };
        Ok(ExplainOptions { form, scores, masks, search })
    }

    /// Refuses contradictory arguments before the model is loaded.
    fn check(&self, texts: &[String], format: Option<Format>) -> Result<()> {
        let is_picture = matches!(format, Some(Format::Svg | Format::Png));
        if is_picture && texts.len() > 1 {
            bail!(
                "a picture shows one sentence, and {} were given: write .html or .json instead",
                texts.len()
            );
        }
        if format == Some(Format::Html) && texts.len() > MAX_SENTENCES_PER_PAGE {
            bail!(
                "{} sentences are too many for one page, which holds {MAX_SENTENCES_PER_PAGE}: select some of them, or write .json",
                texts.len()
            );
        }
        if !self.mask.is_empty() && texts.len() > 1 {
            bail!("--mask is for one text, and {} were given: give one", texts.len());
        }
        if self.raw_scores && self.weights == WeightsName::None {
            bail!("--weights none also omits the scores: remove it or --raw-scores");
        }
        if self.target.is_some() && texts.len() > 1 {
            bail!("--target is the translation of one text, and {} were given: give one", texts.len());
        }
        if self.view == View::Grid && (self.head.is_some() || self.level == Some(LevelName::Word)) {
            bail!("a grid shows the tokens of all heads: remove --head and --level");
        }
        if let (Some(layer), Some(NamedHead { layer: Some(of_head), .. })) = (self.layer, self.head)
            && (layer.kind != of_head.kind || layer.layer.is_some_and(|number| Some(number) != of_head.layer))
        {
            bail!("the head of --head is not in the layer of --layer: remove one of them");
        }
        Ok(())
    }

    fn matrix(&self, explanation: &Explanation, output: &ExplainedOutput) -> Result<AttentionMatrix> {
        let level = match (self.level, self.view) {
            (Some(LevelName::Word), _) | (None, View::Lines | View::Words) => Granularity::Word,
            _ => Granularity::Token,
        };
        let named = self.head.unwrap_or_default();
        let layer = self.layer.or(named.layer).unwrap_or_else(|| LayerChoice::of(output));
        Ok(AttentionMatrix::of(explanation, output, layer, named.head, level)?)
    }

    /// The view as SVG.
    fn picture(&self, explanation: &Explanation, output: &ExplainedOutput) -> Result<String> {
        if self.view == View::Grid {
            if let Some(layer) = self.layer {
                layer.find(output)?;
            }
            let grid = grid_svg(output, self.layer, &title_of(explanation, output));
            return Ok(with_colour_scale(&grid, &HeatMapOptions::default()));
        }
        let matrix = self.matrix(explanation, output)?;
        Ok(match self.view {
            View::Lines => alignment_svg(&matrix.weights, &matrix.rows, &matrix.columns),
            View::Words => words_svg(&matrix),
            View::Matrix | View::Grid => {
                let options = HeatMapOptions { title: matrix.title, ..HeatMapOptions::default() };
                let map = heat_map_svg(&matrix.weights, &matrix.rows, &matrix.columns, &options);
                with_colour_scale(&map, &options)
            }
        })
    }
}

/// Title of a picture of all heads.
fn title_of(explanation: &Explanation, output: &ExplainedOutput) -> String {
    match explanation.source.text.as_str() {
        "" => output.text.clone(),
        source => format!("{source} → {}", output.text),
    }
}

/// Draws on the terminal: the translation, its alignment, and one matrix.
fn show(explanation: &Explanation, matrix: Option<AttentionMatrix>) -> Result<()> {
    let mut out = io::stdout().lock();
    let (Some(best), Some(matrix)) = (explanation.outputs.first(), matrix) else { return Ok(writeln!(out)?) };
    if explanation.source.text.is_empty() {
        writeln!(out, "\n  {}\n", best.text)?;
    } else {
        writeln!(out, "\n  {}\n  → {}\n", explanation.source.text, best.text)?;
    }
    let alignment = match best.alignment.is_empty() {
        true => String::new(),
        false => format!(", alignment {}", pharaoh(&best.alignment)),
    };
    writeln!(out, "  log-probability {:.3}, score {:.3}{alignment}\n", best.log_probability, best.score)?;
    let labels = Labels { rows: matrix.rows, columns: matrix.columns };
    let picture = Heatmap::new(&matrix.title, matrix.weights);
    Heatmap::write_side_by_side(&[picture], &labels, Style::of_stdout(), heatmap::stdout_width(), &mut out)?;
    Ok(())
}
