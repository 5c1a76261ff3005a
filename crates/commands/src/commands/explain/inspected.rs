//! A text in a model whose states can be recorded, as the subcommands for residual streams take it, and the
//! forms in which they write their results.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Result, anyhow, bail};
use heedful::decode::SearchOptions;
use heedful::explain::inspect::Inspected;
use heedful::plot::{Report, Table};
use heedful::store::output::OutputFile;
use heedful::tensor::Precision;
use serde::Serialize;

use super::model::{Model, task_of};
use super::output::{Format, write_picture};
use crate::long_text::{MaxTokens, refused};
use crate::machine::Machine;
use crate::output::Force;
use crate::progress::Quiet;

const FORMATS: [Format; 4] = [Format::Html, Format::Svg, Format::Png, Format::Json];

/// The model and its machine.
#[derive(clap::Args)]
pub(super) struct InspectArguments {
    /// Folder of a model of the Transformer family, of any task, or of its training run, or its package
    /// (`heedful pack`)
    model: PathBuf,
    /// Write to this file: .html is a page with picture and tables, .svg and .png are the picture, .json has
    /// the numbers [default: a table on the terminal]
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    quiet: Quiet,
    #[command(flatten)]
    max_tokens: MaxTokens,
    #[command(flatten)]
    machine: Machine,
}

/// A result in all its forms.
pub(super) struct Views<'r, T> {
    pub(super) numbers: &'r T,
    pub(super) tables: Vec<Table>,
    pub(super) svg: &'r dyn Fn() -> String,
    pub(super) report: &'r dyn Fn(&str) -> Report,
}

/// The opened model and output file.
pub(super) struct Opened {
    pub(super) model: Model,
    output: Option<OutputFile>,
    format: Option<Format>,
    pub(super) precision: Option<Precision>,
    name: String,
}

impl InspectArguments {
    /// Checks the output file, then opens the model. `work` names what is done, for messages.
    pub(super) fn open(&self, work: &str) -> Result<Opened> {
        let format = self.output.as_deref().map(|path| Format::of(path, &FORMATS)).transpose()?;
        self.machine.set_up_cpu(work, self.quiet.verbosity())?;
        let task = task_of(&self.model)?;
        let output = self.force.open_if_named(self.output.as_deref(), &[self.model.as_path()])?;
        let model = Model::open(&self.model, task, self.max_tokens.tokens, &[])?;
        let name = self.model.display().to_string();
        Ok(Opened { model, output, format, precision: self.machine.precision(), name })
    }
}

impl Opened {
    /// A text and the model's own output for it, or the given one.
    pub(super) fn text(&self, text: &str, target: Option<&str>) -> Result<Inspected<'_>> {
        if text.trim().is_empty() {
            bail!("the text is blank: give a text to explain");
        }
        self.model.inspected(text, target, self.precision)
    }

    /// Writes a result to the output file, or its tables to the terminal.
    pub(super) fn write<T: Serialize>(self, views: &Views<'_, T>) -> Result<()> {
        match (self.output, self.format) {
            (Some(file), Some(Format::Json)) => Ok(file.finish_with(&serde_json::to_vec(views.numbers)?)?),
            (Some(file), Some(Format::Html)) => {
                Ok(file.finish_with((views.report)(&self.name).to_html().as_bytes())?)
            }
            (Some(file), _) => write_picture(file, &(views.svg)()),
            (None, _) => {
                let mut out = io::stdout().lock();
                for table in &views.tables {
                    writeln!(out, "{}", table.to_markdown())?;
                }
                Ok(out.flush()?)
            }
        }
    }
}

impl Model {
    /// A text and its prediction: `target` is a translation or a label, or the model's own if not given.
    pub(super) fn inspected(
        &self,
        text: &str,
        target: Option<&str>,
        precision: Option<Precision>,
    ) -> Result<Inspected<'_>> {
        let too_long = |error| refused("the text", error, "--max-tokens N");
        Ok(match self {
            Model::Translator(translator) => {
                let limit = translator.source_limit();
                let source = limit.encode(text, |text| translator.encode(text)).map_err(too_long)?;
                let target = match target {
                    Some(target) => {
                        let limit = translator.target_limit();
                        let read = limit.encode(target, |text| translator.encode_target(text));
                        read.map_err(|error| refused("the target", error, "--max-tokens N"))?
                    }
                    None => {
                        let options = SearchOptions { compute: precision, ..SearchOptions::default() };
                        let mut found = translator.translate([text], &options)?;
                        let outputs = found.swap_remove(0).outputs;
                        let best = outputs.into_iter().next();
                        best.ok_or_else(|| anyhow!("the text has no translation"))?.hypothesis.tokens
                    }
                };
                Inspected::of_translation(translator, &source, &target, precision)?
            }
            Model::Classifier(classifier) => {
                let limit = classifier.limit();
                let ids = limit.encode(text, |text| classifier.encode(text)).map_err(too_long)?;
                let label = target.map(|name| {
                    classifier.labels().index(name).ok_or_else(|| {
                        let names = classifier.labels().names().join(", ");
                        anyhow!("the model has no label “{name}”: it has {names}")
                    })
                });
                Inspected::of_class(classifier, &ids, label.transpose()?, precision)?
            }
            Model::Generator(_) | Model::Filler(_) if target.is_some() => {
                bail!("--target is only for translators and classifiers: leave it out")
            }
            Model::Generator(generator) => {
                let limit = generator.limit();
                let ids = limit.encode(text, |text| generator.encode(text)).map_err(too_long)?;
                Inspected::of_text(generator, &ids, precision)?
            }
            Model::Filler(filler) => {
                let limit = filler.limit();
                let ids = limit.encode(text, |text| filler.encode(text)).map_err(too_long)?;
                Inspected::of_gaps(filler, &ids, precision)?
            }
        })
    }
}
