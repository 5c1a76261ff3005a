//! Line charts: values over steps.

use std::fmt::Write;

use super::axis::{Axis, Scale, human, is_drawable};
use super::legend::{Legend, Stroke};
use super::markup::{FONT, escape, length, text_width};

/// Lines over common axes.
#[derive(Clone, Debug, Default)]
pub struct LineChart {
    /// The title above the chart.
    pub title: String,
    /// The label of the horizontal axis.
    pub x_label: String,
    /// The scale of the horizontal axis.
    pub x_scale: Scale,
    /// The scale of the vertical axis.
    pub scale: Scale,
    /// The lines. There are six colours; further lines repeat them with three kinds of dashes.
    pub series: Vec<Series>,
}

/// One line.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// The points from left to right. Values that cannot be drawn (NaN, or not positive on a logarithmic
    /// axis) leave a gap.
    pub points: Vec<(f64, f64)>,
    /// Which point is highlighted.
    pub highlight: Highlight,
}

/// Which point of a line is highlighted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Highlight {
    /// No point.
    #[default]
    None,
    /// The lowest as the best, as for a loss.
    Lowest,
    /// The highest as the best, as for an accuracy.
    Highest,
    /// The highest as the peak, for values for which higher is not better.
    Peak,
}

pub(super) const WIDTH: f64 = 380.0;
/// The height with one legend row. Further rows make the picture higher and leave the plot area unchanged.
const HEIGHT: f64 = 236.0;
const BOTTOM: f64 = 38.0;
/// The minimum space for the last values, which are written to the right of the lines.
const RIGHT: f64 = 48.0;
/// The space between the end of a line and its last value.
const GAP: f64 = 5.0;
pub(super) const FONT_SIZE: f64 = 12.0;
const LINE_HEIGHT: f64 = 13.0;
/// Longer lines are thinned: more points than pixels show no detail, so only the minimum and maximum of each
/// bucket are drawn.
const BUCKETS: usize = 240;

/// Draws the chart; without any drawable point it shows "no data yet".
pub(crate) fn line_chart_svg(chart: &LineChart) -> String {
    let legend = Legend::new(&chart.series);
    let height = HEIGHT + legend.as_ref().map_or(0.0, Legend::extra_height);
    let mut svg = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" aria-label="{title}" font-family="{FONT}" font-size="{FONT_SIZE}"><text x="0" y="14" font-size="14" font-weight="600" fill="currentColor">{title}</text>"#,
        title = escape(&chart.title)
    );
    match PlotArea::new(chart, height) {
        Some(area) => {
            area.write_axes(&mut svg, chart);
            for (index, series) in chart.series.iter().enumerate() {
                area.write_series(&mut svg, series, Stroke::of(index));
            }
            area.write_last_values(&mut svg, &chart.series);
            if let Some(legend) = legend {
                svg += &legend.svg();
            }
        }
        None => {
            let _ = write!(
                svg,
                r#"<text x="{}" y="{}" text-anchor="middle" fill="currentColor" fill-opacity=".6">no data yet</text>"#,
                WIDTH / 2.0,
                height / 2.0
            );
        }
    }
    svg += "</svg>";
    svg
}

/// Whether there are several lines; if so, there is a legend and labels avoid the other lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineCount {
    One,
    Several,
}

/// The plot area.
struct PlotArea {
    x: Axis,
    y: Axis,
    left: f64,
    right: f64,
    top: f64,
    /// The height of the picture.
    height: f64,
    scales: [Scale; 2],
    line_count: LineCount,
}

