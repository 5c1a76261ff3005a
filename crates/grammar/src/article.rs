//! The indefinite article: a or an, by the sound of the next word instead of its first letter.

/// Letters whose names begin with a vowel, as in "an SUV", "an X-ray".
const VOWEL_NAMES: &str = "AEFHILMNORSX";
/// Words with a silent h.
const SILENT_H: [&str; 4] = ["hour", "honest", "honor", "heir"];
/// Spelled with a vowel, pronounced with a consonant: "a university", "a one-stop shop", "a European".
const CONSONANT_SOUNDS: [&str; 6] = ["uni", "use", "usu", "one", "once", "eu"];
/// Un- before an i: "an unimportant", "an uninteresting".
const UN_PREFIXES: [&str; 2] = ["unim", "unin"];

/// The indefinite article before `following`.
pub(super) fn article(following: &str) -> &'static str {
    if begins_with_a_vowel_sound(following) { "an" } else { "a" }
}

fn begins_with_a_vowel_sound(text: &str) -> bool {
    let word = text.split(' ').next().unwrap_or(text);
    let first = word.split('-').next().unwrap_or(word);
    if is_spelled_out(first) {
        return first.starts_with(|letter: char| VOWEL_NAMES.contains(letter));
    }
    let word = word.to_lowercase();
    let begins = |prefixes: &[&str]| prefixes.iter().any(|prefix| word.starts_with(prefix));
    if begins(&SILENT_H) || begins(&UN_PREFIXES) {
        return true;
    }
    word.starts_with(['a', 'e', 'i', 'o', 'u']) && !begins(&CONSONANT_SOUNDS)
}

/// Capitals only, as in SUV and the X of X-ray, but not the article-like "I" or "A" of a longer word.
fn is_spelled_out(word: &str) -> bool {
    word.trim_end_matches('s').chars().all(|letter| letter.is_ascii_uppercase()) && !word.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sound_decides() {
        let an = [
            "autonomous driving solution",
            "hour",
            "honest doctor",
            "SUV",
            "X-ray machine",
            "MRI scan",
            "umbrella",
            "ugly car",
            "uninteresting book",
            "unimportant letter",
            "Italian car",
            "urban traffic system",
        ];
        let a = [
            "university",
            "uniform",
            "unified communication system",
            "used car",
            "useful book",
            "user management app",
            "European car",
            "one-stop shopping platform",
            "house",
            "horse",
            "USB stick",
            "yellow car",
            "car",
        ];
        for word in an {
            assert_eq!(article(word), "an", "{word}");
        }
        for word in a {
            assert_eq!(article(word), "a", "{word}");
        }
    }
}
