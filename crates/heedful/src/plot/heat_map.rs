//! Heat maps: one cell per matrix element, with its value in a tooltip.

use std::fmt::Write;

use super::markup::{FONT, escape, length, shortened, text_width};

/// Options of a heat map.
#[derive(Clone, Debug)]
pub struct HeatMapOptions {
    /// The title above the picture; empty for none.
    pub title: String,
    /// The value drawn in full colour; 1 for attention weights.
    pub full: f32,
    /// The colour scale.
    pub colours: ColourScale,
}

/// How values map to colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColourScale {
    /// One hue: 0 is the background, larger values are stronger.
    Sequential,
    /// Two hues: 0 is the background, positive values are blue, negative values are orange.
    Diverging,
}

impl Default for HeatMapOptions {
    fn default() -> HeatMapOptions {
        HeatMapOptions { title: String::new(), full: 1.0, colours: ColourScale::Sequential }
    }
}

/// In maps with more cells, invisible cells are left out, which keeps a picture of 150 tokens small.
const MAX_CELLS_DRAWN_IN_FULL: usize = 4096;
/// Lower opacities are invisible.
const MIN_VISIBLE_OPACITY: f64 = 0.01;
const LABEL_LIMIT: f64 = 12.0;

/// Draws row-major `weights` with a label for each row and column; empty labels are not drawn.
///
/// # Panics
/// If the number of weights is not rows × columns.
pub fn heat_map_svg(
    weights: &[f32],
    rows: &[String],
    columns: &[String],
    options: &HeatMapOptions,
) -> String {
    assert_eq!(weights.len(), rows.len() * columns.len(), "heat map: {} × {}", rows.len(), columns.len());
    let layout = Layout::new(rows, columns, options);
    let mut svg = layout.open(options);
    layout.write_labels(&mut svg, rows, columns);
    let (w, h) = (columns.len() as f64 * layout.cell, rows.len() as f64 * layout.cell);
    let (x, y) = (length(layout.left), length(layout.top));
    let _ = write!(svg, r#"<g transform="translate({x} {y})">"#);
    let _ = write!(
        svg,
        r#"<rect width="{}" height="{}" fill="currentColor" fill-opacity=".04"/>"#,
        length(w),
        length(h)
    );
    for (i, row) in rows.iter().enumerate() {
        for (j, column) in columns.iter().enumerate() {
            let weight = weights[i * columns.len() + j];
            let opacity = opacity(weight, options.full);
            if opacity < MIN_VISIBLE_OPACITY && weights.len() > MAX_CELLS_DRAWN_IN_FULL {
                continue;
            }
            let size = length(layout.cell - layout.gap);
            let (x, y) = (length(j as f64 * layout.cell), length(i as f64 * layout.cell));
            let colour = colour(weight, options.colours);
            let _ = write!(
                svg,
                r#"<rect x="{x}" y="{y}" width="{size}" height="{size}" fill="{colour}" fill-opacity="{opacity:.2}">"#
            );
            let _ = write!(svg, "<title>{} → {}: {weight:.3}</title></rect>", escape(row), escape(column));
        }
    }
    svg += "</g></svg>";
    svg
}

/// The opacity of a weight's colour; 0 for NaN.
fn opacity(weight: f32, full: f32) -> f64 {
    let share = f64::from(weight.abs()) / f64::from(full);
    if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) }
}

fn colour(weight: f32, colours: ColourScale) -> &'static str {
    match colours {
        ColourScale::Diverging if weight < 0.0 => "var(--heat-below,#c2570c)",
        _ => "var(--heat,#0b5c8a)",
    }
}

/// Sizes and positions of the elements.
struct Layout {
    cell: f64,
    gap: f64,
    font: f64,
    left: f64,
    top: f64,
    rotated: bool,
    width: f64,
    height: f64,
}

impl Layout {
    fn new(rows: &[String], columns: &[String], options: &HeatMapOptions) -> Layout {
        let cell = match rows.len().max(columns.len()) {
            0..=12 => 28.0,
            13..=24 => 22.0,
            25..=48 => 14.0,
            49..=90 => 9.0,
            _ => 7.0,
        };
        let font = f64::clamp(cell * 0.95, 6.0, 13.0);
        let widest = |labels: &[String]| {
            let widths = labels.iter().map(|label| text_width(&shortened(label, LABEL_LIMIT)));
            widths.fold(0.0, f64::max) * font
        };
        let column_label_width = widest(columns);
        // Labels that are too wide are rotated by 60 degrees.
        let rotated = column_label_width > cell * spacing(columns) + 1.0;
        let head = if rotated { column_label_width * 0.87 + font * 0.8 } else { font + 3.0 };
        let title = if options.title.is_empty() { 0.0 } else { 20.0 };
        let left = widest(rows) + 8.0;
        let top = title + head + 4.0;
        let overhang = if rotated { overhang(columns, cell, font) } else { 2.0 };
        // Bold text is wider.
        let title_width = text_width(&options.title) * 14.0;
        let width = (left + columns.len() as f64 * cell + overhang).max(title_width);
        Layout {
            cell,
            gap: if cell > 10.0 { 1.0 } else { 0.0 },
            font,
            left,
            top,
            rotated,
            width,
            height: top + rows.len() as f64 * cell + 2.0,
        }
    }

