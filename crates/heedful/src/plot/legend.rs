//! The legend of a line chart.

use std::fmt::Write;

use super::line_chart::{FONT_SIZE, Series, WIDTH};
use super::markup::{escape, length, text_width};

const COLOURS: [&str; 6] = [
    "var(--line-1,#0072b2)",
    "var(--line-2,#d55e00)",
    "var(--line-3,#00876a)",
    "var(--line-4,#a8528a)",
    "var(--line-5,#8a6d00)",
    "var(--line-6,#5b6674)",
];
/// More than six hues are hard to distinguish, so from the seventh line on the colours repeat with dashes.
const DASHES: [&str; 4] = ["", "5 3", "1.5 3", "8 3 1.5 3"];
const ROW: f64 = 16.0;
const SAMPLE: f64 = 14.0;
const GAP: f64 = 5.0;

/// Colour and dashes of a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stroke {
    pub(super) colour: &'static str,
    dashes: &'static str,
}

impl Stroke {
    pub(super) fn of(index: usize) -> Stroke {
        Stroke {
            colour: COLOURS[index % COLOURS.len()],
            dashes: DASHES[index / COLOURS.len() % DASHES.len()],
        }
    }

    /// The dash attribute of an SVG path with a leading space; empty for a solid line.
    pub(super) fn dashes(self) -> String {
        if self.dashes.is_empty() {
            return String::new();
        }
        format!(r#" stroke-dasharray="{}""#, self.dashes)
    }
}

/// The names of the lines with samples of their strokes, in one or more rows.
pub(super) struct Legend<'a> {
    rows: Vec<Vec<(Stroke, &'a str, f64)>>,
}

impl<'a> Legend<'a> {
    /// `None` if there are fewer than two lines: they need no legend.
    pub(super) fn new(series: &'a [Series]) -> Option<Legend<'a>> {
        if series.len() < 2 {
            return None;
        }
        let mut rows = vec![Vec::new()];
        let mut x = 0.0;
        for (index, series) in series.iter().enumerate() {
            let width = SAMPLE + GAP + text_width(&series.name) * FONT_SIZE;
            if x > 0.0 && x + width > WIDTH {
                rows.push(Vec::new());
                x = 0.0;
            }
            rows.last_mut().expect("there is a first row").push((Stroke::of(index), series.name.as_str(), x));
            x += width + SAMPLE + 2.0;
        }
        Some(Legend { rows })
    }

    /// The height of all rows but the first, for which every chart with several lines reserves space.
    pub(super) fn extra_height(&self) -> f64 {
        (self.rows.len() - 1) as f64 * ROW
    }

    pub(super) fn svg(&self) -> String {
        let mut svg = String::new();
        for (row, entries) in self.rows.iter().enumerate() {
            let y = 25.5 + row as f64 * ROW;
            for &(stroke, name, x) in entries {
                let _ = write!(
                    svg,
                    r#"<path d="M{} {}h{SAMPLE}" stroke="{}"{} stroke-width="3"/><text x="{}" y="{}" fill="currentColor" fill-opacity=".8">{}</text>"#,
                    length(x),
                    length(y),
                    stroke.colour,
                    stroke.dashes(),
                    length(x + SAMPLE + GAP),
                    length(y + 4.5),
                    escape(name)
                );
            }
        }
        svg
    }
}