impl PlotArea {
    fn new(chart: &LineChart, height: f64) -> Option<PlotArea> {
        let scales = [chart.x_scale, chart.scale];
        let drawable = |point: &&(f64, f64)| can_be_drawn(point, scales);
        let points = || chart.series.iter().flat_map(|series| &series.points).filter(drawable);
        let (low, high) = points().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), point| {
            (low.min(point.0), high.max(point.0))
        });
        let x = Axis::around(points().map(|point| point.0), chart.x_scale, 5)?;
        let x = if high > low { x.tight(low, high) } else { x };
        let y = Axis::around(points().map(|point| point.1), chart.scale, 4)?;
        let line_count = if chart.series.len() > 1 { LineCount::Several } else { LineCount::One };
        let widest_tick = y.ticks().iter().map(|&tick| text_width(&human(tick))).fold(0.0, f64::max);
        let last_values = chart.series.iter().filter_map(|series| series.points.iter().rfind(drawable));
        let widest_last = last_values.map(|last| text_width(&human(last.1))).fold(0.0, f64::max);
        Some(PlotArea {
            x,
            y,
            left: widest_tick * FONT_SIZE + 8.0,
            // Last values are bold, which is wider than the estimate.
            right: RIGHT.max(1.1 * widest_last * FONT_SIZE + GAP),
            top: if line_count == LineCount::Several { 52.0 + height - HEIGHT } else { 38.0 },
            height,
            scales,
            line_count,
        })
    }

    fn x(&self, value: f64) -> f64 {
        self.left + self.x.position(value) * (WIDTH - self.right - self.left)
    }

    fn y(&self, value: f64) -> f64 {
        self.height - BOTTOM - self.y.position(value) * (self.height - BOTTOM - self.top)
    }

    fn write_axes(&self, svg: &mut String, chart: &LineChart) {
        *svg += r#"<g stroke="currentColor" stroke-opacity=".13">"#;
        for &tick in self.y.ticks() {
            let y = length(self.y(tick));
            let _ = write!(svg, r#"<path d="M{} {y}H{}"/>"#, length(self.left), length(WIDTH - self.right));
        }
        *svg += r#"</g><g fill="currentColor" fill-opacity=".65">"#;
        for &tick in self.y.ticks() {
            let (x, y) = (length(self.left - 6.0), length(self.y(tick) + 4.0));
            let _ = write!(svg, r#"<text x="{x}" y="{y}" text-anchor="end">{}</text>"#, human(tick));
        }
        for &tick in self.x.ticks() {
            let (x, y) = (length(self.x(tick)), length(self.height - BOTTOM + 16.0));
            let _ = write!(svg, r#"<text x="{x}" y="{y}" text-anchor="middle">{}</text>"#, human(tick));
        }
        let x = length((self.left + WIDTH - self.right) / 2.0);
        let y = length(self.height - 5.0);
        let _ = write!(
            svg,
            r#"<text x="{x}" y="{y}" text-anchor="middle">{}</text></g>"#,
            escape(&chart.x_label)
        );
    }

    fn write_series(&self, svg: &mut String, series: &Series, stroke: Stroke) {
        let colour = stroke.colour;
        let points = thinned(&series.points);
        let mut path = String::new();
        let mut pen = 'M';
        for point in &points {
            if !can_be_drawn(point, self.scales) {
                pen = 'M';
                continue;
            }
            let &(x, y) = point;
            let _ = write!(path, "{pen}{} {}", length(self.x(x)), length(self.y(y)));
            pen = 'L';
        }
        let _ = write!(
            svg,
            r#"<path d="{path}" fill="none" stroke="{colour}"{dashes} stroke-width="1.8" stroke-linejoin="round" stroke-linecap="round"/>"#,
            dashes = stroke.dashes()
        );
        let drawable: Vec<(f64, f64)> =
            series.points.iter().copied().filter(|point| can_be_drawn(point, self.scales)).collect();
        // A line with one point is drawn as a dot.
        if let [only] = drawable[..] {
            let _ = write!(
                svg,
                r#"<circle cx="{}" cy="{}" r="2.5" fill="{colour}"/>"#,
                length(self.x(only.0)),
                length(self.y(only.1))
            );
        }
        if let Some(point) = highlighted(&drawable, series.highlight) {
            self.write_highlight(svg, point, series, colour);
        }
    }

    /// Writes the last value of each line at its end, spread out where lines end close together. If there is
    /// not enough space for all of them, none are written.
    fn write_last_values(&self, svg: &mut String, series: &[Series]) {
        if series.len() as f64 * LINE_HEIGHT > self.height - BOTTOM - self.top {
            return;
        }
        let mut labels = Vec::new();
        for (index, series) in series.iter().enumerate() {
            let last = series.points.iter().rev().find(|point| can_be_drawn(point, self.scales));
            if let Some(&(x, y)) = last {
                labels.push((self.y(y), self.x(x), y, Stroke::of(index).colour));
            }
        }
        labels.sort_by(|a, b| a.0.total_cmp(&b.0));
        // Half of the missing space is taken above, half below.
        let missing: f64 =
            labels.windows(2).map(|pair| (LINE_HEIGHT - (pair[1].0 - pair[0].0)).max(0.0)).sum();
        let mut free = labels.first().map_or(0.0, |first| first.0 - missing / 2.0);
        for label in &mut labels {
            label.0 = if missing > 0.0 { free.max(label.0 - missing / 2.0) } else { label.0 };
            free = label.0 + LINE_HEIGHT;
        }
        // Labels must stay above the tick labels of the horizontal axis.
        let excess = labels.last().map_or(0.0, |last| (last.0 - (self.height - BOTTOM)).max(0.0));
        for (y, x, value, colour) in labels {
            let (x, y) = (length(x + GAP), length(y - excess + 4.0));
            let _ = write!(
                svg,
                r#"<text x="{x}" y="{y}" fill="{colour}" font-weight="600">{}</text>"#,
                human(value)
            );
        }
    }

    fn write_highlight(&self, svg: &mut String, (x, y): (f64, f64), series: &Series, colour: &str) {
        let (px, py) = (self.x(x), self.y(y));
        let word = if series.highlight == Highlight::Peak { "peak" } else { "best" };
        let _ = write!(
            svg,
            r#"<circle cx="{}" cy="{}" r="4" fill="var(--panel,#fff)" stroke="{colour}" stroke-width="2"><title>{}: {word} {} at {}</title></circle>"#,
            length(px),
            length(py),
            escape(&series.name),
            human(y),
            human(x)
        );
        // Near the right edge the label of the last point shows the value.
        if px < WIDTH - self.right - 30.0 {
            let fits = py < self.height - BOTTOM - 22.0;
            let below = series.highlight == Highlight::Lowest && self.line_count == LineCount::One && fits;
            let label = format!("{word} {}", human(y));
            let half = text_width(&label) * FONT_SIZE / 2.0;
            let _ = write!(
                svg,
                r#"<text x="{}" y="{}" text-anchor="middle" fill="{colour}">{label}</text>"#,
                length(px.max(self.left + half)),
                length(if below { py + 18.0 } else { py - 9.0 })
            );
        }
    }
}

/// Whether a point can be drawn on axes of these scales.
fn can_be_drawn(&(x, y): &(f64, f64), [x_scale, y_scale]: [Scale; 2]) -> bool {
    is_drawable(x, x_scale) && is_drawable(y, y_scale)
}

fn highlighted(points: &[(f64, f64)], highlight: Highlight) -> Option<(f64, f64)> {
    let points = points.iter().copied();
    match highlight {
        Highlight::None => None,
        Highlight::Lowest => points.min_by(|a, b| a.1.total_cmp(&b.1)),
        Highlight::Highest | Highlight::Peak => points.max_by(|a, b| a.1.total_cmp(&b.1)),
    }
}

/// At most two points per bucket: its minimum and its maximum.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    if points.len() <= 2 * BUCKETS {
        return points.to_vec();
    }
    let mut kept = Vec::with_capacity(2 * BUCKETS + 1);
    for bucket in points.chunks(points.len().div_ceil(BUCKETS)) {
        let by_value = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let extremes = bucket.iter().min_by(by_value).into_iter().chain(bucket.iter().max_by(by_value));
        let mut extremes: Vec<(f64, f64)> = extremes.copied().collect();
        extremes.sort_by(|a, b| a.0.total_cmp(&b.0));
        extremes.dedup();
        kept.extend(extremes);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: Vec<(f64, f64)>, scale: Scale) -> LineChart {
        let series = Series { name: "<loss>".to_owned(), points, highlight: Highlight::Lowest };
        LineChart {
            title: "a & b".to_owned(),
            x_label: "step".to_owned(),
            scale,
            series: vec![series.clone(), series],
            ..LineChart::default()
        }
    }

    #[test]
    fn the_best_point_is_highlighted_and_text_is_escaped() {
        let svg = line_chart_svg(&chart(vec![(1.0, 4.0), (2.0, 1.5), (3.0, 2.0)], Scale::Linear));
        assert!(svg.contains("best 1.5 at 2"), "{svg}");
        assert!(svg.contains("&lt;loss&gt;") && svg.contains("a &amp; b") && !svg.contains("<loss>"));
    }

    #[test]
    fn gaps_and_empty_charts_are_drawn() {
        let svg =
            line_chart_svg(&chart(vec![(1.0, 1.0), (2.0, f64::NAN), (3.0, -1.0), (4.0, 2.0)], Scale::Log));
        assert!(!svg.contains("NaN"), "{svg}");
        assert!(line_chart_svg(&chart(Vec::new(), Scale::Linear)).contains("no data yet"));
        assert!(!line_chart_svg(&chart(vec![(5.0, 5.0)], Scale::Linear)).contains("NaN"));
    }

    #[test]
    fn powers_of_ten_are_equally_spaced_on_a_logarithmic_axis() {
        let points = vec![(1.0, 1.0), (10.0, 1.0), (100.0, 1.0)];
        let area = |x_scale| {
            PlotArea::new(&LineChart { x_scale, ..chart(points.clone(), Scale::Log) }, HEIGHT)
                .expect("points")
        };
        let gaps = |area: PlotArea| (area.x(10.0) - area.x(1.0), area.x(100.0) - area.x(10.0));
        let (near, far) = gaps(area(Scale::Log));
        assert!((near - far).abs() < 1e-9, "{near} {far}");
        let (near, far) = gaps(area(Scale::Linear));
        assert!(near < far);
    }

    #[test]
    fn many_lines_get_more_legend_rows_and_distinct_strokes() {
        let one = chart(vec![(1.0, 1.0), (2.0, 3.0)], Scale::Linear).series.remove(0);
        let named = |index: usize| Series { name: format!("variation number {index}"), ..one.clone() };
        let svg = line_chart_svg(&LineChart {
            series: (0..14).map(named).collect(),
            ..chart(Vec::new(), Scale::Linear)
        });
        assert!(svg.contains("stroke-dasharray=\"5 3\"") && svg.contains("variation number 13"), "{svg}");
        assert!(!svg.contains(&format!("height=\"{HEIGHT}\"")), "{svg}");
    }

    #[test]
    fn last_values_at_the_bottom_stay_above_the_tick_labels() {
        let line = |last: f64| Series { points: vec![(1.0, 8.0), (300.0, last)], ..Series::default() };
        let series = vec![line(0.053), line(0.108), line(0.02)];
        let svg = line_chart_svg(&LineChart { series, ..chart(Vec::new(), Scale::Linear) });
        let bold: Vec<f64> = svg
            .split("<text ")
            .filter(|text| text.contains("font-weight=\"600\">0."))
            .map(|text| text.split("y=\"").nth(1).and_then(|y| y.split('"').next()).expect("a y attribute"))
            .map(|y| y.parse().expect("a number"))
            .collect();
        assert_eq!(bold.len(), 3);
        assert!(bold.iter().all(|&y| y <= HEIGHT - BOTTOM + 4.0), "{bold:?}");
        assert!(bold.windows(2).all(|pair| pair[1] - pair[0] >= LINE_HEIGHT - 0.1), "{bold:?}");
    }

    #[test]
    fn a_long_run_keeps_its_extremes_in_a_small_picture() {
        let mut points: Vec<(f64, f64)> = (0..100_000).map(|step| (f64::from(step), 1.0)).collect();
        points[77_777].1 = 9.0;
        let kept = thinned(&points);
        assert!(kept.len() <= 2 * BUCKETS && kept.contains(&(77_777.0, 9.0)), "{}", kept.len());
        assert!(line_chart_svg(&chart(points, Scale::Linear)).len() < 30_000);
    }
}
