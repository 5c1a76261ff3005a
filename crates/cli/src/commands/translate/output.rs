//! Where translations go, and in what form.
//!
//! ```text
//! text                              as it is
//! with --scores, --align            text ||| score ||| 0-0 1-2 …
//! with --n-best N                   line number ||| text ||| score …
//! ```

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
use heedful::decode::pharaoh;
use heedful::store::durable;
use heedful::tasks::translate::{Output, Translation};
use serde_json::{Value, json};

use super::Arguments;

/// Takes translations in the order of their lines.
pub(super) struct Sink<'a> {
    arguments: &'a Arguments,
    place: Place,
}

enum Place {
    /// Every translation is shown when it is there.
    Standard(BufWriter<io::Stdout>),
    /// The file appears whole or not at all.
    File(PathBuf, Vec<u8>),
}

impl<'a> Sink<'a> {
    pub(super) fn open(arguments: &'a Arguments) -> Result<Sink<'a>> {
        let place = match &arguments.output {
            None => Place::Standard(BufWriter::new(io::stdout())),
            Some(path) => Place::File(path.clone(), Vec::new()),
        };
        Ok(Sink { arguments, place })
    }

    /// Writes what became of line `number`. `align` gives the alignment of an output's tokens.
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
            // Blank in, blank out.
            text.push('\n');
        } else {
            for output in &translation.outputs {
                text += &self.fields(number, output, aligned(output)?).join(" ||| ");
                text.push('\n');
            }
        }
        match &mut self.place {
            Place::Standard(out) => {
                out.write_all(text.as_bytes())?;
                out.flush()?;
            }
            Place::File(_, bytes) => bytes.extend_from_slice(text.as_bytes()),
        }
        Ok(())
    }

    /// The end: a file is written now.
    pub(super) fn finish(self) -> Result<()> {
        match self.place {
            Place::Standard(mut out) => Ok(out.flush()?),
            Place::File(path, bytes) => {
                durable::write_bytes(&path, &bytes).context("the translations are lost")
            }
        }
    }

    fn fields(&self, number: usize, output: &Output, alignment: Option<String>) -> Vec<String> {
        let is_n_best = self.arguments.n_best > 1;
        let mut fields = Vec::new();
        if is_n_best {
            fields.push(number.to_string());
        }
        // A translation is a line, whatever the model says.
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
