//! A grid of cells with a token in each, coloured by a value in [0, 1].

use std::fmt::Write;

use super::markup::{FONT, escape, length, shortened, text_width};

/// One cell of a grid.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TokenCell {
    /// The text in the cell; too long texts are shortened.
    pub text: String,
    /// The strength of its colour, in [0, 1].
    pub value: f32,
    /// Whether the cell has an outline.
    pub is_outlined: bool,
    /// The tooltip; lines are separated by line breaks.
    pub tooltip: String,
}

const FONT_SIZE: f64 = 12.0;
const CELL: [f64; 2] = [76.0, 24.0];
const LABEL_LIMIT: f64 = 14.0;
const TITLE: f64 = 22.0;
const MARGIN: f64 = 6.0;

/// Draws row-major `cells` with a label for each row and column.
///
/// # Panics
/// If the number of cells is not rows × columns.
pub fn token_grid_svg(cells: &[TokenCell], rows: &[String], columns: &[String], title: &str) -> String {
    assert_eq!(cells.len(), rows.len() * columns.len(), "token grid: {} × {}", rows.len(), columns.len());
    let [cell_width, cell_height] = CELL;
    let widest = rows.iter().map(|row| text_width(&shortened(row, LABEL_LIMIT))).fold(0.0, f64::max);
    let (left, top) = (widest * FONT_SIZE + MARGIN, TITLE + cell_height);
    let width = (left + columns.len() as f64 * cell_width).max(text_width(title) * 14.0);
    let height = top + rows.len() as f64 * cell_height + 2.0;
    let mut svg = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img" aria-label="{title}" font-family="{FONT}" font-size="{FONT_SIZE}"><text x="0" y="13" font-size="13" font-weight="600" fill="currentColor">{title}</text>"#,
        w = length(width),
        h = length(height),
        title = escape(title),
    );
    let text = |svg: &mut String, [x, y]: [f64; 2], anchor: &str, limit: f64, text: &str| {
        let (x, y) = (length(x), length(y));
        let short = shortened(text, limit);
        let short = escape(&short);
        let _ =
            write!(svg, r#"<text x="{x}" y="{y}" text-anchor="{anchor}" fill="currentColor">{short}</text>"#);
    };
    let in_cell = (cell_width - MARGIN) / FONT_SIZE;
    for (j, column) in columns.iter().enumerate() {
        let x = left + (j as f64 + 0.5) * cell_width;
        text(&mut svg, [x, top - 7.0], "middle", in_cell, column);
    }
    for (i, row) in rows.iter().enumerate() {
        let y = top + i as f64 * cell_height;
        let baseline = y + cell_height * 0.66;
        text(&mut svg, [left - MARGIN, baseline], "end", LABEL_LIMIT, row);
        for (cell, x) in
            cells[i * columns.len()..].iter().zip((0..columns.len()).map(|j| left + j as f64 * cell_width))
        {
            let value = if cell.value.is_nan() { 0.0 } else { cell.value.clamp(0.0, 1.0) * 0.6 };
            let outline = if cell.is_outlined { r#" stroke="currentColor" stroke-opacity=".7""# } else { "" };
            let _ = write!(
                svg,
                r#"<g><title>{}</title><rect x="{}" y="{}" width="{}" height="{}" fill="var(--heat,#0b5c8a)" fill-opacity="{value:.2}"{outline}/>"#,
                escape(&cell.tooltip),
                length(x + 1.0),
                length(y + 1.0),
                length(cell_width - 2.0),
                length(cell_height - 2.0),
            );
            text(&mut svg, [x + cell_width / 2.0, baseline], "middle", in_cell, &cell.text);
            svg += "</g>";
        }
    }
    svg += "</svg>";
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_has_its_text_and_its_tooltip_escaped() {
        let cell =
            TokenCell { text: "<b>".to_owned(), value: 2.0, is_outlined: true, tooltip: "a & b".to_owned() };
        let svg = token_grid_svg(
            &[cell, TokenCell::default()],
            &["last".to_owned()],
            &["x".into(), "y".into()],
            "t",
        );
        assert!(svg.contains("&lt;b&gt;") && svg.contains("a &amp; b"), "{svg}");
        assert_eq!((svg.matches("<rect").count(), svg.matches("stroke-opacity").count()), (2, 1));
    }
}
