//! BERT as a classifier (`BertForSequenceClassification`): the pooler (linear layer and tanh on the vector of
//! `[CLS]`), and a linear layer to the label scores.

use super::huggingface::Settings;
use super::importer::ParamImporter;
use super::settings::DROPOUT;
use super::{ImportError, Imported, bert};
use crate::data::labels::Labels;
use crate::data::tokenizer::Tokenizers;
use crate::exchange::names::{Linear, weight_and_bias};
use crate::layers::AttentionScore;
use crate::models::EncoderConfig;
use crate::models::transformer::StackConfig;
use crate::store::formats::FormatError;
use crate::tasks::classify::{ClassifierConfig, Pooling};

const POOLER: &str = "bert.pooler.dense";

/// The classifier with an encoder of this configuration.
pub(super) fn read(
    mut from: ParamImporter<'_>,
    settings: &Settings<'_>,
    mut stack: StackConfig,
    tokenizers: Tokenizers,
) -> Result<Imported, ImportError> {
    let kind = settings.text("problem_type", "single_label_classification")?;
    if kind != "single_label_classification" {
        return Err(settings.unsupported(format!("`problem_type`: `{kind}`")).into());
    }
    let d = stack.d_model;
    let [count, _] = from.shape("classifier.weight")?;
    let names = names(settings, count)?;
    bert::gather(&mut from, &mut stack)?;
    from.linear("pooler", Linear::OutputsFirst, &[weight_and_bias(POOLER)], [d, d])?;
    // heedful sorts labels by name.
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_key(|&label| &names[label]);
    let rows = from.tensor("classifier.weight", &[count, d])?.values();
    let rows: Vec<f32> = order.iter().flat_map(|&label| rows[label * d..(label + 1) * d].to_vec()).collect();
    from.add("labels.weight", [count, d], &rows);
    let bias = from.tensor("classifier.bias", &[count])?.values();
    let bias: Vec<f32> = order.iter().map(|&label| bias[label]).collect();
    from.add("labels.bias", [1, count], &bias);
    from.ignore(|name| name.ends_with("position_ids"));
    let labels = Labels::of(order.iter().map(|&label| names[label].clone()).collect());
    let invalid = || settings.unsupported("`id2label` with an empty or duplicate name".to_owned());
    let labels = labels.ok_or_else(invalid)?;
    let config = ClassifierConfig {
        labels: count,
        pooling: Pooling::First,
        pooling_score: AttentionScore::Additive,
        pooler: true,
        label_bias: true,
        dropout: DROPOUT.residual,
        label_smoothing: 0.0,
        encoder: EncoderConfig::Transformer(stack),
    };
    let origin = "\nA BERT classifier of Hugging Face.\n".to_owned();
    let weights = from.finish()?;
    Ok(Imported {
        config: config.into(),
        tokenizers,
        labels: Some(labels),
        languages: None,
        origin,
        notes: Vec::new(),
        pieces: Vec::new(),
        weights,
    })
}

/// The names of the labels by index: `id2label`, or Hugging Face's default names.
fn names(settings: &Settings<'_>, count: usize) -> Result<Vec<String>, FormatError> {
    let Some(named) = settings.value("id2label") else {
        return Ok((0..count).map(|label| format!("LABEL_{label}")).collect());
    };
    let name = |label: usize| named.get(label.to_string()).and_then(|name| name.as_str()).map(str::to_owned);
    let names: Option<Vec<String>> = (0..count).map(name).collect();
    match names.filter(|_| named.as_object().is_some_and(|named| named.len() == count)) {
        Some(names) => Ok(names),
        None => Err(settings.unsupported(format!("`id2label` that does not name each of {count} labels"))),
    }
}
