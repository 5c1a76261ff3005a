//! Language codes and their English names.

use whatlang::Lang;

/// For each language its code, its English name, and the detector's code if it is supported.
const LANGUAGES: &str = "\
    af Afrikaans afr, am Amharic amh, ar Arabic ara, az Azerbaijani aze, be Belarusian bel, \
    bg Bulgarian bul, bn Bengali ben, ca Catalan cat, cs Czech ces, cy Welsh cym, da Danish dan, \
    de German deu, el Greek ell, en English eng, eo Esperanto epo, es Spanish spa, et Estonian est, \
    eu Basque, fa Persian pes, fi Finnish fin, fr French fra, ga Irish, gl Galician, gu Gujarati guj, \
    he Hebrew heb, hi Hindi hin, hr Croatian hrv, hu Hungarian hun, hy Armenian hye, id Indonesian ind, \
    is Icelandic, it Italian ita, ja Japanese jpn, jv Javanese jav, ka Georgian kat, km Khmer khm, \
    kn Kannada kan, ko Korean kor, la Latin lat, lt Lithuanian lit, lv Latvian lav, mk Macedonian mkd, \
    ml Malayalam mal, mr Marathi mar, my Burmese mya, nb Norwegian nob, ne Nepali nep, nl Dutch nld, \
    pa Punjabi pan, pl Polish pol, pt Portuguese por, ro Romanian ron, ru Russian rus, si Sinhala sin, \
    sk Slovak slk, sl Slovenian slv, sn Shona sna, sr Serbian srp, sv Swedish swe, ta Tamil tam, \
    te Telugu tel, th Thai tha, tl Tagalog tgl, tr Turkish tur, uk Ukrainian ukr, ur Urdu urd, \
    uz Uzbek uzb, vi Vietnamese vie, zh Chinese cmn, zu Zulu zul";

fn languages() -> impl Iterator<Item = (&'static str, &'static str, Option<Lang>)> {
    LANGUAGES.split(", ").filter_map(|language| {
        let mut words = language.split(' ');
        Some((words.next()?, words.next()?, words.next().and_then(Lang::from_code)))
    })
}

/// The English name of a language; variants (`zh-Hans`) have the name of their language.
pub(crate) fn name(code: &str) -> Option<&'static str> {
    languages().find(|(known, ..)| *known == primary(code)).map(|(_, name, _)| name)
}

/// The English name of a language, or its code if the name is unknown.
pub(crate) fn name_or_code(code: &str) -> &str {
    name(code).unwrap_or(code)
}

/// The code of a detected language.
pub(crate) fn code(language: Lang) -> Option<&'static str> {
    languages().find(|(.., known)| *known == Some(language)).map(|(code, ..)| code)
}

/// The detector's value of a language.
pub(crate) fn detectable(code: &str) -> Option<Lang> {
    languages().find(|(known, ..)| *known == primary(code)).and_then(|(.., language)| language)
}

fn primary(code: &str) -> String {
    code.split(['-', '_']).next().unwrap_or_default().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_sorted_and_variants_have_a_name() {
        assert!(languages().is_sorted_by(|(one, ..), (next, ..)| one < next));
        assert_eq!(languages().filter(|(.., detected)| detected.is_some()).count(), 66);
        assert_eq!(name("zh-Hans"), Some("Chinese"));
        assert_eq!(name("DE"), Some("German"));
        assert_eq!(name("train"), None);
        assert_eq!(code(Lang::Cmn), Some("zh"));
    }
}
