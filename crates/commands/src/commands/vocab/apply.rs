//! Applies a vocabulary: lists its pieces, encodes and decodes lines. Only data is written to standard
//! output, for scripts.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use heedful::data::corpus::{Lines, LongLines};
use heedful::data::tokenizer::CachingTokenizer;
use heedful::data::{Input, Tokenizer};
use heedful::tasks::folder::{ModelFolder, is_package};

use crate::long_text::LONGEST_LINE;
use crate::progress::Verbosity;
use crate::text_input;

/// How `--encode` prints tokens.
pub(super) enum TokenForm {
    Ids,
    Pieces,
}

/// One line for each token: id, tab, piece.
pub(super) fn show(path: &Path) -> Result<()> {
    let tokenizer = load(path)?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    for id in 0..tokenizer.size() as u32 {
        writeln!(out, "{id}\t{}", tokenizer.piece(id))?;
    }
    Ok(out.flush()?)
}

/// One line of ids or pieces, separated by spaces, for each line of text.
pub(super) fn encode(path: &Path, form: TokenForm) -> Result<()> {
    let tokenizer = load(path)?;
    let mut encoder = CachingTokenizer::new(&tokenizer);
    for_each_line(|line, _| {
        let ids = encoder.encode(line);
        let tokens: Vec<String> = match form {
            TokenForm::Ids => ids.iter().map(u32::to_string).collect(),
            TokenForm::Pieces => ids.iter().map(|&id| tokenizer.piece(id)).collect(),
        };
        Ok(tokens.join(" "))
    })
}

/// One line of text for each line of ids.
pub(super) fn decode(path: &Path) -> Result<()> {
    let tokenizer = load(path)?;
    for_each_line(|line, number| {
        let ids = line.split_whitespace().map(|word| match word.parse::<u32>() {
            Ok(id) if (id as usize) < tokenizer.size() => Ok(id),
            Ok(id) => {
                bail!("line {number}: there is no token {id}: the vocabulary has {} tokens", tokenizer.size())
            }
            Err(_) => bail!("line {number}: `{word}` is not a token id"),
        });
        Ok(tokenizer.decode(&ids.collect::<Result<Vec<u32>>>()?))
    })
}

/// Loads a file, or the tokenizer.json of a folder.
fn load(path: &Path) -> Result<Arc<Tokenizer>> {
    if path.join("config.json").exists() || is_package(path) {
        // Opening it as a model checks that the vocabulary is the one that the model was trained with.
        return Ok(ModelFolder::open(path)?.tokenizers()?.source);
    }
    let file: PathBuf = if path.is_dir() { path.join("tokenizer.json") } else { path.to_owned() };
    Ok(Arc::new(Tokenizer::load(&file)?))
}

/// Writes one line for every line of standard input and flushes it at once.
fn for_each_line(mut answer: impl FnMut(&str, u64) -> Result<String>) -> Result<()> {
    text_input::announce(Verbosity::Normal);
    let mut lines = Lines::open(&Input::Standard)?.bounded(LONGEST_LINE, LongLines::Refused);
    let mut number = 0;
    let mut out = io::stdout().lock();
    while let Some(line) = lines.next()? {
        number += 1;
        let answer = answer(line, number).context("standard input")?;
        writeln!(out, "{answer}")?;
    }
    Ok(out.flush()?)
}
