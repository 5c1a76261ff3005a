//! Renders SVG to PNG with a bundled font; characters that it lacks come from system fonts.
//!
//! Pictures use the colours of their page: `currentColor`, and CSS variables with fallbacks. A PNG has no
//! page, so the fallbacks are substituted and the background is white.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use resvg::tiny_skia::{Color, Pixmap, Transform};
use resvg::usvg::{FontResolver, Options, Tree, fontdb};

/// The colour of text.
const TEXT_COLOUR: &str = "#1c232c";
/// Covers Chinese, Japanese kana, Latin, Greek and Cyrillic, so pictures look the same on every machine.
const FONT: &[u8] = include_bytes!("font/HeedfulSans.otf");
const FAMILY: &str = "Heedful Sans";
/// The white border around the picture in its units: text at an edge is hard to read.
const MARGIN: f32 = 10.0;
/// The maximum number of pixels.
const MAX_PIXELS: f64 = 2.5e8;

/// A picture as a PNG file.
#[derive(Clone, Debug)]
pub struct Png {
    /// The contents of the file.
    pub bytes: Vec<u8>,
    /// Warnings about anything that could not be drawn correctly, one sentence each.
    pub warnings: Vec<String>,
}

/// A picture cannot be rendered as PNG.
#[derive(Debug, thiserror::Error)]
pub enum PngError {
    /// The input is not valid SVG, which is a bug in the code that drew it.
    #[error("cannot draw the picture: {0}")]
    Svg(String),
    /// The picture has too many pixels.
    #[error(
        "a picture of {width:.0} × {height:.0} pixels is too large: ask for a smaller scale, a shorter text, or an .svg file"
    )]
    TooLarge {
        /// Width in pixels.
        width: f64,
        /// Height in pixels.
        height: f64,
    },
    /// The encoder failed.
    #[error("cannot write the picture as PNG: {0}")]
    Encoding(String),
}

impl crate::error::Cause for PngError {}

/// Renders an SVG of this crate on white, with `scale` pixels per unit.
pub fn png(svg: &str, scale: f32) -> Result<Png, PngError> {
    let mut fonts = fontdb::Database::new();
    fonts.load_font_data(FONT.to_vec());
    fonts.load_system_fonts();
    png_with_fonts(svg, scale, fonts)
}

fn png_with_fonts(svg: &str, scale: f32, mut fonts: fontdb::Database) -> Result<Png, PngError> {
    let mut warnings = Vec::new();
    fonts.set_sans_serif_family(FAMILY);
    let missing = Arc::new(Mutex::new(BTreeSet::new()));
    let options = Options {
        fontdb: Arc::new(fonts),
        font_resolver: FontResolver {
            select_font: FontResolver::default_font_selector(),
            select_fallback: recording_fallback(missing.clone()),
        },
        ..Options::default()
    };
    let tree = Tree::from_str(&with_font(&with_colours(svg)), &options)
        .map_err(|error| PngError::Svg(error.to_string()))?;
    let size = tree.size();
    let [width, height] =
        [size.width(), size.height()].map(|side| f64::from((side + 2.0 * MARGIN) * scale).ceil());
    let pixmap = Some(width * height).filter(|&pixels| pixels <= MAX_PIXELS);
    let mut pixmap = pixmap
        .and_then(|_| Pixmap::new(width as u32, height as u32))
        .ok_or(PngError::TooLarge { width, height })?;
    pixmap.fill(Color::WHITE);
    let transform = Transform::from_scale(scale, scale).pre_translate(MARGIN, MARGIN);
    resvg::render(&tree, transform, &mut pixmap.as_mut());
    let bytes = pixmap.encode_png().map_err(|error| PngError::Encoding(error.to_string()))?;
    let missing = missing.lock().expect("no thread panics while holding it").iter().collect::<String>();
    if !missing.is_empty() {
        warnings.push(format!(
            "neither the bundled font nor a system font has {missing}: install a font that does, or write an .svg file"
        ));
    }
    Ok(Png { bytes, warnings })
}

/// The default search for a fallback font, which also records the characters that no font has.
fn recording_fallback(missing: Arc<Mutex<BTreeSet<char>>>) -> resvg::usvg::FallbackSelectionFn<'static> {
    let default = FontResolver::default_fallback_selector();
    Box::new(move |character, tried, fonts| {
        let found = default(character, tried, fonts);
        if found.is_none() {
            missing.lock().expect("no thread panics while holding it").insert(character);
        }
        found
    })
}

