//! The normalization steps of a foreign vocabulary.

use serde_json::Value;
use tokenizers::normalizers::NormalizerWrapper;
use tokenizers::{NormalizedString, Normalizer};

use super::charsmap::Charsmap;
use super::piece_format::META;

/// The spaces that SentencePiece removes: those at both ends, and all but one of several. A single pattern,
/// so that the `tokenizers` Python package does the same.
pub(in crate::data::tokenizer) const EXTRA_SPACES: &str = r"\A +| +\z| +(?= )";
/// The trailing `▁` that SentencePiece then removes, including those of the text itself.
pub(in crate::data::tokenizer) const LAST_SPACES: &str = r"▁+\z";
/// Several spaces, without the ends, as Hugging Face writes it.
const SEVERAL_SPACES: &str = " {2,}";
/// Maximum number of steps, which bounds the growth of a text.
const MAX_STEPS: usize = 16;

pub(super) enum Step {
    Charsmap(Charsmap),
    ExtraSpaces,
    LastSpaces,
    Prepend(String),
    /// Replaces every occurrence of the first by the second, which has no more characters.
    Replace(String, String),
    Other(Box<NormalizerWrapper>),
}

/// The steps of a normalizer; an error names what heedful does not support.
pub(super) fn steps(normalizer: &Value) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    collect(normalizer, &mut steps)?;
    Ok(steps)
}

fn collect(part: &Value, steps: &mut Vec<Step>) -> Result<(), String> {
    if part.is_null() {
        return Ok(());
    }
    if steps.len() == MAX_STEPS {
        return Err(format!("it normalizes in more than {MAX_STEPS} steps"));
    }
    let kind = part["type"].as_str().unwrap_or_default();
    let text = |key: &str| part[key].as_str().map(str::to_owned);
    let unreadable = || format!("its normalizer `{kind}` cannot be read");
    steps.push(match kind {
        "Sequence" => {
            let parts = part["normalizers"].as_array().ok_or_else(unreadable)?;
            return parts.iter().try_for_each(|part| collect(part, steps));
        }
        "Precompiled" => {
            let bytes =
                text("precompiled_charsmap").and_then(|coded| decoded(&coded)).ok_or_else(unreadable)?;
            Step::Charsmap(Charsmap::read(&bytes)?)
        }
        "Prepend" => Step::Prepend(text("prepend").filter(|text| text.len() <= 64).ok_or_else(unreadable)?),
        "Replace" => {
            let content = text("content").ok_or_else(unreadable)?;
            match (part["pattern"]["String"].as_str(), part["pattern"]["Regex"].as_str()) {
                (Some(pattern), None)
                    if !pattern.is_empty() && content.chars().count() <= pattern.chars().count() =>
                {
                    Step::Replace(pattern.to_owned(), content)
                }
                (None, Some(EXTRA_SPACES)) if content.is_empty() => Step::ExtraSpaces,
                (None, Some(LAST_SPACES)) if content.is_empty() => Step::LastSpaces,
                (None, Some(SEVERAL_SPACES)) if content.chars().count() <= 1 => known(part)?,
                _ => return Err(format!("it replaces text by a pattern of its own ({})", part["pattern"])),
            }
        }
        "BertNormalizer" | "Strip" | "StripAccents" | "NFC" | "NFD" | "NFKC" | "NFKD" | "Lowercase"
        | "Nmt" => known(part)?,
        _ => return Err(format!("it has an unknown normalizer ({kind:?})")),
    });
    Ok(())
}

fn known(part: &Value) -> Result<Step, String> {
    let read = serde_json::from_value(part.clone());
    Ok(Step::Other(Box::new(read.map_err(|error| format!("its normalizer cannot be read ({error})"))?)))
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.decode(text).ok()
}

/// Whether a text is at the start of the input or continues other text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Position {
    TextStart,
    Continuation,
}

/// The normalized text.
pub(super) fn normalized(steps: &[Step], text: &str, position: Position) -> String {
    let mut text = text.to_owned();
    for step in steps {
        text = match step {
            Step::Charsmap(table) => table.normalize(&text),
            Step::ExtraSpaces => without_extra_spaces(&text),
            Step::LastSpaces => text.trim_end_matches(META).to_owned(),
            Step::Prepend(first) if !text.is_empty() && position == Position::TextStart => {
                format!("{first}{text}")
            }
            Step::Prepend(_) => text,
            Step::Replace(from, to) => text.replace(from, to),
            Step::Other(normalizer) => {
                let mut normalized = NormalizedString::from(text.as_str());
                // The supported normalizers cannot fail.
                match normalizer.normalize(&mut normalized) {
                    Ok(()) => normalized.get().to_owned(),
                    Err(_) => text,
                }
            }
        };
    }
    text
}

fn without_extra_spaces(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn steps_are_applied_in_order() {
        let pattern = |regex: &str| json!({"type": "Replace", "pattern": {"Regex": regex}, "content": ""});
        let sequence = json!({"type": "Sequence", "normalizers": [
            {"type": "Lowercase"}, pattern(EXTRA_SPACES), {"type": "Prepend", "prepend": "▁"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}, pattern(LAST_SPACES)]});
        let read = steps(&sequence).expect("known steps");
        assert_eq!(normalized(&read, "  A  b   C ", Position::TextStart), "▁a▁b▁c");
        assert_eq!(normalized(&read, "a", Position::Continuation), "a");
        assert_eq!(normalized(&read, "   ", Position::TextStart), "");
        // The crate gives the same result for the same file.
        let crates: NormalizerWrapper = serde_json::from_value(sequence).expect("known steps");
        for text in ["  A  b   C ", "a", "   ", "", " x", "x  ", "a b", "a ▁ ", "▁", "a▁b\n c"] {
            let mut other = NormalizedString::from(text);
            crates.normalize(&mut other).expect("known steps");
            assert_eq!(normalized(&read, text, Position::TextStart), other.get(), "{text:?}");
        }
    }

    #[test]
    fn growing_and_unknown_normalizers_are_an_error() {
        let replace = |pattern: Value, content: &str| json!({"type": "Replace", "pattern": pattern, "content": content});
        for part in [
            replace(json!({"String": "a"}), "aa"),
            replace(json!({"String": ""}), ""),
            replace(json!({"Regex": "(a+)+$"}), ""),
            json!({"type": "Unheard"}),
            json!({"type": "Precompiled", "precompiled_charsmap": "/////w=="}),
            json!({"type": "Sequence", "normalizers": vec![json!({"type": "NFC"}); 17]}),
        ] {
            assert!(steps(&part).is_err(), "{part}");
        }
    }
}
