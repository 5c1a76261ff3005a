//! Two pictures of the paper: the table of sinusoidal positions and the learning rate over the steps.

use heedful_tensor::ops::sinusoid;

use super::heat_map::{HeatMapOptions, Hue, heat_map_svg};
use super::line_chart::{LineChart, Mark, Series, line_chart_svg};
use crate::train::Schedule;

/// `positions` rows of the sinusoidal table at width `d_model`, in [−1, 1].
pub fn position_table_svg(positions: usize, d_model: usize) -> String {
    let mut table = vec![0.0; positions * d_model];
    for (position, row) in table.chunks_mut(d_model.max(1)).enumerate() {
        sinusoid(position, row);
    }
    let label =
        |every: usize| move |i: usize| if i.is_multiple_of(every) { i.to_string() } else { String::new() };
    let rows: Vec<String> = (0..positions).map(label(10)).collect();
    let columns: Vec<String> = (0..d_model).map(label(16)).collect();
    let title = format!("PE(pos, i): {positions} positions × {d_model} dimensions");
    heat_map_svg(&table, &rows, &columns, &HeatMapOptions { title, full: 1.0, hue: Hue::Signed })
}

/// The learning rate of steps 1 to `steps`.
pub fn schedule_svg(schedule: Schedule, steps: u64) -> String {
    const POINTS: u64 = 400;
    let every = (steps / POINTS).max(1);
    let points = (1..=steps)
        .step_by(every as usize)
        .map(|step| (step as f64, f64::from(schedule.rate(step))))
        .collect();
    let series = vec![Series { name: "learning rate".to_owned(), points, mark: Mark::Peak }];
    line_chart_svg(&LineChart {
        title: "learning rate".to_owned(),
        x_label: "step".to_owned(),
        series,
        ..LineChart::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_positions_has_signs() {
        let svg = position_table_svg(50, 128);
        assert!(svg.contains("--heat-below") && svg.contains("50 positions × 128 dimensions"));
    }

    #[test]
    fn the_schedule_has_its_top_marked() {
        assert!(schedule_svg(Schedule::noam(512, 4000), 20_000).contains("peak 7e-4"));
    }
}
