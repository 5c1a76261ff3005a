//! Language detection.

use serde::Serialize;
use utoipa::ToSchema;
use whatlang::{Detector, Lang};

use crate::languages;

/// A detected language.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = DetectedLanguage)]
pub(crate) struct Detected {
    /// From 0 to 100, as in LibreTranslate.
    #[schema(example = 97.5)]
    pub(crate) confidence: f64,
    /// Its code.
    #[schema(example = "en")]
    pub(crate) language: String,
}

/// The most probable language of a text; `None` for text without letters.
pub(crate) fn detect(text: &str) -> Option<Detected> {
    let info = whatlang::detect(text)?;
    let language = languages::code(info.lang())?.to_owned();
    Some(Detected { confidence: percent(info.confidence()), language })
}

/// The most probable of the given languages. Restricting the languages helps with short texts.
pub(crate) fn detect_among(text: &str, codes: &[&str]) -> Option<Detected> {
    let known: Vec<(Lang, &str)> =
        codes.iter().filter_map(|code| Some((languages::detectable(code)?, *code))).collect();
    let unrestricted = detect(text);
    if let Some(detected) = unrestricted.filter(|found| codes.contains(&found.language.as_str())) {
        return Some(detected);
    }
    let info = Detector::with_allowlist(known.iter().map(|(language, _)| *language).collect()).detect(text);
    let found = info.and_then(|info| known.iter().find(|(language, _)| *language == info.lang()));
    // The unrestricted detector found another language, so this is a guess without confidence.
    let code = found.map(|(_, code)| *code).or_else(|| codes.first().copied())?;
    Some(Detected { confidence: 0.0, language: code.to_owned() })
}

fn percent(confidence: f64) -> f64 {
    (confidence * 1000.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_detected_and_the_given_ones_are_preferred() {
        let language = |text| detect(text).map(|found| found.language);
        assert_eq!(language("这是一套自动驾驶解决方案。"), Some("zh".to_owned()));
        assert_eq!(language("The quick brown fox jumps over the lazy dog."), Some("en".to_owned()));
        assert_eq!(language("Der Hund läuft über die Straße und bellt."), Some("de".to_owned()));
        assert_eq!(language("12345"), None);
        let among = |text, codes: &[&str]| detect_among(text, codes).map(|found| found.language);
        assert_eq!(among("12345", &["fr", "en"]), Some("fr".to_owned()));
        assert_eq!(among("a dog", &["en", "zh"]), Some("en".to_owned()));
        assert_eq!(among("anything", &[]), None);
    }
}