/// Replaces the page's font stack by the bundled font.
fn with_font(svg: &str) -> String {
    svg.replace(&format!("font-family=\"{}\"", super::markup::FONT), "font-family=\"sans-serif\"")
}

/// Replaces `currentColor` and CSS variables by plain colours. Only whole attributes are replaced: text
/// escapes quotation marks as `&quot;`, so it cannot contain an attribute.
fn with_colours(svg: &str) -> String {
    const VARIABLE: &str = "=\"var(";
    let mut plain = String::with_capacity(svg.len());
    let mut rest = svg;
    while let Some(start) = rest.find(VARIABLE) {
        let (before, variable) = rest.split_at(start);
        plain += before;
        let end = variable.find(")\"").expect("pictures of this crate close their brackets");
        let fallback = variable[..end].split_once(',').map_or(TEXT_COLOUR, |(_, fallback)| fallback.trim());
        plain += &format!("=\"{fallback}\"");
        rest = &variable[end + 2..];
    }
    plain += rest;
    plain.replace("=\"currentColor\"", &format!("=\"{TEXT_COLOUR}\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SVG: &str = r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 4 2" width="4" height="2"><rect width="2" height="2" fill="var(--heat,#0b5c8a)"/><rect x="2" width="1" height="2" fill="currentColor"/></svg>"#;

    #[test]
    fn fallback_colours_are_drawn_on_white() {
        let drawn = png_with_fonts(SVG, 3.0, fontdb::Database::new()).expect("a good picture");
        let pixels = Pixmap::decode_png(&drawn.bytes).expect("a PNG");
        let margin = 3 * MARGIN as u32;
        assert_eq!((pixels.width(), pixels.height()), (12 + 2 * margin, 6 + 2 * margin));
        let colour = |x, y| {
            let pixel = pixels.pixel(margin + x, margin + y).expect("inside");
            [pixel.red(), pixel.green(), pixel.blue(), pixel.alpha()]
        };
        assert_eq!(colour(1, 1), [0x0b, 0x5c, 0x8a, 255]);
        assert_eq!(colour(7, 3), [0x1c, 0x23, 0x2c, 255]);
        assert_eq!(colour(11, 5), [255, 255, 255, 255]);
    }

    /// A word drawn with the bundled font only.
    fn drawn_word(word: &str) -> Png {
        let font = super::super::markup::FONT;
        let svg = format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 80 20" width="80" height="20" font-family="{font}"><text x="0" y="15" fill="currentColor">{word}</text></svg>"#
        );
        let mut fonts = fontdb::Database::new();
        fonts.load_font_data(FONT.to_vec());
        png_with_fonts(&svg, 1.0, fonts).expect("a good picture")
    }

    #[test]
    fn chinese_latin_and_cyrillic_need_no_system_font() {
        let empty = drawn_word("").bytes;
        let mut pictures = Vec::new();
        for word in ["自动驾驶", "自动行车", "Wörter", "слова", "かな", "→ ▁ …"] {
            let drawn = drawn_word(word);
            assert!(drawn.warnings.is_empty(), "{word}: {:?}", drawn.warnings);
            assert!(
                drawn.bytes != empty && !pictures.contains(&drawn.bytes),
                "{word} is drawn as glyphs, not as boxes"
            );
            pictures.push(drawn.bytes);
        }
    }

    #[test]
    fn characters_missing_from_all_fonts_are_named_in_a_warning() {
        let drawn = drawn_word("\u{1F600}");
        assert!(drawn.warnings[0].contains('\u{1F600}'), "{:?}", drawn.warnings);
    }

    #[test]
    fn text_that_looks_like_a_colour_is_unchanged() {
        let text = r#"<text aria-label="=&quot;var(--x,red)">var(--heat,#000) currentColor</text>"#;
        assert_eq!(with_colours(text), text);
    }

    #[test]
    fn a_picture_with_too_many_pixels_is_an_error() {
        let error = png_with_fonts(SVG, 1e5, fontdb::Database::new()).expect_err("too large").to_string();
        assert!(error.contains("too large"), "{error}");
    }
}
