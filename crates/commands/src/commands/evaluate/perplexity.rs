//! The perplexity of a text under a language model or, given its source, under a translator.

use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};
use heedful::data::Input;
use heedful::data::corpus::{CorpusFiles, Lines, LongLines};
use heedful::decode::SearchOptions;
use heedful::tasks::folder::ModelFolder;
use heedful::tasks::language::{Generator, TextPerplexity, TextScorer};
use heedful::tasks::translate::Translator;
use heedful::tasks::{OpenOptions, Task};
use heedful::tensor::Precision;
use serde_json::json;

use super::{Arguments, lines};
use crate::long_text::{LONGEST_LINE, refused};
use crate::progress::{Bar, line_count};

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let Some(model) = arguments.model.as_deref() else {
        bail!("--metric perplexity needs a model: add --model FOLDER");
    };
    if !arguments.references.is_empty() {
        bail!("--metric perplexity scores HYP with --model and uses no references: leave out --ref");
    }
    arguments.machine.set_up(arguments.quiet.verbosity())?;
    let text = &arguments.hypotheses;
    let bar = Bar::with_time_left(arguments.quiet.verbosity(), line_count(Some(text)));
    let opening = arguments.machine.opening();
    let task = ModelFolder::open(model)?.config.task();
    let (found, compute) = match (task, &arguments.src) {
        (Task::Language, None) => of_text(model, text, &opening, &bar)?,
        (Task::Translate, Some(source)) => of_translation(model, [source, text], &opening, &bar)?,
        (Task::Language, Some(_)) => bail!("--src is for translators: leave it out for a language model"),
        (Task::Translate, None) => {
            bail!("{} contains a translator: name the source of the text with --src FILE", model.display())
        }
        (task, _) => bail!(
            "{} contains {}, which does not compute text probabilities: name a language model or a translator",
            model.display(),
            task.model()
        ),
    };
    bar.finish();
    if found.tokens == 0 {
        bail!("{} is blank: there is no text to score", lines::name(text));
    }
    let mut out = io::stdout().lock();
    let digits = usize::from(arguments.width);
    let rounded = |value: f64| format!("{value:.digits$}").parse::<f64>().unwrap_or(value);
    if arguments.json {
        let object = json!({ "perplexity": {
            "score": rounded(found.by_token()),
            "by_token": rounded(found.by_token()),
            "by_word": rounded(found.by_word()),
            "by_byte": rounded(found.by_byte()),
            "log_probability": -found.negative_log_likelihood,
            "tokens": found.tokens,
            "words": found.words,
            "bytes": found.bytes,
            "compute": compute.to_string(),
        }});
        writeln!(out, "{object}")?;
    } else {
        writeln!(out, "perplexity = {:.digits$} by token ({} tokens)", found.by_token(), found.tokens)?;
        writeln!(out, "perplexity = {:.digits$} by word ({} words)", found.by_word(), found.words)?;
        writeln!(out, "perplexity = {:.digits$} by byte ({} bytes)", found.by_byte(), found.bytes)?;
        writeln!(out, "computed in {compute}")?;
    }
    Ok(out.flush()?)
}

fn of_text(
    model: &Path,
    text: &Path,
    opening: &OpenOptions,
    bar: &Bar,
) -> Result<(TextPerplexity, Precision)> {
    let generator = Generator::open_with(model, opening)?;
    let input = Input::new(text);
    let mut lines = Lines::open(&input)?.bounded(LONGEST_LINE, LongLines::Refused);
    let mut scorer = TextScorer::new(&generator);
    let mut number = 0;
    while let Some(line) = lines.next()? {
        number += 1;
        let encode = |text: &str| generator.encode(text);
        let tokens = match generator.ends_texts() {
            true => generator.limit().encode(line, encode).map_err(|error| {
                refused(format!("{input}, line {number}"), error, "heedful score --long cut")
            })?,
            false => encode(line),
        };
        scorer.push(line, tokens)?;
        bar.show(number, 0.0, || format!("{number} lines"));
    }
    Ok((scorer.finish()?.1, generator.compute()))
}

/// Pairs scored in one chunk.
const CHUNK: usize = 256;

fn of_translation(
    model: &Path,
    [source, target]: [&Path; 2],
    opening: &OpenOptions,
    bar: &Bar,
) -> Result<(TextPerplexity, Precision)> {
    let translator = Translator::open_with(model, opening)?;
    let options = SearchOptions::default();
    let mut pairs = CorpusFiles::parallel(source, target).pairs();
    let (mut found, mut number) = (TextPerplexity::default(), 0);
    loop {
        let mut chunk = Vec::new();
        while chunk.len() < CHUNK
            && let Some(pair) = pairs.next().transpose()?
        {
            number += 1;
            if pair.source.trim().is_empty() || pair.target.trim().is_empty() {
                continue;
            }
            let place = |file: &Path| format!("{}, line {number}", file.display());
            let ids = translator.source_limit().encode(&pair.source, |text| translator.encode(text));
            let ids = ids.map_err(|error| refused(place(source), error, "heedful score --long cut"))?;
            let target_ids =
                translator.target_limit().encode(&pair.target, |text| translator.encode_target(text));
            let target_ids =
                target_ids.map_err(|error| refused(place(target), error, "heedful score --long cut"))?;
            found.words += pair.target.split_whitespace().count() as u64;
            found.bytes += pair.target.len() as u64 + 1;
            chunk.push((ids, target_ids));
        }
        if chunk.is_empty() {
            return Ok((found, translator.compute()));
        }
        for score in
            translator.score_tokens(&chunk, &options).with_context(|| format!("up to line {number}"))?
        {
            found.negative_log_likelihood -= score.log_probability;
            found.tokens += score.tokens.len() as u64;
        }
        bar.show(number, 0.0, || format!("{number} pairs"));
    }
}
