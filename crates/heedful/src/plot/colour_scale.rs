//! A colour scale below a heat map, for pictures that are saved without the page around them.

use std::fmt::Write;

use super::heat_map::{ColourScale, HeatMapOptions};
use super::markup::{FONT, length};

const WIDTH: f64 = 160.0;
const HEIGHT: f64 = 40.0;
const STEPS: usize = 32;

/// Adds a colour scale below a heat map that was drawn with these options.
///
/// # Panics
/// If `svg` was not drawn by this crate.
pub fn with_colour_scale(svg: &str, options: &HeatMapOptions) -> String {
    let (width, height) = size(svg).expect("a picture of this crate has a view box");
    let (width, full) = (width.max(WIDTH + 8.0), f64::from(options.full));
    let mut picture = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" width="{w}" height="{h}" font-family="{FONT}" font-size="11">{svg}<g transform="translate(2 {top})">"#,
        w = length(width),
        h = length(height + HEIGHT),
        top = length(height + 10.0),
    );
    let min = match options.colours {
        ColourScale::Sequential => 0.0,
        ColourScale::Diverging => -full,
    };
    let _ = write!(
        picture,
        r#"<rect width="{WIDTH}" height="9" fill="currentColor" fill-opacity=".04"/><g stroke="none">"#
    );
    for step in 0..STEPS {
        let value = min + (full - min) * (step as f64 + 0.5) / STEPS as f64;
        let colour = if value < 0.0 { "var(--heat-below,#c2570c)" } else { "var(--heat,#0b5c8a)" };
        let _ = write!(
            picture,
            r#"<rect x="{}" width="{}" height="9" fill="{colour}" fill-opacity="{:.2}"/>"#,
            length(step as f64 * WIDTH / STEPS as f64),
            length(WIDTH / STEPS as f64),
            value.abs() / full
        );
    }
    picture += r#"</g><g fill="currentColor" fill-opacity=".8">"#;
    for (x, anchor, value) in
        [(0.0, "start", min), (WIDTH / 2.0, "middle", (min + full) / 2.0), (WIDTH, "end", full)]
    {
        let _ = write!(
            picture,
            r#"<text x="{}" y="22" text-anchor="{anchor}">{}</text>"#,
            length(x),
            number(value)
        );
    }
    picture + "</g></g></svg>"
}

/// At most three decimals, without trailing zeros.
fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Width and height from the view box of a picture of this crate.
fn size(svg: &str) -> Option<(f64, f64)> {
    let (_, rest) = svg.split_once(r#"viewBox="0 0 "#)?;
    let (width, height) = rest.split_once('"')?.0.split_once(' ')?;
    Some((width.parse().ok()?, height.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::super::heat_map::heat_map_svg;
    use super::*;

    #[test]
    fn a_picture_grows_by_the_height_of_its_scale() {
        let labels = ["a".to_owned(), "b".to_owned()];
        let options = HeatMapOptions { full: 0.5, ..HeatMapOptions::default() };
        let map = heat_map_svg(&[0.1, 0.2, 0.3, 0.4], &labels, &labels, &options);
        let scaled = with_colour_scale(&map, &options);
        let (before, after) = (size(&map).expect("a size"), size(&scaled).expect("a size"));
        assert_eq!(after.1, before.1 + HEIGHT);
        assert!(after.0 >= WIDTH && scaled.contains(&map), "{scaled}");
        assert!(scaled.contains(">0.5</text>") && scaled.contains(">0.25</text>"), "{scaled}");
    }

    #[test]
    fn a_diverging_scale_begins_below_zero() {
        let labels = ["a".to_owned()];
        let options =
            HeatMapOptions { full: 1.0, colours: ColourScale::Diverging, ..HeatMapOptions::default() };
        let scaled = with_colour_scale(&heat_map_svg(&[-1.0], &labels, &labels, &options), &options);
        assert!(scaled.contains(">-1</text>") && scaled.contains("--heat-below"), "{scaled}");
    }
}
