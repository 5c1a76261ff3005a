//! Output lines of translations.
//!
//! ```text
//! text                              by default
//! text ||| score ||| 0-0 1-2 …      with --scores, --align
//! line ||| text ||| score …         with --n-best N; lines count from 0
//! ```

use anyhow::Result;
use heedful::decode::{SearchOptions, pharaoh};
use heedful::tasks::translate::{JoinedOutput, TranslatedText, Translator};
use serde_json::{Value, json};

use super::Arguments;
use crate::results::Results;

/// Writes translations in the order of their lines.
pub(super) struct OutputWriter<'a> {
    pub(super) arguments: &'a Arguments,
    pub(super) translator: &'a Translator,
    pub(super) options: &'a SearchOptions,
    pub(super) results: Results,
}

impl OutputWriter<'_> {
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
        self.results.add(&text)?;
        self.results.flush()
    }

    /// Completes the output file, if there is one.
    pub(super) fn finish(self) -> Result<()> {
        self.results.finish("translations")
    }

    fn alignment(&self, output: &JoinedOutput<'_>) -> Result<Option<String>> {
        if !self.arguments.align {
            return Ok(None);
        }
        Ok(Some(pharaoh(&output.align(self.translator, self.options)?)))
    }

    /// The columns of an output. A blank line gets all columns: its translation has probability 1, so its
    /// score is 0.
    fn fields(&self, number: usize, output: Option<&JoinedOutput<'_>>) -> Result<Vec<String>> {
        let is_n_best = self.arguments.n_best > 1;
        let mut fields = Vec::new();
        if is_n_best {
            fields.push(number.to_string());
        }
        // One line for each translation, even if the model generates a line break.
        fields.push(output.map_or_else(String::new, |output| output.text.replace(['\n', '\r'], " ")));
        if self.arguments.prints_scores() {
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
