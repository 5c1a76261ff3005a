//! Bar charts: values of several groups, with their ranges.

use std::fmt::Write;

use super::axis::{Axis, Scale, human};
use super::markup::{FONT, escape, length, text_width};

/// Horizontal bars in groups, from zero.
#[derive(Clone, Debug, Default)]
pub struct BarChart {
    /// The title above the chart.
    pub title: String,
    /// A value that bars are compared with, for example 1 for ratios: a dashed line.
    pub reference: Option<f64>,
    /// From top to bottom.
    pub groups: Vec<BarGroup>,
}

/// Bars under a common name.
#[derive(Clone, Debug, Default)]
pub struct BarGroup {
    /// Its name.
    pub name: String,
    /// From top to bottom.
    pub bars: Vec<Bar>,
}

/// One bar.
#[derive(Clone, Debug, Default)]
pub struct Bar {
    /// The text left of it.
    pub name: String,
    /// Its length.
    pub value: f64,
    /// The ends of the thin line over its end, for example quartiles.
    pub range: Option<(f64, f64)>,
}

const WIDTH: f64 = 640.0;
const FONT_SIZE: f64 = 12.0;
const BAR: f64 = 14.0;
const ROW: f64 = 19.0;
const HEADING: f64 = 26.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 24.0;
/// For the values right of the longest bars.
const RIGHT: f64 = 40.0;

/// Draws the chart. Values are finite and not negative.
pub fn bar_chart_svg(chart: &BarChart) -> String {
    let bars = || chart.groups.iter().flat_map(|group| &group.bars);
    let rows = bars().count() as f64;
    let height = TOP + HEADING * chart.groups.len() as f64 + ROW * rows + BOTTOM;
    let mut svg = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" aria-label="{title}" font-family="{FONT}" font-size="{FONT_SIZE}"><text x="0" y="14" font-size="14" font-weight="600" fill="currentColor">{title}</text>"#,
        title = escape(&chart.title)
    );
    let ends = bars().flat_map(|bar| [bar.value, bar.range.map_or(bar.value, |(_, high)| high)]);
    let axis = Axis::around(ends.chain(chart.reference).chain([0.0]), Scale::Linear, 6);
    if let Some(axis) = axis {
        let widest = bars().map(|bar| text_width(&bar.name)).fold(0.0, f64::max);
        let left = widest * FONT_SIZE + 8.0;
        let x = |value: f64| length(left + axis.position(value) * (WIDTH - RIGHT - left));
        let bottom = length(height - BOTTOM);
        for &tick in axis.ticks() {
            let _ = write!(
                svg,
                r#"<path d="M{x} {TOP}V{bottom}" stroke="currentColor" stroke-opacity=".13"/><text x="{x}" y="{y}" text-anchor="middle" fill="currentColor" fill-opacity=".65">{label}</text>"#,
                x = x(tick),
                y = length(height - BOTTOM + 16.0),
                label = human(tick)
            );
        }
        let mut y = TOP;
        for group in &chart.groups {
            let _ = write!(
                svg,
                r#"<text x="0" y="{}" font-weight="600" fill="currentColor">{}</text>"#,
                length(y + HEADING - 8.0),
                escape(&group.name)
            );
            y += HEADING;
            for bar in &group.bars {
                write_bar(&mut svg, bar, y, left, x);
                y += ROW;
            }
        }
        if let Some(reference) = chart.reference {
            let _ = write!(
                svg,
                r#"<path d="M{x} {TOP}V{bottom}" stroke="currentColor" stroke-opacity=".7" stroke-dasharray="4 3"/>"#,
                x = x(reference)
            );
        }
    }
    svg += "</svg>";
    svg
}

fn write_bar(svg: &mut String, bar: &Bar, y: f64, left: f64, x: impl Fn(f64) -> String) {
    let text = length(y + 11.5);
    let _ = write!(
        svg,
        r#"<text x="{}" y="{text}" text-anchor="end" fill="currentColor">{}</text>"#,
        length(left - 8.0),
        escape(&bar.name)
    );
    let (start, end) = (length(left), x(bar.value));
    let _ = write!(
        svg,
        r#"<path d="M{start} {}H{end}v{BAR}H{start}z" fill="var(--line-1,#0072b2)"/>"#,
        length(y)
    );
    let mut after = end;
    if let Some((low, high)) = bar.range {
        after = x(high.max(bar.value));
        let middle = length(y + BAR / 2.0);
        let _ = write!(
            svg,
            r#"<path d="M{} {middle}H{}" stroke="currentColor" stroke-width="1.5"/>"#,
            x(low),
            x(high)
        );
    }
    let _ =
        write!(svg, r#"<text x="{after}" dx="5" y="{text}" fill="currentColor">{}</text>"#, human(bar.value));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_begin_at_zero_and_names_are_escaped() {
        let bar = |name: &str, value, range| Bar { name: name.to_owned(), value, range };
        let chart = BarChart {
            title: "a < b".to_owned(),
            reference: Some(1.0),
            groups: vec![BarGroup {
                name: "2 threads".to_owned(),
                bars: vec![bar("x", 2.0, Some((1.5, 2.5))), bar("y", 1.0, None)],
            }],
        };
        let svg = bar_chart_svg(&chart);
        assert!(svg.contains("a &lt; b") && svg.contains("2 threads"), "{svg}");
        let ends: Vec<f64> = svg
            .split("fill=\"var(--line-1")
            .filter_map(|before| {
                before.rsplit_once('H')?.0.rsplit_once('H')?.1.split('v').next()?.parse().ok()
            })
            .collect();
        let starts = 0.65 * FONT_SIZE + 8.0;
        assert!((ends[0] - starts - 2.0 * (ends[1] - starts)).abs() < 0.2, "{ends:?}");
        assert!(bar_chart_svg(&BarChart::default()).ends_with("</svg>"));
    }
}
