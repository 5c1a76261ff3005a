//! Writes translations to standard output or to a file.
//!
//! ```text
//! text                              by default
//! text ||| score ||| 0-0 1-2 …      with --scores, --align
//! line ||| text ||| score …         with --n-best N; lines count from 0
//! ```

use std::io::{self, BufWriter, Write};

use anyhow::{Context, Result};
use heedful::decode::pharaoh;
use heedful::store::output::Output as OutputFile;
use heedful::tasks::translate::{Output, Translation};
use serde_json::{Value, json};

use super::Arguments;

/// Writes translations in the order of their lines.
pub(super) struct OutputWriter<'a> {
    arguments: &'a Arguments,
    destination: Destination,
}

enum Destination {
    /// Every translation is written at once.
    Standard(BufWriter<io::Stdout>),
    /// It appears as a whole at the end.
    File(OutputFile),
}

impl<'a> OutputWriter<'a> {
    pub(super) fn open(arguments: &'a Arguments) -> Result<OutputWriter<'a>> {
        let destination = match &arguments.output {
            None => Destination::Standard(BufWriter::new(io::stdout())),
            Some(path) => Destination::File(arguments.force.open(path, &arguments.inputs())?),
        };
        Ok(OutputWriter { arguments, destination })
    }

    /// Writes the translation of line `number`. `align` computes the alignment of an output's tokens.
    pub(super) fn write(
        &mut self,
        number: usize,
        translation: &Translation,
        align: impl Fn(&[u32]) -> Result<Vec<(usize, usize)>>,
    ) -> Result<()> {
        let aligned = |output: &Output| -> Result<Option<String>> {
            if !self.arguments.align {
                return Ok(None);
            }
            Ok(Some(pharaoh(&align(&output.hypothesis.tokens)?)))
        };
        let mut text = String::new();
        if self.arguments.json {
            let outputs = translation.outputs.iter().map(|output| Ok(object(output, aligned(output)?)));
            let outputs: Vec<Value> = outputs.collect::<Result<_>>()?;
            text += &format!("{}\n", json!({ "line": number + 1, "translations": outputs }));
        } else if translation.outputs.is_empty() {
            // A blank line stays blank.
            text.push('\n');
        } else {
            for output in &translation.outputs {
                text += &self.fields(number, output, aligned(output)?).join(" ||| ");
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

    fn fields(&self, number: usize, output: &Output, alignment: Option<String>) -> Vec<String> {
        let is_n_best = self.arguments.n_best > 1;
        let mut fields = Vec::new();
        if is_n_best {
            fields.push(number.to_string());
        }
        // One line for each translation, even if the model generates a line break.
        fields.push(output.text.replace(['\n', '\r'], " "));
        if is_n_best || self.arguments.scores {
            fields.push(format!("{:.6}", output.hypothesis.score));
        }
        fields.extend(alignment);
        fields
    }
}

fn object(output: &Output, alignment: Option<String>) -> Value {
    let mut object = json!({
        "text": output.text,
        "score": output.hypothesis.score,
        "log_probability": output.hypothesis.log_probability,
    });
    if let Some(alignment) = alignment {
        object["alignment"] = alignment.into();
    }
    object
}
