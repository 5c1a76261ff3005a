//! A translation with all that the decoder looked at in the source.

use anyhow::Result;
use heedful::data::tokenizer::Tokenizers;
use heedful::decode::SearchOptions;
use heedful::layers::{AttentionMap, Kind};
use heedful::tasks::translate::Translator;

/// How one phrase was translated.
pub(in crate::commands) struct Traced<'a> {
    pub(in crate::commands) source: &'a str,
    pub(in crate::commands) output: String,
    /// What was read, token by token.
    pub(in crate::commands) columns: Vec<String>,
    /// What was said, token by token, and the end.
    pub(in crate::commands) rows: Vec<String>,
    /// One for each decoder layer.
    pub(in crate::commands) maps: Vec<AttentionMap>,
}

impl<'a> Traced<'a> {
    /// Translates a phrase that is not blank, and watches.
    pub(in crate::commands) fn new(
        translator: &Translator,
        source: &'a str,
        options: &SearchOptions,
    ) -> Result<Traced<'a>> {
        let translation = translator.translate(&[source], options)?.remove(0);
        let output = translation.best().to_owned();
        let (read, said) = (translation.source, translation.outputs.into_iter().next());
        let said = said.map(|output| output.hypothesis.tokens).unwrap_or_default();
        let maps = translator.attend(&read, &said, options)?;
        let Tokenizers { source: reader, target: writer } = translator.tokenizers();
        let mut rows: Vec<String> = said.iter().map(|&id| label(&writer.piece(id))).collect();
        rows.push("<eos>".to_owned());
        let columns = read.iter().map(|&id| label(&reader.piece(id))).collect();
        let maps = maps.into_iter().filter(|map| map.place.kind == Kind::Cross).collect();
        Ok(Traced { source, output, columns, rows, maps })
    }
}

/// A piece as people write it: the space before a word is not shown.
fn label(piece: &str) -> String {
    match piece.strip_prefix('▁') {
        Some(word) if !word.is_empty() => word.to_owned(),
        _ => piece.to_owned(),
    }
}
