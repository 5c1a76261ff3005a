//! Writes translations to standard output or to a file.
//!
//! ```text
//! text                              by default
//! text ||| score ||| 0-0 1-2 …      with --scores, --align
//! line ||| text ||| score …         with --n-best N; lines count from 0
//! ```

use std::io::{self, BufWriter, Write};

use anyhow::{Context, Result};
use heedful::decode::{SearchOptions, pharaoh};
use heedful::store::output::Output as OutputFile;
use heedful::tasks::translate::{JoinedOutput, TranslatedText, Translator};
use serde_json::{Value, json};

use super::Arguments;

/// Writes translations in the order of their lines.
pub(super) struct OutputWriter<'a> {
    arguments: &'a Arguments,
    translator: &'a Translator,
    options: &'a SearchOptions,
    destination: Destination,
}

/// Where translations go. It is opened before a model is.
pub(super) enum Destination {
    /// Every translation is written at once.
    Standard(BufWriter<io::Stdout>),
    /// It appears as a whole at the end.
    File(OutputFile),
}

impl Destination {
    pub(super) fn open(arguments: &Arguments) -> Result<Destination> {
        let file = arguments.force.open_if_named(arguments.output.as_deref(), &arguments.inputs())?;
        Ok(file.map_or_else(|| Destination::Standard(BufWriter::new(io::stdout())), Destination::File))
    }
}

impl<'a> OutputWriter<'a> {
    pub(super) fn new(
        arguments: &'a Arguments,
        destination: Destination,
        translator: &'a Translator,
        options: &'a SearchOptions,
    ) -> OutputWriter<'a> {
        OutputWriter { arguments, translator, options, destination }
    }

    /// Writes the translations of line `number`.
    pub(super) fn write(&mut self, number: usize, line: &TranslatedText) -> Result<()> {
        let outputs = line.outputs(self.options);
        let mut text = String::new();
        if self.arguments.json {
            let outputs = outputs.iter().map(|output| Ok(object(output, self.alignment(output)?)));
            let outputs: Vec<Value> = outputs.collect::<Result<_>>()?;
            text += &format!("{}\n", json!({ "line": number + 1, "translations": outputs }));
        } else {
            let fields = |output| self.fields(number, output);
            let mut rows = outputs.iter().map(|output| fields(Some(output))).collect::<Result<Vec<_>>>()?;
            if rows.is_empty() {
                rows.push(fields(None)?);
            }
            for row in rows {
                text += &row.join(" ||| ");
                text.push('\n');
            }
        }
        match &mut self.destination {
            Destination::Standard(out) => {
                out.write_all(text.as_bytes())?;
                out.flush()?;
            }
            Destination::File(file) => file.add(text.as_bytes())?,
        }
        Ok(())
    }

    /// Writes the file, if there is one.
    pub(super) fn finish(self) -> Result<()> {
        match self.destination {
            Destination::Standard(mut out) => Ok(out.flush()?),
            Destination::File(file) => file.finish().context("the translations could not be saved"),
        }
    }

    fn alignment(&self, output: &JoinedOutput<'_>) -> Result<Option<String>> {
        if !self.arguments.align {
            return Ok(None);
        }
        Ok(Some(pharaoh(&output.align(self.translator, self.options)?)))
    }

    /// The columns of an output. A blank line stays blank, with all its columns: its translation is certain, so the
    /// logarithm of its probability is 0.
    fn fields(&self, number: usize, output: Option<&JoinedOutput<'_>>) -> Result<Vec<String>> {
        let is_n_best = self.arguments.n_best > 1;
        let mut fields = Vec::new();
        if is_n_best {
            fields.push(number.to_string());
        }
        // One line for each translation, even if the model generates a line break.
        fields.push(output.map_or_else(String::new, |output| output.text.replace(['\n', '\r'], " ")));
        if is_n_best || self.arguments.scores {
            fields.push(format!("{:.6}", output.map_or(0.0, |output| output.score)));
        }
        if self.arguments.align {
            let alignment = output.map_or(Ok(None), |output| self.alignment(output))?;
            fields.push(alignment.unwrap_or_default());
        }
        Ok(fields)
    }
}

fn object(output: &JoinedOutput<'_>, alignment: Option<String>) -> Value {
    let mut object = json!({
        "text": output.text,
        "score": output.score,
        "log_probability": output.log_probability,
    });
    if let Some(alignment) = alignment {
        object["alignment"] = alignment.into();
    }
    object
}
