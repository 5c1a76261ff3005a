//! `zh`: every Chinese character is a token; the rest as in `13a`.

use super::super::spaces::is_space;
use super::{space_around, western};

pub(super) fn tokenize(line: &str) -> String {
    let spaced = space_around(line.trim_matches(is_space), is_chinese);
    western::separate_numbers(western::separate_symbols(spaced))
}

/// The characters that sacreBLEU treats as Chinese, which include more than Unicode's.
///
/// Two of its ranges, meant for the supplementary planes, are written with too few digits. They cover U+2001
/// to U+2A6D instead: dashes, quotation marks, arrows, currency and mathematics. No character of a
/// supplementary plane is covered. Scores depend on this, so it is reproduced here.
fn is_chinese(c: char) -> bool {
    matches!(u32::from(c),
        0x2001..=0x2a6d
        | 0x2e80..=0x2eff    // radicals
        | 0x2f00..=0x2fdf
        | 0x2ff0..=0x2fff    // ideographic description
        | 0x3000..=0x303f    // punctuation
        | 0x3100..=0x312f    // phonetic symbols
        | 0x31a0..=0x31bf
        | 0x31c0..=0x31ef    // strokes
        | 0x3200..=0x33ff    // enclosed and squared characters
        | 0x3400..=0x4db5    // characters
        | 0x4e00..=0x9fbb
        | 0xf900..=0xfa2d    // compatibility forms
        | 0xfa30..=0xfa6a
        | 0xfa70..=0xfad9
        | 0xfe10..=0xfe1f    // vertical forms
        | 0xfe30..=0xfe4f
        | 0xff00..=0xffef    // full and half width
    )
}