    fn open(&self, options: &HeatMapOptions) -> String {
        let (width, height) = (length(self.width), length(self.height));
        let name = if options.title.is_empty() { "heat map" } else { &options.title };
        let mut svg = format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" aria-label="{}" font-family="{FONT}" font-size="{}">"#,
            escape(name),
            length(self.font)
        );
        if !options.title.is_empty() {
            let _ = write!(
                svg,
                r#"<text x="0" y="13" font-size="13" font-weight="600" fill="currentColor">{}</text>"#,
                escape(&options.title)
            );
        }
        svg
    }

    fn write_labels(&self, svg: &mut String, rows: &[String], columns: &[String]) {
        let label = |text: &str| {
            let short = shortened(text, LABEL_LIMIT);
            let full = if short == text { String::new() } else { format!("<title>{}</title>", escape(text)) };
            format!("{}{full}", escape(&short))
        };
        *svg += r#"<g fill="currentColor" fill-opacity=".85">"#;
        for (i, row) in rows.iter().enumerate().filter(|(_, row)| !row.is_empty()) {
            let y = length(self.top + (i as f64 + 0.5) * self.cell + self.font * 0.35);
            let x = length(self.left - 5.0);
            let _ = write!(svg, r#"<text x="{x}" y="{y}" text-anchor="end">{}</text>"#, label(row));
        }
        let y = length(self.top - 5.0);
        for (j, column) in columns.iter().enumerate().filter(|(_, column)| !column.is_empty()) {
            let middle = self.left + (j as f64 + 0.5) * self.cell - self.gap / 2.0;
            let position = if self.rotated {
                let x = length(middle + self.font * 0.3);
                format!(r#"transform="translate({x} {y}) rotate(-60)""#)
            } else {
                format!(r#"x="{}" y="{y}" text-anchor="middle""#, length(middle))
            };
            let _ = write!(svg, "<text {position}>{}</text>", label(column));
        }
        *svg += "</g>";
    }
}

/// How far rotated labels extend beyond the last cell.
fn overhang(columns: &[String], cell: f64, font: f64) -> f64 {
    let beyond = |(j, label): (usize, &String)| {
        let right = (columns.len() - j) as f64 - 0.5;
        text_width(&shortened(label, LABEL_LIMIT)) * font * 0.5 + font - right * cell
    };
    columns.iter().enumerate().map(beyond).fold(2.0, f64::max)
}

/// The smallest distance between labels, in cells.
fn spacing(labels: &[String]) -> f64 {
    let labelled: Vec<usize> = (0..labels.len()).filter(|&i| !labels[i].is_empty()).collect();
    labelled.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap_or(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(labels: &[&str]) -> Vec<String> {
        labels.iter().map(|label| (*label).to_owned()).collect()
    }

    #[test]
    fn each_cell_has_its_value_in_a_tooltip() {
        let rows = labels(&["an", "car"]);
        let svg = heat_map_svg(
            &[0.25, 0.75, 1.0, 0.0],
            &rows,
            &labels(&["一", "自动驾驶"]),
            &HeatMapOptions::default(),
        );
        assert!(svg.contains("<title>an → 自动驾驶: 0.750</title>"), "{svg}");
        assert!(svg.contains("fill-opacity=\"0.75\""));
        assert_eq!(svg.matches("<title>").count(), 4);
    }

    #[test]
    fn labels_are_escaped() {
        let evil = labels(&["<script>alert(1)</script>"]);
        let options = HeatMapOptions { title: "</svg><script>".to_owned(), ..HeatMapOptions::default() };
        let svg = heat_map_svg(&[1.0], &evil, &evil, &options);
        assert!(!svg.contains("<script"), "{svg}");
        assert_eq!(svg.matches("</svg>").count(), 1);
    }

    #[test]
    fn a_map_of_150_tokens_stays_small() {
        let tokens: Vec<String> = (0..150).map(|i| format!("token{i}")).collect();
        let weights: Vec<f32> = (0..150 * 150).map(|i| if i % 151 == 0 { 0.9 } else { 0.0007 }).collect();
        let svg = heat_map_svg(&weights, &tokens, &tokens, &HeatMapOptions::default());
        assert!(svg.len() < 100_000, "{}", svg.len());
    }

    #[test]
    fn empty_maps_and_nan_are_drawn() {
        assert!(heat_map_svg(&[], &[], &[], &HeatMapOptions::default()).ends_with("</svg>"));
        let one = labels(&["x"]);
        let svg = heat_map_svg(&[f32::NAN], &one, &one, &HeatMapOptions::default());
        assert!(svg.contains("fill-opacity=\"0.00\""), "{svg}");
    }
}
