//! One line of `metrics.jsonl`.
//!
//! ```text
//! {"step":200,"seconds":12.5,"loss":2.31,"learning_rate":0.0021}
//! {"step":500,"seconds":31.0,"valid_bleu":38.02,"samples":[{"source":"…","reference":"…","output":"…"}]}
//! {"step":800,"seconds":50.1,"ending":"all steps are done"}
//! ```
//!
//! JSON has no NaN and no infinity: they are written as `null` and read as NaN, so that the record of a
//! diverged run is readable.

use serde_json::{Map, Value};

use super::StepLine;
use crate::metrics::Measure;
use crate::plot::SampleHistory;
use crate::tasks::validation::Sample;

/// The key of [`Record::ending`].
pub const ENDING: &str = "ending";

/// The measurements of one step.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// Updates so far.
    pub step: u64,
    /// Seconds of training so far over all sessions.
    pub seconds: f64,
    /// The values, in the order of writing.
    pub values: Vec<(Measure, f64)>,
    /// The model's outputs for a few sentences.
    pub samples: Vec<Sample>,
    /// Why the run ended, if it did. A resumed run continues the file after it.
    pub ending: Option<String>,
}

impl Record {
    /// A record without values.
    pub fn new(step: u64, seconds: f64) -> Record {
        Record { step, seconds, ..Record::default() }
    }

    /// Adds a value.
    pub fn with(mut self, measure: Measure, value: f64) -> Record {
        self.values.push((measure, value));
        self
    }

    /// The value of a measure.
    pub fn value(&self, measure: Measure) -> Option<f64> {
        self.values.iter().find(|(known, _)| *known == measure).map(|&(_, value)| value)
    }
}

impl StepLine for Record {
    fn step(&self) -> u64 {
        self.step
    }

    fn to_json(&self) -> String {
        let mut line = format!("{{\"step\":{},\"seconds\":{}", self.step, number(self.seconds));
        for (measure, value) in &self.values {
            line += &format!(",\"{measure}\":{}", number(*value));
        }
        if !self.samples.is_empty() {
            let samples: Vec<String> = self.samples.iter().map(sample_to_json).collect();
            line += &format!(",\"samples\":[{}]", samples.join(","));
        }
        if let Some(ending) = &self.ending {
            line += &format!(",\"{ENDING}\":{}", Value::from(ending.as_str()));
        }
        line + "}"
    }

    fn from_json(line: &str) -> Result<Record, String> {
        let value: Value = serde_json::from_str(line).map_err(|error| format!("not JSON: {error}"))?;
        let Value::Object(mut object) = value else { return Err("not a JSON object".to_owned()) };
        let step = object.remove("step").and_then(|step| step.as_u64());
        let step = step.ok_or("\"step\" is missing or not a whole number")?;
        let seconds = object.remove("seconds").and_then(|seconds| seconds.as_f64());
        let seconds = seconds.ok_or("\"seconds\" is missing or not a number")?;
        let samples = match object.remove("samples") {
            None => Vec::new(),
            Some(Value::Array(samples)) => samples.iter().map(sample_from_json).collect::<Result<_, _>>()?,
            Some(_) => return Err("\"samples\" is not a list".to_owned()),
        };
        let ending = object.remove(ENDING).and_then(|ending| ending.as_str().map(str::to_owned));
        Ok(Record { step, seconds, values: numbers(object)?, samples, ending })
    }
}

fn sample_to_json(sample: &Sample) -> String {
    let text = |text: &str| Value::from(text).to_string();
    format!(
        "{{\"source\":{},\"reference\":{},\"output\":{}}}",
        text(&sample.source),
        text(&sample.reference),
        text(&sample.output)
    )
}

fn sample_from_json(value: &Value) -> Result<Sample, String> {
    let text = |name: &str| match value.get(name) {
        Some(Value::String(text)) => Ok(text.clone()),
        _ => Err(format!("a sample has no text under \"{name}\"")),
    };
    Ok(Sample { source: text("source")?, reference: text("reference")?, output: text("output")? })
}

/// The values of one measure, with their steps.
pub fn series(records: &[Record], measure: Measure) -> Vec<(f64, f64)> {
    let point = |record: &Record| record.value(measure).map(|value| (record.step as f64, value));
    records.iter().filter_map(point).collect()
}

/// The outputs for each sampled sentence over the steps, in the order of first appearance.
pub fn sample_histories(records: &[Record]) -> Vec<SampleHistory> {
    let mut histories: Vec<SampleHistory> = Vec::new();
    for record in records {
        for Sample { source, reference, output } in &record.samples {
            let written = (record.step, output.clone());
            match histories.iter_mut().find(|known| known.source == *source && known.reference == *reference)
            {
                Some(history) => history.outputs.push(written),
                None => histories.push(SampleHistory {
                    source: source.clone(),
                    reference: reference.clone(),
                    outputs: vec![written],
                }),
            }
        }
    }
    histories
}

fn number(value: f64) -> Value {
    serde_json::Number::from_f64(value).map_or(Value::Null, Value::Number)
}

/// Unknown keys are skipped: other programs may write to the same file.
fn numbers(object: Map<String, Value>) -> Result<Vec<(Measure, f64)>, String> {
    let number = |(name, value): (String, Value)| {
        let measure = Measure::from_key(&name)?;
        Some(match value {
            Value::Null => Ok((measure, f64::NAN)),
            Value::Number(number) => number
                .as_f64()
                .map(|value| (measure, value))
                .ok_or_else(|| format!("\"{name}\" is too large")),
            _ => Err(format!("\"{name}\" is not a number")),
        })
    };
    object.into_iter().filter_map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_one_sentence_become_its_history() {
        let sampled = |step, source: &str, output: &str| {
            let sample = Sample { source: source.to_owned(), output: output.to_owned(), ..Sample::default() };
            Record { samples: vec![sample], ..Record::new(step, 0.0) }
        };
        let histories = sample_histories(&[sampled(1, "a", "x"), sampled(2, "b", "y"), sampled(3, "a", "z")]);
        assert_eq!(histories.len(), 2);
        assert_eq!(histories[0].outputs, [(1, "x".to_owned()), (3, "z".to_owned())]);
    }
}
