//! A translation with the cross attention of the decoder.

use anyhow::Result;
use heedful::decode::SearchOptions;
use heedful::layers::{AttentionMap, AttentionRole};
use heedful::tasks::translate::Translator;

/// A translation and its cross attention.
pub(in crate::commands) struct Trace<'a> {
    pub(in crate::commands) source: &'a str,
    pub(in crate::commands) output: String,
    /// The tokens of the source.
    pub(in crate::commands) columns: Vec<String>,
    /// The tokens of the translation, and `<eos>`.
    pub(in crate::commands) rows: Vec<String>,
    /// The cross attention of each decoder layer.
    pub(in crate::commands) maps: Vec<AttentionMap>,
}

impl<'a> Trace<'a> {
    /// Translates a phrase that is not blank, and records the attention.
    pub(in crate::commands) fn new(
        translator: &Translator,
        source: &'a str,
        options: &SearchOptions,
    ) -> Result<Trace<'a>> {
        let translation = translator.translate([source], options)?.remove(0);
        let output = translation.best().to_owned();
        let best = translation.outputs.into_iter().next();
        let target = best.map(|output| output.hypothesis.tokens).unwrap_or_default();
        let maps = translator.attend(&translation.source, &target, options)?;
        let tokenizers = translator.tokenizers();
        let mut rows: Vec<String> = target.iter().map(|&id| label(&tokenizers.target.piece(id))).collect();
        rows.push("<eos>".to_owned());
        let columns = translation.source.iter().map(|&id| label(&tokenizers.source.piece(id))).collect();
        let maps = maps.into_iter().filter(|map| map.site.role == AttentionRole::Cross).collect();
        Ok(Trace { source, output, columns, rows, maps })
    }
}

/// A piece without its word-boundary marker (▁).
fn label(piece: &str) -> String {
    match piece.strip_prefix('▁') {
        Some(word) if !word.is_empty() => word.to_owned(),
        _ => piece.to_owned(),
    }
}
