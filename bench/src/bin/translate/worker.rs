//! Our side of the race: answers the requests that `peers/translate.py` describes.

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use heedful::data::shortlist::Shortlist;
use heedful::decode::{MaxLength, SearchOptions, search};
use heedful::tasks::translate::Translator;
use heedful::tensor::Precision;
use serde_json::{Value, json};

use super::model::VOCABULARY;
use super::work;

/// Answers until the input ends.
pub(super) fn serve() -> Result<()> {
    let mut open = HashMap::new();
    for line in std::io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line?)?;
        let answer =
            answer(&request, &mut open).unwrap_or_else(|error| json!({ "error": format!("{error:#}") }));
        let mut out = std::io::stdout().lock();
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}

/// Models by compute type.
type Open = HashMap<String, Translator>;

fn answer(request: &Value, open: &mut Open) -> Result<Value> {
    let compute = || request["compute"].as_str().context("no compute type in the request");
    match request["op"].as_str().unwrap_or_default() {
        "open" => {
            let start = Instant::now();
            let folder = request["folder"].as_str().context("no folder in the request")?;
            open.insert(compute()?.to_owned(), Translator::open(Path::new(folder))?);
            Ok(json!({ "seconds": start.elapsed().as_secs_f64() }))
        }
        "translate" => translate(request, open.get(compute()?).context("no model is open")?),
        other => bail!("unknown operation {other:?}"),
    }
}

fn translate(request: &Value, translator: &Translator) -> Result<Value> {
    let whole = |key: &str| request[key].as_u64().map(|n| n as usize).with_context(|| format!("no {key}"));
    let number = |key: &str| request[key].as_f64().with_context(|| format!("no {key}"));
    let batches: Vec<Vec<Vec<u32>>> = serde_json::from_value(request["batches"].clone())?;
    let options = SearchOptions {
        beam: whole("beam")?,
        length_penalty: number("alpha")?,
        min_length: whole("shortest")?,
        max_length: MaxLength::Absolute(whole("longest")?),
        compute: Some(precision(&request["compute"])?),
        shortlist: (request["lists"] == true).then(|| shortlist(translator)),
        // A batch is decoded in one piece, a file in batches of the default size.
        batch_tokens: (request["file"] != true).then_some(1 << 20),
        ..SearchOptions::default()
    };
    let seconds = number("seconds")?;
    let (begin, mut times, mut outputs) = (Instant::now(), Vec::new(), Vec::new());
    while times.is_empty() || begin.elapsed().as_secs_f64() < seconds {
        outputs.clear();
        for batch in &batches {
            let start = Instant::now();
            let found = search(translator.model(), batch, &options)?;
            times.push(start.elapsed().as_secs_f64());
            outputs.extend(found.into_iter().map(|mut found| found.remove(0).tokens));
        }
    }
    let tokens: usize = outputs.iter().map(Vec::len).sum();
    if request["outputs"] != true {
        outputs.clear();
    }
    Ok(json!({ "times": times, "tokens": tokens, "outputs": outputs }))
}

/// The model's shortlist; a model with random weights has none in its folder.
fn shortlist(translator: &Translator) -> Arc<Shortlist> {
    translator.shortlist().cloned().unwrap_or_else(|| Arc::new(work::shortlist(VOCABULARY)))
}

fn precision(name: &Value) -> Result<Precision> {
    let known = [Precision::F32, Precision::Bf16, Precision::Int8];
    known
        .into_iter()
        .find(|known| *name == known.to_string())
        .with_context(|| format!("unknown compute type {name}"))
}
