//! Codes of languages and their names in English.

use whatlang::Lang;

/// Codes that models are named by, with the detector's name for those that it knows.
const LANGUAGES: [(&str, &str, Option<Lang>); 70] = [
    ("af", "Afrikaans", Some(Lang::Afr)),
    ("am", "Amharic", Some(Lang::Amh)),
    ("ar", "Arabic", Some(Lang::Ara)),
    ("az", "Azerbaijani", Some(Lang::Aze)),
    ("be", "Belarusian", Some(Lang::Bel)),
    ("bg", "Bulgarian", Some(Lang::Bul)),
    ("bn", "Bengali", Some(Lang::Ben)),
    ("ca", "Catalan", Some(Lang::Cat)),
    ("cs", "Czech", Some(Lang::Ces)),
    ("cy", "Welsh", Some(Lang::Cym)),
    ("da", "Danish", Some(Lang::Dan)),
    ("de", "German", Some(Lang::Deu)),
    ("el", "Greek", Some(Lang::Ell)),
    ("en", "English", Some(Lang::Eng)),
    ("eo", "Esperanto", Some(Lang::Epo)),
    ("es", "Spanish", Some(Lang::Spa)),
    ("et", "Estonian", Some(Lang::Est)),
    ("eu", "Basque", None),
    ("fa", "Persian", Some(Lang::Pes)),
    ("fi", "Finnish", Some(Lang::Fin)),
    ("fr", "French", Some(Lang::Fra)),
    ("ga", "Irish", None),
    ("gl", "Galician", None),
    ("gu", "Gujarati", Some(Lang::Guj)),
    ("he", "Hebrew", Some(Lang::Heb)),
    ("hi", "Hindi", Some(Lang::Hin)),
    ("hr", "Croatian", Some(Lang::Hrv)),
    ("hu", "Hungarian", Some(Lang::Hun)),
    ("hy", "Armenian", Some(Lang::Hye)),
    ("id", "Indonesian", Some(Lang::Ind)),
    ("is", "Icelandic", None),
    ("it", "Italian", Some(Lang::Ita)),
    ("ja", "Japanese", Some(Lang::Jpn)),
    ("jv", "Javanese", Some(Lang::Jav)),
    ("ka", "Georgian", Some(Lang::Kat)),
    ("km", "Khmer", Some(Lang::Khm)),
    ("kn", "Kannada", Some(Lang::Kan)),
    ("ko", "Korean", Some(Lang::Kor)),
    ("la", "Latin", Some(Lang::Lat)),
    ("lt", "Lithuanian", Some(Lang::Lit)),
    ("lv", "Latvian", Some(Lang::Lav)),
    ("mk", "Macedonian", Some(Lang::Mkd)),
    ("ml", "Malayalam", Some(Lang::Mal)),
    ("mr", "Marathi", Some(Lang::Mar)),
    ("my", "Burmese", Some(Lang::Mya)),
    ("nb", "Norwegian", Some(Lang::Nob)),
    ("ne", "Nepali", Some(Lang::Nep)),
    ("nl", "Dutch", Some(Lang::Nld)),
    ("pa", "Punjabi", Some(Lang::Pan)),
    ("pl", "Polish", Some(Lang::Pol)),
    ("pt", "Portuguese", Some(Lang::Por)),
    ("ro", "Romanian", Some(Lang::Ron)),
    ("ru", "Russian", Some(Lang::Rus)),
    ("si", "Sinhala", Some(Lang::Sin)),
    ("sk", "Slovak", Some(Lang::Slk)),
    ("sl", "Slovenian", Some(Lang::Slv)),
    ("sn", "Shona", Some(Lang::Sna)),
    ("sr", "Serbian", Some(Lang::Srp)),
    ("sv", "Swedish", Some(Lang::Swe)),
    ("ta", "Tamil", Some(Lang::Tam)),
    ("te", "Telugu", Some(Lang::Tel)),
    ("th", "Thai", Some(Lang::Tha)),
    ("tl", "Tagalog", Some(Lang::Tgl)),
    ("tr", "Turkish", Some(Lang::Tur)),
    ("uk", "Ukrainian", Some(Lang::Ukr)),
    ("ur", "Urdu", Some(Lang::Urd)),
    ("uz", "Uzbek", Some(Lang::Uzb)),
    ("vi", "Vietnamese", Some(Lang::Vie)),
    ("zh", "Chinese", Some(Lang::Cmn)),
    ("zu", "Zulu", Some(Lang::Zul)),
];

/// The English name of a language; variants (`zh-Hans`) have that of their language.
pub(crate) fn name(code: &str) -> Option<&'static str> {
    LANGUAGES.iter().find(|(known, ..)| *known == primary(code)).map(|(_, name, _)| *name)
}

/// The English name of a language, or its code if it has none here.
pub(crate) fn name_or_code(code: &str) -> &str {
    name(code).unwrap_or(code)
}

/// The code of a language that was detected.
pub(crate) fn code(language: Lang) -> Option<&'static str> {
    LANGUAGES.iter().find(|(.., known)| *known == Some(language)).map(|(code, ..)| *code)
}

/// The detector's name for a language.
pub(crate) fn detectable(code: &str) -> Option<Lang> {
    LANGUAGES.iter().find(|(known, ..)| *known == primary(code)).and_then(|(.., language)| *language)
}

fn primary(code: &str) -> String {
    code.split(['-', '_']).next().unwrap_or_default().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_sorted_and_variants_have_a_name() {
        assert!(LANGUAGES.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!(name("zh-Hans"), Some("Chinese"));
        assert_eq!(name("DE"), Some("German"));
        assert_eq!(name("train"), None);
        assert_eq!(code(Lang::Cmn), Some("zh"));
    }
}
