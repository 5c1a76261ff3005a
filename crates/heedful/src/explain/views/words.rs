//! The source text once per output word, shaded by that word's attention.

use std::fmt::Write;

use super::matrix::AttentionMatrix;
use crate::plot::markup::{FONT, escape, length, text_width};

const FONT_SIZE: f64 = 14.0;
const LINE: f64 = 26.0;
const TOP: f64 = 30.0;
const PADDING: f64 = 4.0;
/// The maximum opacity: more would hide the text.
const MAX_OPACITY: f32 = 0.6;

/// Draws each row of `matrix` as a line of text.
pub fn words_svg(matrix: &AttentionMatrix) -> String {
    let cell_width = |label: &String| (text_width(label) * FONT_SIZE).max(8.0) + 2.0 * PADDING;
    let left = matrix.rows.iter().map(cell_width).fold(0.0, f64::max) + 14.0;
    let widths: Vec<f64> = matrix.columns.iter().map(cell_width).collect();
    let right = left + widths.iter().sum::<f64>();
    let has_probabilities = matrix.log_probabilities.iter().any(Option::is_some);
    let width = (right + if has_probabilities { 64.0 } else { 4.0 }).max(text_width(&matrix.title) * 13.0);
    let height = TOP + matrix.rows.len() as f64 * LINE;
    let mut svg = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img" aria-label="{title}" font-family="{FONT}" font-size="{FONT_SIZE}" fill="currentColor"><text x="0" y="13" font-size="13" font-weight="600">{title}</text>"#,
        w = length(width),
        h = length(height),
        title = escape(&matrix.title),
    );
    for (i, row) in matrix.rows.iter().enumerate() {
        let top = TOP + i as f64 * LINE;
        let base = length(top + 16.0);
        let _ = write!(
            svg,
            r#"<text x="{}" y="{base}" text-anchor="end" font-weight="600">{}</text>"#,
            length(left - 14.0),
            escape(row)
        );
        let mut x = left;
        for (j, (column, width)) in matrix.columns.iter().zip(&widths).enumerate() {
            let weight = matrix.weights[i * matrix.columns.len() + j];
            // NaN is drawn transparent.
            let opacity = if weight > 0.0 { weight.min(1.0) * MAX_OPACITY } else { 0.0 };
            let _ = write!(
                svg,
                r#"<g><title>{} → {}: {weight:.3}</title><rect x="{x}" y="{}" width="{}" height="22" rx="3" fill="var(--heat,#0b5c8a)" fill-opacity="{opacity:.2}"/><text x="{}" y="{base}" text-anchor="middle" fill-opacity="{:.2}">{}</text></g>"#,
                escape(row),
                escape(column),
                length(top),
                length(width - 1.0),
                length(x + width / 2.0),
                // Words without attention stay legible.
                0.6 + 0.4 * f64::from((weight * 4.0).clamp(0.0, 1.0)),
                escape(column),
                x = length(x),
            );
            x += width;
        }
        if let Some(log_probability) = matrix.log_probabilities[i] {
            let _ = write!(
                svg,
                r#"<text x="{}" y="{base}" font-size="12" fill-opacity=".7">{:.1} %</text>"#,
                length(right + 10.0),
                100.0 * log_probability.exp()
            );
        }
    }
    svg + "</svg>"
}

#[cfg(test)]
mod tests {
    use super::super::choice::{HeadChoice, LayerChoice};
    use super::super::matrix::{Granularity, tests::example};
    use super::*;

    #[test]
    fn every_output_word_has_a_row_with_the_whole_source() {
        let example = example();
        let output = &example.outputs[0];
        let matrix =
            AttentionMatrix::of(&example, output, LayerChoice::CROSS, HeadChoice::One(0), Granularity::Word)
                .expect("it is there");
        let svg = words_svg(&matrix);
        assert_eq!(svg.matches(">自动</text>").count(), 3, "{svg}");
        assert!(
            svg.contains("car → 车: 0.700") && svg.contains("&lt;eos&gt;") && svg.contains("12.5 %"),
            "{svg}"
        );
    }
}
