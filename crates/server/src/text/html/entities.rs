//! Character references: decoded for models, encoded for browsers.

/// Names of consecutive characters, with the code of the first one; `-` is a character without a name.
const CONSECUTIVE: [(u32, &str); 4] = [
    (
        0xa0,
        "nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute \
         micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig \
         Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times \
         Oslash Ugrave Uacute Ucirc Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave \
         eacute ecirc euml igrave iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave \
         uacute ucirc uuml yacute thorn yuml",
    ),
    (
        0x391,
        "Alpha Beta Gamma Delta Epsilon Zeta Eta Theta Iota Kappa Lambda Mu Nu Xi Omicron Pi Rho - Sigma Tau Upsilon \
         Phi Chi Psi Omega - - - - - - - alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi \
         omicron pi rho sigmaf sigma tau upsilon phi chi psi omega",
    ),
    (0x2190, "larr uarr rarr darr harr"),
    (0x2020, "dagger Dagger bull - - - hellip"),
];

/// Other names, each before its character.
const NAMED: &str = "\
    amp & lt < gt > quot \" apos ' ndash – mdash — lsquo ‘ rsquo ’ sbquo ‚ ldquo “ rdquo ” bdquo „ \
    lsaquo ‹ rsaquo › euro € trade ™ permil ‰ prime ′ Prime ″ OElig Œ oelig œ Scaron Š scaron š Yuml Ÿ \
    ensp \u{2002} emsp \u{2003} thinsp \u{2009} zwnj \u{200c} zwj \u{200d} minus − ne ≠ le ≤ ge ≥ \
    asymp ≈ infin ∞ sum ∑ radic √ hearts ♥";

/// Names that browsers accept without a semicolon.
const WITHOUT_SEMICOLON: [&str; 5] = ["amp", "lt", "gt", "quot", "nbsp"];
/// The maximum length of a known name or number.
const MAX_LENGTH: usize = 12;

/// Appends a text with its references decoded; unknown references stay unchanged. `found` is called with each
/// reference and the position of its character.
pub(super) fn decode<'a>(text: &'a str, decoded: &mut String, mut found: impl FnMut(usize, &'a str)) {
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        decoded.push_str(&rest[..at]);
        rest = &rest[at..];
        let (character, length) = reference(rest).unwrap_or(('&', 1));
        if length > 1 {
            found(decoded.len(), &rest[..length]);
        }
        decoded.push(character);
        rest = &rest[length..];
    }
    decoded.push_str(rest);
}

/// Escapes text, so that browsers do not parse it as markup.
pub(super) fn encode(text: &str, html: &mut String) {
    for c in text.chars() {
        match c {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '\u{a0}' => html.push_str("&nbsp;"),
            c => html.push(c),
        }
    }
}

/// The character of the reference that a text begins with, and its length.
fn reference(text: &str) -> Option<(char, usize)> {
    let name_end =
        text.bytes().skip(1).take(MAX_LENGTH).position(|c| !c.is_ascii_alphanumeric() && c != b'#')? + 1;
    let name = text.get(1..name_end)?;
    if text.as_bytes()[name_end] == b';' {
        return Some((character(name)?, name_end + 1));
    }
    WITHOUT_SEMICOLON.contains(&name).then(|| character(name)).flatten().map(|c| (c, name_end))
}

fn character(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let number = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok()?,
            None => number.parse().ok()?,
        };
        // As in browsers, NUL becomes a replacement character.
        return char::from_u32(number).map(|c| if c == '\0' { char::REPLACEMENT_CHARACTER } else { c });
    }
    let mut named = NAMED.split_ascii_whitespace();
    if named.any(|known| known == name) {
        return named.next()?.chars().next();
    }
    CONSECUTIVE.iter().find_map(|(first, names)| {
        let position = names.split_ascii_whitespace().position(|known| known == name)?;
        char::from_u32(first + u32::try_from(position).ok()?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(text: &str) -> String {
        let mut plain = String::new();
        decode(text, &mut plain, |_, _| {});
        plain
    }

    #[test]
    fn references_become_characters_and_characters_references() {
        for (text, expected) in [
            ("a &amp; b &#228; &#x4f60; &nope; & &lt;b&gt;", "a & b ä 你 &nope; & <b>"),
            ("&#xD800;&#9999999999;&", "&#xD800;&#9999999999;&"),
            ("&eacute;&szlig;&yuml;&nbsp;&alpha;&omega;&Sigma;&hellip;&rarr;", "éßÿ\u{a0}αωΣ…→"),
            ("a &amp b &copy b &ampere; &#0; &-;", "a & b &copy b &ampere; \u{fffd} &-;"),
            ("&#x;&#;&;&#+5;&你;", "&#x;&#;&;&#+5;&你;"),
        ] {
            assert_eq!(decoded(text), expected);
        }
        let mut html = String::new();
        encode("a & b <script>\u{a0}", &mut html);
        assert_eq!(html, "a &amp; b &lt;script&gt;&nbsp;");
    }

    #[test]
    fn every_name_has_its_character() {
        for (name, c) in [("yuml", 'ÿ'), ("omega", 'ω'), ("Omega", 'Ω'), ("harr", '↔'), ("hellip", '…')]
        {
            assert_eq!(character(name), Some(c), "{name}");
        }
    }
}
