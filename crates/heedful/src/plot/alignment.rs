//! A source above its target, joined by lines whose strength is the attention between their tokens.

use std::fmt::Write;

use super::markup::{FONT, escape, length, text_width};

const FONT_SIZE: f64 = 15.0;
const GAP: f64 = 18.0;
const SOURCE_LINE: f64 = 22.0;
const TARGET_LINE: f64 = 150.0;
/// Smaller weights are not drawn: their lines would be grey noise.
const MIN_WEIGHT: f32 = 0.05;

/// Draws the source above the target. `weights` is target × source, row-major.
///
/// # Panics
/// If the number of weights is not target × source tokens.
pub fn alignment_svg(weights: &[f32], target: &[String], source: &[String]) -> String {
    assert_eq!(weights.len(), target.len() * source.len(), "alignment: {} × {}", target.len(), source.len());
    let (above, below) = (TokenRow::new(source), TokenRow::new(target));
    let width = above.width.max(below.width);
    let (above_shift, below_shift) = ((width - above.width) / 2.0, (width - below.width) / 2.0);
    let (width, height) = (length(width), length(TARGET_LINE + 14.0));
    let mut svg = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" aria-label="alignment" font-family="{FONT}" font-size="{FONT_SIZE}">"#
    );
    svg += r#"<g stroke="var(--heat,#0b5c8a)" stroke-linecap="round">"#;
    for (i, to) in target.iter().enumerate() {
        for (j, from) in source.iter().enumerate() {
            let weight = weights[i * source.len() + j];
            // False for NaN.
            if weight >= MIN_WEIGHT {
                let _ = write!(
                    svg,
                    r#"<line x1="{}" y1="{}" x2="{}" y2="{}" stroke-opacity="{weight:.2}" stroke-width="{}"><title>{} → {}: {weight:.3}</title></line>"#,
                    length(above.middles[j] + above_shift),
                    length(SOURCE_LINE + 8.0),
                    length(below.middles[i] + below_shift),
                    length(TARGET_LINE - 18.0),
                    length(1.0 + 3.0 * f64::from(weight.min(1.0))),
                    escape(to),
                    escape(from),
                );
            }
        }
    }
    svg += r#"</g><g fill="currentColor" text-anchor="middle">"#;
    for (line, tokens, shift, y) in
        [(&above, source, above_shift, SOURCE_LINE), (&below, target, below_shift, TARGET_LINE)]
    {
        for (token, middle) in tokens.iter().zip(&line.middles) {
            let _ = write!(svg, r#"<text x="{}" y="{y}">{}</text>"#, length(middle + shift), escape(token));
        }
    }
    svg += "</g></svg>";
    svg
}

/// The layout of a row of tokens.
struct TokenRow {
    middles: Vec<f64>,
    width: f64,
}

impl TokenRow {
    fn new(tokens: &[String]) -> TokenRow {
        let mut width = GAP / 2.0;
        let middle = |token: &String| {
            let token_width = (text_width(token) * FONT_SIZE).max(10.0);
            let middle = width + token_width / 2.0;
            width += token_width + GAP;
            middle
        };
        let middles = tokens.iter().map(middle).collect();
        TokenRow { middles, width }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strong_weights_are_drawn_and_weak_ones_are_not() {
        let target = ["an".to_owned(), "<b>".to_owned()];
        let source = ["一".to_owned(), "自动驾驶".to_owned()];
        let svg = alignment_svg(&[0.01, 0.99, f32::NAN, 0.5], &target, &source);
        assert_eq!(svg.matches("<line").count(), 2);
        assert!(svg.contains("<title>an → 自动驾驶: 0.990</title>") && svg.contains("&lt;b&gt;"), "{svg}");
    }
}
